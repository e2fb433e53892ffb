//! Serial over LAN: the machine's port in a session (IPMI 2.0 chapter 15).

use std::net::SocketAddr;
use std::time::Duration;

use tokio::time::Instant;

use crate::ipmi::IpmiFace;
use crate::ipmi::packet::PayloadType;
use crate::profile::SerialRules;

/// Table 15-2 and 15-3: the header, and the most characters that can be counted.
const HEADER: usize = 4;
const LONGEST: usize = 255;
const LAST_NUMBER: u8 = 0x0F;

/// Bits of a console's operation byte.
const NOT_ACCEPTED: u8 = 0x40;
const PAUSE: u8 = 0x08;
const FLUSH_OUTBOUND: u8 = 0x01;
/// Bits of this BMC's status byte.
const REFUSED: u8 = 0x40;
const UNAVAILABLE: u8 = 0x20;
const DEACTIVATED: u8 = 0x10;
const OVERRUN: u8 = 0x08;

/// The port while a console has it.
pub(crate) struct Link {
    /// The BMC's name of the console's session, and where the console is.
    pub(crate) session: u32,
    console: SocketAddr,
    rules: SerialRules,
    /// How much of what the machine ever said is acknowledged.
    read: u64,
    /// The number of the last packet to the console.
    number: u8,
    /// The packet that is not acknowledged.
    sent: Option<Sent>,
    /// The console's last packet, and how many characters of it were accepted.
    heard: Option<(u8, u8)>,
    /// The console wants no more for now.
    paused: bool,
    /// Something that the machine said is lost.
    overrun: bool,
}

struct Sent {
    characters: Vec<u8>,
    at: Instant,
    times: u8,
    /// It was refused, so it waits for its time.
    refused: bool,
}

impl Link {
    pub(crate) fn new(session: u32, console: SocketAddr, rules: SerialRules, end: u64) -> Link {
        Link {
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

    fn longest(&self) -> usize {
        usize::from(self.rules.payload_bytes).saturating_sub(HEADER).clamp(1, LONGEST)
    }

    fn retry(&self) -> Duration {
        Duration::from_millis(self.rules.retry_millis.into())
    }

    /// Takes what the console acknowledges of the packet under way.
    fn hear(&mut self, acknowledged: u8, accepted: u8, refused: bool) {
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

fn next(number: u8) -> u8 {
    if number >= LAST_NUMBER { 1 } else { number + 1 }
}

impl IpmiFace {
    /// A packet of the console's; the answer, if it wants one.
    pub(super) fn hear_serial(&mut self, session: u32, payload: &[u8]) -> Option<Vec<u8>> {
        let is_on = self.machine.power_now().on;
        let link = self.link.as_mut().filter(|link| link.session == session)?;
        let [number, acknowledged, accepted, operation, keys @ ..] = payload else { return None };
        let (number, acknowledged) = (number & LAST_NUMBER, acknowledged & LAST_NUMBER);

        link.paused = operation & PAUSE != 0;
        link.hear(acknowledged, *accepted, operation & NOT_ACCEPTED != 0);
        if operation & FLUSH_OUTBOUND != 0 {
            (link.read, link.sent) = (*self.machine.serial().end().borrow(), None);
        }
        if number == 0 {
            return None;
        }

        let accepted = match link.heard {
            Some((last, accepted)) if last == number => accepted,
            Some(_) | None if !is_on => 0,
            Some(_) | None => {
                let keys = &keys[..keys.len().min(link.longest())];
                u8::try_from(self.machine.serial().type_in(keys)).unwrap_or(u8::MAX)
            }
        };
        link.heard = Some((number, accepted));
        let refused = if usize::from(accepted) < keys.len() { REFUSED } else { 0 };
        let unavailable = if is_on { 0 } else { UNAVAILABLE };
        self.sessions.seal(
            session,
            PayloadType::Serial,
            &[0, number, accepted, refused | unavailable],
        )
    }

    /// What the console is to be sent now, and where it is.
    pub(crate) fn say_serial(&mut self) -> Option<(Vec<u8>, SocketAddr)> {
        self.sessions.forget_stale(self.machine.faults().era());
        if self.link.take_if(|link| !self.sessions.is_active(link.session)).is_some() {
            self.machine.serial().has_read(None);
        }
        let port = self.machine.serial();
        let link = self.link.as_mut()?;
        port.has_read(Some(link.read));
        let now = Instant::now();
        let (retry, longest) = (link.retry(), link.longest());
        match &mut link.sent {
            Some(sent) if now < sent.at + retry => return None,
            Some(sent) if sent.times > link.rules.retries && !sent.refused => {
                // §26.3: a console that does not answer misses it.
                link.read += sent.characters.len() as u64;
                (link.sent, link.overrun) = (None, true);
                port.has_read(Some(link.read));
            }
            Some(sent) => (sent.at, sent.times, sent.refused) = (now, sent.times + 1, false),
            None => {}
        }
        if link.sent.is_none() {
            let (at, characters) = port.read(link.read, longest);
            link.overrun |= at > link.read;
            link.read = at;
            if characters.is_empty() || link.paused {
                return None;
            }
            link.number = next(link.number);
            link.sent = Some(Sent { characters, at: now, times: 1, refused: false });
        }
        let status = if std::mem::take(&mut link.overrun) { OVERRUN } else { 0 };
        let mut packet = vec![link.number, 0, 0, status];
        packet.extend(link.sent.iter().flat_map(|sent| &sent.characters));
        let (session, console) = (link.session, link.console);
        Some((self.sessions.seal(session, PayloadType::Serial, &packet)?, console))
    }

    /// When `say_serial` has something, if nothing happens until then.
    pub(crate) fn serial_due(&self) -> Option<Instant> {
        let link = self.link.as_ref()?;
        link.sent.as_ref().map(|sent| sent.at + link.retry())
    }

    /// Takes the port from the console that has it, which is told.
    pub(super) fn end_serial(&mut self) -> bool {
        let Some(link) = self.link.take() else { return false };
        self.machine.serial().has_read(None);
        let packet = self.sessions.seal(link.session, PayloadType::Serial, &[0, 0, 0, DEACTIVATED]);
        self.farewell = packet.map(|packet| (packet, link.console));
        true
    }
}
