//! Locks a mutex even if another holder panicked: the tasks of a cloud pass a panic on, so no state is used afterwards.

use std::sync::{Mutex, MutexGuard, PoisonError};

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
