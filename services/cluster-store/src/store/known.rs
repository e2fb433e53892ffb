//! The keys that are registered in the database.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The keys that are known to be registered in the database, so that each is registered once.
#[derive(Clone, Default)]
pub(super) struct RegisteredKeys(Arc<Mutex<BTreeSet<String>>>);

impl RegisteredKeys {
    pub(super) fn set(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
