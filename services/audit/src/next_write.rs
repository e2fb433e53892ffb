//! A row that the next write of a request carries, in the same transaction.

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::Entry;

thread_local! {
    /// The holder of the request that this thread polls.
    static POLLED: RefCell<Option<NextWrite>> = const { RefCell::new(None) };
}

/// The holder of one request: it has the row of the request until a write takes the row.
#[derive(Clone, Default)]
pub struct NextWrite(Arc<Mutex<Option<Entry>>>);

impl NextWrite {
    /// Runs the request. Its writes find the row by [`NextWrite::of_task`]; the writes of tasks that the request starts do not.
    pub async fn during<F: Future>(&self, request: F) -> F::Output {
        let mut request = pin!(request);
        poll_fn(|context| {
            let _polled = Polled(POLLED.replace(Some(self.clone())));
            request.as_mut().poll(context)
        })
        .await
    }

    /// Returns the holder of the request that the current task runs; `None` outside of a request.
    pub fn of_task() -> Option<NextWrite> {
        POLLED.with_borrow(Clone::clone)
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

/// Puts back what was there before a request was polled.
struct Polled(Option<NextWrite>);

impl Drop for Polled {
    fn drop(&mut self) {
        POLLED.set(self.0.take());
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Poll, Waker};
    use std::thread;

    use super::*;
    use crate::Outcome;

    #[test]
    fn only_the_task_of_the_request_finds_the_row_and_one_write_takes_it() {
        assert!(NextWrite::of_task().is_none());
        let next = NextWrite::default();
        next.hold(Entry::new(Outcome::Asked));
        let request = pin!(next.during(async {
            let elsewhere = thread::spawn(|| NextWrite::of_task().is_none());
            assert!(elsewhere.join().unwrap());
            let found = NextWrite::of_task().unwrap();
            assert_eq!(found.take().unwrap().outcome, Outcome::Asked);
            assert!(found.take().is_none());
        }));
        let polled = request.poll(&mut Context::from_waker(Waker::noop()));
        assert_eq!(polled, Poll::Ready(()));
        assert!(NextWrite::of_task().is_none() && next.take().is_none());
    }
}
