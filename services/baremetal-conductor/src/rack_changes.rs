//! The racks that have to be examined, because a machine has made progress, or because the goal or the conductor of the rack has changed.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// The beginning of the name of a task that brings a rack up.
const TASK: &str = "rack ";

/// Returns the name of the task that brings the rack up. One of the living conductors does the task.
pub(crate) fn task(rack: &str) -> String {
    format!("{TASK}{rack}")
}

/// Returns the rack that a task brings up.
pub(crate) fn rack_of(task: &str) -> Option<&str> {
    task.strip_prefix(TASK)
}

/// The changed racks, until they are taken.
#[derive(Default)]
pub(crate) struct RackChanges {
    changed: Mutex<ChangedRacks>,
    notify: Notify,
}

/// The racks that have to be examined.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ChangedRacks {
    pub(crate) names: BTreeSet<String>,
    /// Whether any rack may have moved to this conductor from another one, so that all have to be examined.
    pub(crate) all: bool,
}

impl RackChanges {
    /// Notes that the rack has changed.
    pub(crate) fn note(&self, rack: &str) {
        self.changed().names.insert(rack.to_owned());
        self.notify.notify_one();
    }

    /// Notes that racks may have moved to this conductor.
    pub(crate) fn note_all(&self) {
        self.changed().all = true;
        self.notify.notify_one();
    }

    /// Waits until a rack is noted.
    pub(crate) async fn noted(&self) {
        self.notify.notified().await;
    }

    /// Returns the noted racks, which are then no longer noted.
    pub(crate) fn take(&self) -> ChangedRacks {
        std::mem::take(&mut *self.changed())
    }

    /// Notes racks again that could not be examined. They wait for the next examination, whatever its reason.
    pub(crate) fn put_back(&self, racks: ChangedRacks) {
        let mut changed = self.changed();
        changed.names.extend(racks.names);
        changed.all |= racks.all;
    }

    fn changed(&self) -> MutexGuard<'_, ChangedRacks> {
        self.changed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_task_of_a_rack_names_the_rack() {
        assert_eq!(rack_of(&task("row 1, rack 2")), Some("row 1, rack 2"));
        assert_eq!(rack_of("crawl"), None);
    }

    #[tokio::test]
    async fn changes_are_kept_until_an_examination_succeeds() {
        let changes = RackChanges::default();
        changes.note("r1");
        changes.note_all();
        changes.noted().await;
        let taken = changes.take();
        assert_eq!(taken, ChangedRacks { names: BTreeSet::from(["r1".to_owned()]), all: true });
        assert_eq!(changes.take(), ChangedRacks::default());
        changes.note("r2");
        changes.put_back(taken);
        let names = BTreeSet::from(["r1".to_owned(), "r2".to_owned()]);
        assert_eq!(changes.take(), ChangedRacks { names, all: true });
    }
}
