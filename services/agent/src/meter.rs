//! How far a long command is, counted by one thread and read by another.

use std::sync::atomic::{AtomicU64, Ordering};

use agent_protocol::Progress;

/// Bytes done, and bytes there will be.
#[derive(Debug, Default)]
pub struct Meter {
    done: AtomicU64,
    /// Zero: not known.
    total: AtomicU64,
}

impl Meter {
    /// More bytes are done.
    pub fn add(&self, bytes: u64) {
        self.done.fetch_add(bytes, Ordering::Relaxed);
    }

    /// So many there will be.
    pub fn expect(&self, bytes: u64) {
        self.total.store(bytes, Ordering::Relaxed);
    }

    /// Where it stands.
    pub fn read(&self) -> Progress {
        let total = self.total.load(Ordering::Relaxed);
        Progress {
            done_bytes: self.done.load(Ordering::Relaxed),
            total_bytes: (total > 0).then_some(total),
        }
    }
}
