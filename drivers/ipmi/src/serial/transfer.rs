//! Characters both ways, one packet at a time each (IPMI 2.0 §15.11). Pure.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

use crate::wire::serial::{self, LONGEST, SerialPacket, next_number};

/// How long an acknowledgement is awaited before the packet is sent again.
const RESEND_AFTER: Duration = Duration::from_millis(400);
/// How long a port that takes nothing is left alone.
const UNAVAILABLE_WAIT: Duration = Duration::from_millis(500);

/// What is under way between us and a serial port.
pub(crate) struct Transfer {
    /// The last packet of the BMC's whose characters we took.
    taken: Option<Taken>,
    /// Typed, and not yet accepted.
    typed: VecDeque<u8>,
    /// The most characters a packet of ours may have.
    longest: usize,
    /// The number of our last packet.
    number: u8,
    /// Our packet that is not yet acknowledged.
    sent: Option<Sent>,
    /// When the first of `typed` was first sent.
    first_sent_at: Option<Instant>,
    /// The port takes nothing until then, if nobody says otherwise.
    unavailable_until: Option<Instant>,
}

#[derive(Clone, Copy)]
struct Taken {
    number: u8,
    count: u8,
    /// Its place in the session.
    order: u32,
}

struct Sent {
    count: usize,
    at: Instant,
}

/// What a packet with characters is to us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum News {
    /// We have not taken its characters.
    New,
    /// We took its characters: it is to be acknowledged again, with this count.
    Repeated(u8),
    /// It is an acknowledgement only, or comes too late.
    Nothing,
}

/// How long typed characters may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Overdue {
    No,
    /// The BMC says that the port takes none: they are gone.
    Discarded,
    /// The BMC does not say anything to them.
    Silence,
}

impl Transfer {
    /// `longest_in` is what the BMC takes in a packet, with its header.
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

    /// Whether all that was typed is accepted.
    pub(crate) fn is_idle(&self) -> bool {
        self.typed.is_empty()
    }

    pub(crate) fn type_in(&mut self, characters: &[u8]) {
        self.typed.extend(characters);
    }

    /// What `packet` is to us, which was sealed as the `order`-th of the session.
    ///
    /// A BMC has one packet under way, and sends it again until it is acknowledged: what was sealed
    /// before the last one with another number is a straggler. What grew since we took it is still
    /// taken as it was, since the BMC may have our acknowledgement by now and go on from there.
    pub(crate) fn classify(&self, order: u32, packet: &SerialPacket<'_>) -> News {
        if packet.number == 0 {
            return News::Nothing;
        }
        match self.taken {
            Some(taken) if taken.number == packet.number => News::Repeated(taken.count),
            Some(taken) if order < taken.order => News::Nothing,
            Some(_) | None => News::New,
        }
    }

    /// Notes that `count` characters of the BMC's packet `number` are taken.
    pub(crate) fn take(&mut self, order: u32, number: u8, count: u8) {
        self.taken = Some(Taken { number, count, order });
    }

    /// Takes what `packet` says of ours.
    pub(crate) fn hear(&mut self, packet: &SerialPacket<'_>, now: Instant) {
        let unavailable = packet.refuses() || packet.is_unavailable();
        self.unavailable_until = unavailable.then(|| now + UNAVAILABLE_WAIT);

        if packet.acknowledged == 0 || packet.acknowledged != self.number {
            return;
        }
        let Some(sent) = self.sent.take() else { return };
        let accepted = match packet.accepted {
            // Boards of Intel's count nothing; what they do not take they refuse.
            0 if !unavailable => sent.count,
            count => sent.count.min(count.into()),
        };
        self.typed.drain(..accepted.min(self.typed.len()));
        if accepted > 0 || self.typed.is_empty() {
            self.first_sent_at = None;
        }
    }

    /// The packet to send at `now`, if one is due: what is new, or what was not acknowledged.
    pub(crate) fn send(&mut self, now: Instant) -> Option<Vec<u8>> {
        if self.due(now)? > now {
            return None;
        }
        let again = self.sent.as_ref().map(|sent| sent.count);
        if again.is_none() {
            // What was refused goes under a new number, too, since the old one is known.
            self.number = next_number(self.number);
        }
        let count = again.unwrap_or_else(|| self.typed.len().min(self.longest));
        let characters: Vec<u8> = self.typed.iter().take(count).copied().collect();
        self.sent = Some(Sent { count, at: now });
        self.first_sent_at.get_or_insert(now);
        Some(serial::typed(self.number, &characters))
    }

    /// When `send` has something, if nothing is heard until then.
    pub(crate) fn due(&self, now: Instant) -> Option<Instant> {
        let resend_at = self.sent.as_ref().map(|sent| sent.at + RESEND_AFTER);
        (!self.typed.is_empty()).then(|| resend_at.max(self.unavailable_until).unwrap_or(now))
    }

    /// Gives up characters that waited longer than `patience`.
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
