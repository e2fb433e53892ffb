//! The faults that come from outside of the computers.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// The current faults of the way to the databases, and whether all faults are over.
#[derive(Default)]
pub(crate) struct Weather {
    database: Mutex<(bool, u64)>,
    is_over: AtomicBool,
}

impl Weather {
    /// Whether the databases are away, and of how many writes in 100 the answer is lost.
    pub(crate) fn database(&self) -> (bool, u64) {
        *self.database.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set_database(&self, is_away: bool, loses: u64) {
        *self.database.lock().unwrap_or_else(PoisonError::into_inner) = (is_away, loses);
    }

    /// Whether no fault comes any more.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    pub(crate) fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}
