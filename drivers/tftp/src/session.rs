//! One file on its way to one client, as a state machine: packets and timeouts in, packets out.

use std::time::Duration;

use bytes::Bytes;

use crate::packet::{ErrorCode, FileMode, Packet, Request, Setting};

/// What a server grants at most.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Octets a block. 1468 fills an Ethernet frame: 1500 less IP's 20, UDP's 8 and TFTP's 4.
    pub block_size: u16,
    /// Blocks on their way at once.
    pub window: u16,
    /// How long to wait for an answer before sending again, unless the client asks otherwise.
    pub timeout: Duration,
    /// How often to send the same again before giving up.
    pub attempts: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { block_size: 1468, window: 16, timeout: Duration::from_secs(1), attempts: 6 }
    }
}

/// A transfer in progress.
#[derive(Clone, Debug)]
pub struct Session {
    content: Bytes,
    block_size: usize,
    window: u64,
    timeout: Duration,
    attempts: u32,
    phase: Phase,
    /// How often the same has been sent.
    attempt: u32,
}

/// How far the transfer has come. Blocks are counted from 1 without rolling over.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Phase {
    /// Options were acknowledged; the client has to take them by acknowledging block 0.
    Negotiating { granted: Vec<Setting> },
    /// Blocks up to `arrived` are there; those up to `sent` have been sent.
    Sending { arrived: u64, sent: u64, repeated: Repeated },
}

/// Whether a client that lost the first block of a window has been helped once already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Repeated {
    No,
    Yes,
}

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Send these, and wait anew for [`Session::timeout`].
    Send(Vec<Packet>),
    /// Nothing; the timeout that runs goes on.
    Wait,
    /// The client has all of it.
    Done,
    /// The client only wanted to know the size, and knows it now.
    Measured,
    /// It is over; tell the client if there is something to tell.
    Fail(SessionError, Option<Packet>),
}

/// Why a transfer ended early.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SessionError {
    /// It stopped answering.
    #[error("the client stopped answering after {arrived} of {size} octets")]
    Silent {
        /// What it had confirmed.
        arrived: u64,
        /// What there is.
        size: u64,
    },
    /// It gave up.
    #[error("the client gave up: {message}")]
    GaveUp {
        /// In its words, without control characters, at most 100 of them.
        message: String,
    },
    /// It sent something a reader has no business to send.
    #[error("the client sent a packet that does not belong in a transfer")]
    OutOfPlace,
}

impl Session {
    /// Begins the transfer of `content`, and says what to send first.
    pub fn begin(request: &Request, content: Bytes, limits: &Limits) -> (Self, Vec<Packet>) {
        let content = match request.mode {
            FileMode::Octet => content,
            FileMode::NetAscii => net_ascii(&content),
        };
        let mut session = Session {
            content,
            block_size: 512,
            window: 1,
            timeout: limits.timeout,
            attempts: limits.attempts,
            phase: Phase::Sending { arrived: 0, sent: 0, repeated: Repeated::No },
            attempt: 0,
        };
        let granted = session.negotiate(request, limits);
        if granted.is_empty() {
            let packets = session.fill_window(0);
            return (session, packets);
        }
        session.phase = Phase::Negotiating { granted: granted.clone() };
        (session, vec![Packet::OptionAcknowledge(granted)])
    }

    /// How long to wait for a packet before calling [`on_timeout`](Self::on_timeout).
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// How many octets are to be sent.
    pub fn size(&self) -> u64 {
        self.content.len() as u64
    }

    /// What to do about a packet of the client.
    pub fn on_packet(&mut self, packet: &Packet) -> Step {
        match packet {
            Packet::Acknowledge { block } => self.on_acknowledge(*block),
            Packet::Error { message, .. } => match self.phase {
                // PXE ROMs ask for the size first, then hang up and ask for the file.
                Phase::Negotiating { .. } => Step::Measured,
                Phase::Sending { .. } => {
                    let legible = message.chars().filter(|c| !c.is_control()).take(100).collect();
                    Step::Fail(SessionError::GaveUp { message: legible }, None)
                }
            },
            // The request again: the first packet is on its way, or the timeout sends it anew.
            Packet::Read(_) => Step::Wait,
            Packet::Write(_) | Packet::Data { .. } | Packet::OptionAcknowledge(_) => {
                let message = "this is a transfer to you".to_owned();
                let told = Packet::Error { code: ErrorCode::IllegalOperation, message };
                Step::Fail(SessionError::OutOfPlace, Some(told))
            }
        }
    }

    /// What to do when nothing came for [`timeout`](Self::timeout).
    pub fn on_timeout(&mut self) -> Step {
        self.attempt += 1;
        if self.attempt >= self.attempts {
            let message = "no answer".to_owned();
            let told = Packet::Error { code: ErrorCode::NotDefined, message };
            let silent = SessionError::Silent { arrived: self.arrived(), size: self.size() };
            return Step::Fail(silent, Some(told));
        }
        match &self.phase {
            Phase::Negotiating { granted } => {
                Step::Send(vec![Packet::OptionAcknowledge(granted.clone())])
            }
            Phase::Sending { arrived, .. } => Step::Send(self.fill_window(*arrived)),
        }
    }

    fn on_acknowledge(&mut self, block: u16) -> Step {
        let (arrived, sent, repeated) = match self.phase {
            Phase::Negotiating { .. } if block == 0 => (0, 0, Repeated::No),
            Phase::Negotiating { .. } => return Step::Wait,
            Phase::Sending { arrived, sent, repeated } => (arrived, sent, repeated),
        };
        // Numbers roll over from 65535 to 0; a window is far shorter than a lap.
        let ahead = u64::from(block.wrapping_sub(arrived as u16));
        let acknowledged = arrived + ahead;
        let negotiated = matches!(self.phase, Phase::Negotiating { .. });
        if acknowledged > sent {
            return Step::Wait;
        }
        if ahead == 0 && !negotiated {
            // RFC 1123 §4.2.3.1: answering a repeated acknowledgement would double every block from
            // here on. In a window it may mean that its first block was lost (RFC 7440 §4): help once.
            if self.window == 1 || repeated == Repeated::Yes {
                return Step::Wait;
            }
            let packets = self.fill_window(arrived);
            self.phase = Phase::Sending { arrived, sent, repeated: Repeated::Yes };
            return Step::Send(packets);
        }
        self.attempt = 0;
        if acknowledged == self.last_block() {
            return Step::Done;
        }
        Step::Send(self.fill_window(acknowledged))
    }

    /// The blocks after `arrived` that a window holds.
    fn fill_window(&mut self, arrived: u64) -> Vec<Packet> {
        let sent = (arrived + self.window).min(self.last_block());
        self.phase = Phase::Sending { arrived, sent, repeated: Repeated::No };
        (arrived + 1..=sent).map(|block| self.block(block)).collect()
    }

    fn block(&self, block: u64) -> Packet {
        let start = (block as usize - 1) * self.block_size;
        let end = (start + self.block_size).min(self.content.len());
        Packet::Data { block: block as u16, octets: self.content.slice(start..end) }
    }

    /// The transfer ends with a block that is not full, if need be an empty one.
    fn last_block(&self) -> u64 {
        (self.content.len() / self.block_size) as u64 + 1
    }

    fn arrived(&self) -> u64 {
        match self.phase {
            Phase::Negotiating { .. } => 0,
            Phase::Sending { arrived, .. } => (arrived * self.block_size as u64).min(self.size()),
        }
    }

    /// Takes what the client asks for as far as the limits go; what is not understood is left out (RFC 2347).
    fn negotiate(&mut self, request: &Request, limits: &Limits) -> Vec<Setting> {
        let mut granted: Vec<Setting> = Vec::new();
        for (name, value) in &request.settings {
            if granted.iter().any(|(earlier, _)| earlier == name) {
                continue;
            }
            let Ok(value) = value.parse::<u64>() else { continue };
            let value = match name.as_str() {
                // RFC 2348: 8 to 65464; the server may take less.
                "blksize" if (8..=65464).contains(&value) => {
                    let size = value.min(u64::from(limits.block_size.max(8)));
                    self.block_size = size as usize;
                    size
                }
                // RFC 2349: 1 to 255 seconds; the server takes it or leaves it.
                "timeout" if (1..=255).contains(&value) => {
                    self.timeout = Duration::from_secs(value);
                    value
                }
                // RFC 2349: the client sends 0 and is told.
                "tsize" => self.size(),
                // RFC 7440: 1 to 65535; the server may take less.
                "windowsize" if (1..=65535).contains(&value) => {
                    self.window = value.min(u64::from(limits.window.max(1)));
                    self.window
                }
                _ => continue,
            };
            granted.push((name.clone(), value.to_string()));
        }
        granted
    }
}

fn net_ascii(content: &[u8]) -> Bytes {
    let mut text = Vec::with_capacity(content.len());
    for octet in content {
        match octet {
            b'\n' => text.extend(b"\r\n"),
            b'\r' => text.extend(b"\r\0"),
            other => text.push(*other),
        }
    }
    Bytes::from(text)
}

#[cfg(test)]
mod tests;
