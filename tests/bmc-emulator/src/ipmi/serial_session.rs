//! The serial port while a console has it: packets and their acknowledgements (IPMI 2.0 chapter 15).

use std::net::SocketAddr;
use std::time::Duration;

use tokio::time::Instant;

use crate::profile::SerialRules;

/// Tables 15-2 and 15-3: the length of the header, and the most characters in one packet.
const HEADER: usize = 4;
const LONGEST: usize = 255;
pub(crate) const LAST_NUMBER: u8 = 0x0F;

/// The state of the port while a console has it.
pub(crate) struct SerialSession {
    /// The BMC's id of the console's session, and the address of the console.
    pub(crate) session: u32,
    pub(crate) console: SocketAddr,
    pub(crate) rules: SerialRules,
    /// The position in the machine's output up to which the console has acknowledged or missed it.
    pub(crate) read: u64,
    /// The number of the last packet to the console.
    pub(crate) number: u8,
    /// The packet that is not acknowledged yet.
    pub(crate) sent: Option<Sent>,
    /// The number of the console's last packet, and how many of its characters were accepted.
    pub(crate) heard: Option<(u8, u8)>,
    /// The console asked the BMC to pause.
    pub(crate) paused: bool,
    /// Some output of the machine was lost.
    pub(crate) overrun: bool,
}

/// A packet that is not acknowledged yet.
pub(crate) struct Sent {
    pub(crate) characters: Vec<u8>,
    pub(crate) at: Instant,
    pub(crate) times: u8,
    /// The console refused the packet, so the BMC waits before it sends the packet again.
    pub(crate) refused: bool,
}

impl SerialSession {
    pub(crate) fn new(
        session: u32,
        console: SocketAddr,
        rules: SerialRules,
        end: u64,
    ) -> SerialSession {
        SerialSession {
            session,
            console,
            rules,
            read: end,
            number: 0,
            sent: None,
            heard: None,
            paused: false,
            overrun: false,
        }
    }

    pub(crate) fn longest(&self) -> usize {
        usize::from(self.rules.payload_bytes).saturating_sub(HEADER).clamp(1, LONGEST)
    }

    pub(crate) fn retry(&self) -> Duration {
        Duration::from_millis(self.rules.retry_millis.into())
    }

    /// Processes the console's acknowledgement of the packet in progress.
    pub(crate) fn hear(&mut self, acknowledged: u8, accepted: u8, refused: bool) {
        if acknowledged == 0 || acknowledged != self.number {
            return;
        }
        let Some(mut sent) = self.sent.take() else { return };
        let accepted = usize::from(accepted).min(sent.characters.len());
        self.read += accepted as u64;
        sent.characters.drain(..accepted);
        if refused && !sent.characters.is_empty() {
            self.number = next(self.number);
            self.sent = Some(Sent { refused: true, ..sent });
        }
    }
}

/// The number of the packet after `number`. 0 is no number.
pub(crate) fn next(number: u8) -> u8 {
    if number >= LAST_NUMBER { 1 } else { number + 1 }
}
