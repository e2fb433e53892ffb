//! A row that the next write of a request carries, in the same transaction.

use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::Entry;

tokio::task_local! {
    static OF_TASK: NextWrite;
}

/// Holds the row of one request until a write takes it.
#[derive(Clone, Default)]
pub struct NextWrite(Arc<Mutex<Option<Entry>>>);

impl NextWrite {
    /// Runs the request. Its writes find the row by [`NextWrite::of_task`]; those of tasks that the request starts do not.
    pub async fn during<F: Future>(&self, request: F) -> F::Output {
        OF_TASK.scope(self.clone(), request).await
    }

    /// Returns that of the request which the current task runs.
    pub fn of_task() -> Option<NextWrite> {
        OF_TASK.try_with(Clone::clone).ok()
    }

    /// Holds the row for the next write.
    pub fn hold(&self, row: Entry) {
        *self.lock() = Some(row);
    }

    /// Takes the row, if it is still held.
    pub fn take(&self) -> Option<Entry> {
        self.lock().take()
    }

    fn lock(&self) -> MutexGuard<'_, Option<Entry>> {
        // The row is replaced as a whole, so the value behind a poisoned lock is intact.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Outcome;

    #[tokio::test]
    async fn only_the_task_of_the_request_finds_the_row_and_one_write_takes_it() {
        assert!(NextWrite::of_task().is_none());
        let next = NextWrite::default();
        next.hold(Entry::new(Outcome::Asked));
        next.during(async {
            let elsewhere = tokio::spawn(async { NextWrite::of_task().is_none() });
            assert!(elsewhere.await.unwrap());
            let found = NextWrite::of_task().unwrap();
            assert_eq!(found.take().unwrap().outcome, Outcome::Asked);
            assert!(found.take().is_none());
        })
        .await;
        assert!(next.take().is_none());
    }
}
