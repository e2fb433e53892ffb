//! The progress of a long command, written by one thread and read by another.

use std::sync::atomic::{AtomicU64, Ordering};

use agent_protocol::Progress;

/// Bytes done, and the expected total.
#[derive(Debug, Default)]
pub struct ProgressMeter {
    done: AtomicU64,
    /// 0 if the total is unknown.
    total: AtomicU64,
}

impl ProgressMeter {
    /// Adds bytes to those done.
    pub fn add(&self, bytes: u64) {
        self.done.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Sets the expected total.
    pub fn expect(&self, bytes: u64) {
        self.total.store(bytes, Ordering::Relaxed);
    }

    /// Returns the current progress.
    pub fn read(&self) -> Progress {
        let total = self.total.load(Ordering::Relaxed);
        Progress {
            done_bytes: self.done.load(Ordering::Relaxed),
            total_bytes: (total > 0).then_some(total),
        }
    }
}
