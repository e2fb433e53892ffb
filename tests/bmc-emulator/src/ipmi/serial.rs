//! Serial over LAN: passes the machine's serial port through a session (IPMI 2.0 chapter 15).

use std::net::SocketAddr;

use tokio::time::Instant;

use crate::ipmi::face::IpmiFace;
use crate::ipmi::packet::PayloadType;
use crate::ipmi::serial_session::{LAST_NUMBER, Sent, next};

/// Bits of the operation byte that a console sends.
const NOT_ACCEPTED: u8 = 0x40;
const PAUSE: u8 = 0x08;
const FLUSH_OUTBOUND: u8 = 0x01;
/// Bits of the status byte that this BMC sends.
const REFUSED: u8 = 0x40;
const UNAVAILABLE: u8 = 0x20;
const DEACTIVATED: u8 = 0x10;
const OVERRUN: u8 = 0x08;

impl IpmiFace {
    /// Handles a packet of the console. Returns the answer if the packet needs one.
    pub(super) fn receive_serial(&mut self, session: u32, payload: &[u8]) -> Option<Vec<u8>> {
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

    /// The packet to send to the console now, and the console's address.
    pub(crate) fn next_serial_packet(&mut self) -> Option<(Vec<u8>, SocketAddr)> {
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
                // §26.3: a console that does not answer loses the packet.
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

    /// When `say_serial` has a packet again if nothing happens until then.
    pub(crate) fn serial_due(&self) -> Option<Instant> {
        let link = self.link.as_ref()?;
        link.sent.as_ref().map(|sent| sent.at + link.retry())
    }

    /// Ends the serial session. `farewell` then holds the packet that tells the console.
    pub(super) fn end_serial(&mut self) -> bool {
        let Some(link) = self.link.take() else { return false };
        self.machine.serial().has_read(None);
        let packet = self.sessions.seal(link.session, PayloadType::Serial, &[0, 0, 0, DEACTIVATED]);
        self.farewell = packet.map(|packet| (packet, link.console));
        true
    }
}
