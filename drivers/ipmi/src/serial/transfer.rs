//! Transfer of characters in both directions, one packet at a time each (IPMI 2.0 §15.11). Pure.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

use crate::wire::serial::{self, LONGEST, SerialPacket, next_number};

/// How long to wait for an acknowledgement before sending a packet again.
const RESEND_AFTER: Duration = Duration::from_millis(400);
/// How long to wait after the port reported that it accepts no characters.
const UNAVAILABLE_WAIT: Duration = Duration::from_millis(500);

/// The state of the transfer between this driver and a serial port.
pub(crate) struct Transfer {
    /// The BMC's last packet whose characters were accepted.
    taken: Option<AcceptedPacket>,
    /// Typed characters that the BMC has not accepted yet.
    typed: VecDeque<u8>,
    /// The most characters in a packet to the BMC.
    longest: usize,
    /// The number of our last packet.
    number: u8,
    /// Our packet that is not acknowledged yet.
    sent: Option<Sent>,
    /// When the first of `typed` was first sent.
    first_sent_at: Option<Instant>,
    /// Until when the port accepts nothing, unless the BMC reports otherwise.
    unavailable_until: Option<Instant>,
}

#[derive(Clone, Copy)]
struct AcceptedPacket {
    number: u8,
    count: u8,
    /// The packet's sequence number in the session.
    order: u32,
}

struct Sent {
    count: usize,
    at: Instant,
}

/// The classification of a packet with characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PacketClass {
    /// Its characters have not been accepted yet.
    New,
    /// Its characters were accepted before; acknowledge it again with this count.
    Repeated(u8),
    /// The packet only acknowledges, or it is too late.
    Nothing,
}

/// The state of typed characters that have waited too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Overdue {
    No,
    /// The BMC reports that the port accepts none: the characters were discarded.
    Discarded,
    /// The BMC does not react to the characters.
    Silence,
}

impl Transfer {
    /// Starts a transfer. `longest_in` is the longest packet that the BMC accepts, including its header.
    pub(crate) fn new(longest_in: u16) -> Self {
        let longest = usize::from(longest_in).saturating_sub(serial::HEADER).clamp(1, LONGEST);
        Transfer {
            taken: None,
            typed: VecDeque::new(),
            longest,
            number: 0,
            sent: None,
            first_sent_at: None,
            unavailable_until: None,
        }
    }

    /// Whether the BMC has accepted all typed characters.
    pub(crate) fn is_idle(&self) -> bool {
        self.typed.is_empty()
    }

    pub(crate) fn type_in(&mut self, characters: &[u8]) {
        self.typed.extend(characters);
    }

    /// Classifies `packet`, which has the sequence number `order` in the session.
    ///
    /// A BMC has one packet in flight and repeats it until it is acknowledged. So a packet with another number that was sealed before the
    /// last accepted one is a late copy. A repetition may have more characters than the accepted packet. It still counts as the accepted
    /// one, because the BMC may already have our acknowledgement and continue from there.
    pub(crate) fn classify(&self, order: u32, packet: &SerialPacket<'_>) -> PacketClass {
        if packet.number == 0 {
            return PacketClass::Nothing;
        }
        match self.taken {
            Some(taken) if taken.number == packet.number => PacketClass::Repeated(taken.count),
            Some(taken) if order < taken.order => PacketClass::Nothing,
            Some(_) | None => PacketClass::New,
        }
    }

    /// Records that `count` characters of the BMC's packet `number` were accepted.
    pub(crate) fn take(&mut self, order: u32, number: u8, count: u8) {
        self.taken = Some(AcceptedPacket { number, count, order });
    }

    /// Handles the acknowledgement in `packet`.
    pub(crate) fn on_acknowledgement(&mut self, packet: &SerialPacket<'_>, now: Instant) {
        let unavailable = packet.refuses() || packet.is_unavailable();
        self.unavailable_until = unavailable.then(|| now + UNAVAILABLE_WAIT);

        if packet.acknowledged == 0 || packet.acknowledged != self.number {
            return;
        }
        let Some(sent) = self.sent.take() else { return };
        let accepted = match packet.accepted {
            // Intel's boards always report a count of 0, and refuse the packet if they do not accept it.
            0 if !unavailable => sent.count,
            count => sent.count.min(count.into()),
        };
        self.typed.drain(..accepted.min(self.typed.len()));
        if accepted > 0 || self.typed.is_empty() {
            self.first_sent_at = None;
        }
    }

    /// Returns the packet to send at `now`, if one is due: new characters, or an unacknowledged packet.
    pub(crate) fn send(&mut self, now: Instant) -> Option<Vec<u8>> {
        if self.due(now)? > now {
            return None;
        }
        let again = self.sent.as_ref().map(|sent| sent.count);
        if again.is_none() {
            // Refused characters get a new number as well, because the BMC has seen the old number.
            self.number = next_number(self.number);
        }
        let count = again.unwrap_or_else(|| self.typed.len().min(self.longest));
        let characters: Vec<u8> = self.typed.iter().take(count).copied().collect();
        self.sent = Some(Sent { count, at: now });
        self.first_sent_at.get_or_insert(now);
        Some(serial::typed(self.number, &characters))
    }

    /// Returns when `send` has a packet, if nothing is received until then.
    pub(crate) fn due(&self, now: Instant) -> Option<Instant> {
        let resend_at = self.sent.as_ref().map(|sent| sent.at + RESEND_AFTER);
        (!self.typed.is_empty()).then(|| resend_at.max(self.unavailable_until).unwrap_or(now))
    }

    /// Gives up characters that have waited longer than `patience`.
    pub(crate) fn give_up(&mut self, now: Instant, patience: Duration) -> Overdue {
        if self.first_sent_at.is_none_or(|since| now < since + patience) {
            return Overdue::No;
        }
        if self.unavailable_until.is_none() {
            return Overdue::Silence;
        }
        self.typed.clear();
        (self.sent, self.first_sent_at) = (None, None);
        Overdue::Discarded
    }
}

#[cfg(test)]
mod tests;
