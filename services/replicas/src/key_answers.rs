//! The answers of other conductors in a rotation of the sealing keys.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// The answers of other conductors in a rotation by this one.
#[derive(Default)]
pub(crate) struct KeyAnswers {
    rotation: Mutex<Option<Rotation>>,
    pub(crate) changed: Notify,
}

struct Rotation {
    id: String,
    /// The word of each answer, with the host name of its conductor.
    answers: BTreeSet<(String, String)>,
}

/// A rotation by this conductor, until this is dropped.
pub(crate) struct RotationGuard<'a>(&'a KeyAnswers);

impl Drop for RotationGuard<'_> {
    fn drop(&mut self) {
        *self.0.rotation() = None;
    }
}

impl KeyAnswers {
    fn rotation(&self) -> MutexGuard<'_, Option<Rotation>> {
        // A panic while the lock is held leaves the answers intact, so the poisoned lock can be used.
        self.rotation.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a rotation by this conductor is in progress.
    pub(crate) fn is_expected(&self) -> bool {
        self.rotation().is_some()
    }

    /// Expects answers about the key with this id.
    pub(crate) fn begin(&self, id: &str) -> RotationGuard<'_> {
        *self.rotation() = Some(Rotation { id: id.to_owned(), answers: BTreeSet::new() });
        RotationGuard(self)
    }

    /// Notes an answer, if it is expected.
    pub(crate) fn note(&self, word: &str, id: &str, hostname: &str) {
        if let Some(rotation) = &mut *self.rotation()
            && rotation.id == id
        {
            rotation.answers.insert((word.to_owned(), hostname.to_owned()));
            self.changed.notify_one();
        }
    }

    /// Returns the first of these conductors that has not given the answer.
    pub(crate) fn missing(&self, word: &str, hostnames: Vec<String>) -> Option<String> {
        let rotation = self.rotation();
        let has_answered = |hostname: &String| {
            let answer = (word.to_owned(), hostname.clone());
            rotation.as_ref().is_some_and(|rotation| rotation.answers.contains(&answer))
        };
        hostnames.into_iter().find(|hostname| !has_answered(hostname))
    }
}
