//! How the session slots of a BMC were used.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts the sessions of one BMC since the emulator started. Each protocol has slots of its own.
#[derive(Debug, Default)]
pub struct SessionUse {
    most: AtomicUsize,
    refused: AtomicUsize,
}

impl SessionUse {
    /// The most sessions of one protocol that were open at the same time. A session in its handshake counts.
    pub fn most(&self) -> usize {
        self.most.load(Ordering::Relaxed)
    }

    /// How many requests for a session found every slot taken.
    pub fn refused(&self) -> usize {
        self.refused.load(Ordering::Relaxed)
    }

    /// Notes that a session was opened, after which `open` sessions are open.
    pub(crate) fn note_open(&self, open: usize) {
        self.most.fetch_max(open, Ordering::Relaxed);
    }

    /// Notes that a request for a session found every slot taken.
    pub(crate) fn note_full(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }
}
