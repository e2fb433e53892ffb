//! The system event log, which Redfish and IPMI both show.

use std::collections::VecDeque;

use jiff::Timestamp;

/// How many events a BMC keeps. A full log drops the oldest event.
const KEPT: usize = 128;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Event {
    /// Counts from 1. IPMI reserves 0 for "first" and 0xFFFF for "last" (§31.5).
    pub(crate) id: u16,
    pub(crate) at: Timestamp,
    pub(crate) kind: EventKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventKind {
    PoweredOn,
    PoweredOff,
    Restarted,
    Interrupted,
    LogCleared,
}

impl EventKind {
    pub(crate) fn sentence(self) -> &'static str {
        match self {
            EventKind::PoweredOn => "The system was powered on.",
            EventKind::PoweredOff => "The system was powered off.",
            EventKind::Restarted => "The system was restarted.",
            EventKind::Interrupted => "A non-maskable interrupt was raised.",
            EventKind::LogCleared => "The event log was cleared.",
        }
    }
}

/// The event log of one machine.
#[derive(Debug, Default)]
pub(crate) struct Events {
    entries: VecDeque<Event>,
    last_id: u16,
    pub(crate) cleared_at: Option<Timestamp>,
}

impl Events {
    pub(crate) fn add(&mut self, kind: EventKind) {
        if self.entries.len() == KEPT {
            self.entries.pop_front();
        }
        self.last_id = if self.last_id >= 0xFFFE { 1 } else { self.last_id + 1 };
        self.entries.push_back(Event { id: self.last_id, at: Timestamp::now(), kind });
    }

    /// Clears the log and adds an event that says so.
    pub(crate) fn clear(&mut self) {
        *self = Events { cleared_at: Some(Timestamp::now()), ..Events::default() };
        self.add(EventKind::LogCleared);
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Event> {
        self.entries.iter()
    }

    pub(crate) fn free(&self) -> usize {
        KEPT - self.entries.len()
    }
}
