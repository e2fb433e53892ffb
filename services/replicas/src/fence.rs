//! The fence of a conductor that shares its database: no effect begins after its lease has passed.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use reconcile::Mutation;
use tokio::time::Instant;

/// How long effects are permitted after a renewal of the lease. An effect that was sent at the end has a second to arrive.
pub(crate) const LASTS: Duration = Duration::from_secs(5);

/// The lease of this conductor has passed, so another conductor may do its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the lease of this conductor has passed, so another conductor may do its work")]
pub struct LeasePassed;

/// The fence of this process, by the monotonic clock. A process that was stopped for a while finds it closed, and no setting of the clock
/// opens it. Clones are one fence. The default is the fence of a conductor without a lease, which is always open.
#[derive(Clone, Debug, Default)]
pub struct Fence(Option<Arc<Mutex<Option<Instant>>>>);

impl Fence {
    /// A fence that is closed until the conductor gets a lease.
    pub fn closed() -> Fence {
        Fence(Some(Arc::default()))
    }

    /// Runs an effect as long as effects are permitted. The fence is checked before each step of the effect, so a process that was stopped in
    /// the middle of one sends nothing more.
    pub async fn permit<T>(&self, effect: impl Future<Output = T>) -> Result<T, LeasePassed> {
        let mut effect = pin!(effect);
        let step = |task: &mut Context<'_>| match self.check() {
            Ok(()) => effect.as_mut().poll(task).map(Ok),
            Err(passed) => Poll::Ready(Err(passed)),
        };
        poll_fn(step).await
    }

    /// Runs an effect that is a part of a permitted one. The fence is checked right before each step of the part too; after the lease has
    /// passed the part never ends, and the permitted effect around it fails.
    pub async fn hold<T>(&self, part: impl Future<Output = T>) -> T {
        let mut part = pin!(part);
        let step = |task: &mut Context<'_>| match self.check() {
            Ok(()) => part.as_mut().poll(task),
            Err(LeasePassed) => {
                // The permitted effect has to look at the fence. If the lease was renewed meanwhile, it goes on with this part.
                task.waker().wake_by_ref();
                Poll::Pending
            }
        };
        poll_fn(step).await
    }

    /// Returns whether effects are permitted.
    pub fn check(&self) -> Result<(), LeasePassed> {
        let Some(until) = &self.0 else { return Ok(()) };
        if Mutation::NoFence.is_made() {
            return Ok(());
        }
        let until = *locked(until);
        if until.is_some_and(|until| Instant::now() < until) { Ok(()) } else { Err(LeasePassed) }
    }

    /// Permits effects until then.
    pub fn open(&self, until: Instant) {
        if let Some(now) = &self.0 {
            *locked(now) = Some(until);
        }
    }

    /// Permits no effect any more.
    pub fn close(&self) {
        if let Some(until) = &self.0 {
            *locked(until) = None;
        }
    }
}

fn locked(until: &Mutex<Option<Instant>>) -> MutexGuard<'_, Option<Instant>> {
    // A panic while the lock is held leaves the time intact, so the poisoned lock can be used.
    until.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn effects_are_permitted_until_the_lease_has_passed() {
        let fence = Fence::closed();
        let gate = fence.clone();
        assert_eq!(gate.check(), Err(LeasePassed));
        fence.open(Instant::now() + Duration::from_secs(5));
        assert_eq!(gate.check(), Ok(()));
        advance(Duration::from_secs(6)).await;
        assert_eq!(gate.check(), Err(LeasePassed));
        fence.open(Instant::now() + Duration::from_secs(5));
        fence.close();
        assert_eq!(gate.check(), Err(LeasePassed));
    }

    #[tokio::test(start_paused = true)]
    async fn an_effect_in_progress_sends_nothing_after_the_lease_has_passed() {
        let fence = Fence::closed();
        fence.open(Instant::now() + Duration::from_secs(5));
        assert_eq!(fence.permit(async { 7 }).await, Ok(7));
        let mut sent = 0;
        let effect = async {
            sent += 1;
            tokio::time::sleep(Duration::from_secs(60)).await;
            sent += 1;
        };
        assert_eq!(fence.permit(effect).await, Err(LeasePassed));
        assert_eq!(sent, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_part_of_an_effect_does_not_begin_after_the_lease_has_passed() {
        let fence = Fence::closed();
        fence.open(Instant::now() + Duration::from_secs(5));
        assert_eq!(fence.permit(fence.hold(async { 7 })).await, Ok(7));
        let mut sent = false;
        let effect = async {
            // The process is stopped between two looks at the fence.
            fence.close();
            fence.hold(async { sent = true }).await;
        };
        assert_eq!(fence.permit(effect).await, Err(LeasePassed));
        assert!(!sent);
    }

    #[tokio::test]
    async fn a_conductor_that_is_alone_needs_no_lease() {
        let fence = Fence::default();
        fence.close();
        assert_eq!(fence.check(), Ok(()));
    }
}
