//! A read session as a state machine: packets and timeouts go in, packets come out.

use std::time::Duration;

use bytes::Bytes;

use crate::packet::{ErrorCode, FileMode, Packet, Request, RequestOption};

/// The limits of a server for the options that a client asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Octets of a block. 1468 fills an Ethernet frame: 1500 less IP's 20, UDP's 8 and TFTP's 4.
    pub block_size: u16,
    /// The number of blocks in flight.
    pub window: u16,
    /// How long to wait for an acknowledgement before sending again, unless the client asks for another timeout.
    pub timeout: Duration,
    /// The number of times that the same packets are sent before the session fails.
    pub attempts: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { block_size: 1468, window: 16, timeout: Duration::from_secs(1), attempts: 6 }
    }
}

/// A transfer of one file to one client.
#[derive(Clone, Debug)]
pub struct Session {
    content: Bytes,
    block_size: usize,
    window: u64,
    timeout: Duration,
    attempts: u32,
    phase: Phase,
    /// How often the current packets have been sent again.
    attempt: u32,
}

/// The progress of a transfer. Blocks are counted from 1 and do not wrap.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Phase {
    /// The server has acknowledged options; the client accepts them by acknowledging block 0.
    Negotiating { granted: Vec<RequestOption> },
    /// The client has all blocks up to `arrived`; the blocks up to `sent` have been sent.
    Sending { arrived: u64, sent: u64, repeated: Repeated },
}

/// Whether the session has already sent a window again because the client repeated an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Repeated {
    No,
    Yes,
}

/// The caller's next step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Send these packets, and restart the timer of [`Session::timeout`].
    Send(Vec<Packet>),
    /// Send nothing and let the timer run on.
    Wait,
    /// The client has the whole file.
    Done,
    /// The client asked for the size only, and has received the size.
    Measured,
    /// The transfer has failed; send the packet, if there is one.
    Fail(SessionError, Option<Packet>),
}

/// The reasons why a transfer ended early.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SessionError {
    #[error("the client stopped answering after {arrived} of {size} octets")]
    Silent {
        /// Octets that the client had acknowledged.
        arrived: u64,
        /// Octets of the file.
        size: u64,
    },
    #[error("the client gave up: {message}")]
    GaveUp {
        /// The client's words without control characters, at most 100 characters.
        message: String,
    },
    /// The client sent a packet that a reader never sends.
    #[error("the client sent a packet that is not legal in a read transfer")]
    OutOfPlace,
}

impl Session {
    /// Starts the transfer of `content`; returns the session and the first packets to send.
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

    /// Returns how long to wait for a packet before calling [`on_timeout`](Self::on_timeout).
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Returns the number of octets to send.
    pub fn size(&self) -> u64 {
        self.content.len() as u64
    }

    /// Returns the next step after a packet of the client.
    pub fn on_packet(&mut self, packet: &Packet) -> Step {
        match packet {
            Packet::Acknowledge { block } => self.on_acknowledge(*block),
            Packet::Error { message, .. } => match self.phase {
                // PXE ROMs first ask for the size, abort that transfer, and then ask for the file.
                Phase::Negotiating { .. } => Step::Measured,
                Phase::Sending { .. } => {
                    let legible = message.chars().filter(|c| !c.is_control()).take(100).collect();
                    Step::Fail(SessionError::GaveUp { message: legible }, None)
                }
            },
            // A repeated request: the first packet is in flight already, and if it was lost the timeout sends it again.
            Packet::Read(_) => Step::Wait,
            Packet::Write(_) | Packet::Data { .. } | Packet::OptionAcknowledge(_) => {
                let message = "this is a transfer to you".to_owned();
                let reported = Packet::Error { code: ErrorCode::IllegalOperation, message };
                Step::Fail(SessionError::OutOfPlace, Some(reported))
            }
        }
    }

    /// Returns the next step when no packet came within [`timeout`](Self::timeout).
    pub fn on_timeout(&mut self) -> Step {
        self.attempt += 1;
        if self.attempt >= self.attempts {
            let message = "no answer".to_owned();
            let reported = Packet::Error { code: ErrorCode::NotDefined, message };
            let silent = SessionError::Silent { arrived: self.arrived(), size: self.size() };
            return Step::Fail(silent, Some(reported));
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
            // No block was sent yet, so the check of `sent` below lets only an acknowledgement of block 0 pass.
            Phase::Negotiating { .. } => (0, 0, Repeated::No),
            Phase::Sending { arrived, sent, repeated } => (arrived, sent, repeated),
        };
        // Numbers wrap from 65535 to 0. A window is far shorter than 65536 blocks, so the difference is unambiguous.
        let ahead = u64::from(block.wrapping_sub(arrived as u16));
        let acknowledged = arrived + ahead;
        let negotiated = matches!(self.phase, Phase::Negotiating { .. });
        if acknowledged > sent {
            return Step::Wait;
        }
        if ahead == 0 && !negotiated {
            // RFC 1123 §4.2.3.1: an answer to a repeated acknowledgement would double every later block. With a window, a
            // repetition may mean that the first block of the window was lost (RFC 7440 §4), so the window is sent again once.
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

    /// Returns the blocks of the window after `arrived`, and marks them as sent.
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

    /// Returns the number of the last block. The last block is never full: if the content fills its blocks, the last one is empty.
    fn last_block(&self) -> u64 {
        (self.content.len() / self.block_size) as u64 + 1
    }

    fn arrived(&self) -> u64 {
        match self.phase {
            Phase::Negotiating { .. } => 0,
            Phase::Sending { arrived, .. } => (arrived * self.block_size as u64).min(self.size()),
        }
    }

    /// Accepts the client's options within the limits, and leaves unknown or illegal options out (RFC 2347).
    fn negotiate(&mut self, request: &Request, limits: &Limits) -> Vec<RequestOption> {
        let mut granted: Vec<RequestOption> = Vec::new();
        for (name, value) in &request.settings {
            if granted.iter().any(|(earlier, _)| earlier == name) {
                continue;
            }
            let Ok(value) = value.parse::<u64>() else { continue };
            let value = match name.as_str() {
                // RFC 2348: 8 to 65464; the server may answer with less.
                "blksize" if (8..=65464).contains(&value) => {
                    let size = value.min(u64::from(limits.block_size.max(8)));
                    self.block_size = size as usize;
                    size
                }
                // RFC 2349: 1 to 255 seconds; the server accepts the value or omits the option.
                "timeout" if (1..=255).contains(&value) => {
                    self.timeout = Duration::from_secs(value);
                    value
                }
                // RFC 2349: the client sends 0, the server answers with the size.
                "tsize" => self.size(),
                // RFC 7440: 1 to 65535; the server may answer with less.
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
