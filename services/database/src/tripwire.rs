//! Lets a test stop a program at a write, or at another effect, as if the program had died there.

use std::fmt;
use std::sync::Arc;

use crate::BoxFuture;

/// A hook that a test installs, called before and after each effect. A production program has no hook.
#[derive(Clone, Default)]
pub struct Tripwire(Option<Arc<dyn Fn(Point) -> BoxFuture<'static, ()> + Send + Sync>>);

/// A place in the program where the hook is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    pub side: Side,
    /// The name of the effect; for a write, the type name of the work.
    pub effect: &'static str,
}

/// Before or after an effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// No part of the effect has happened.
    Before,
    /// The whole effect has happened, but the caller does not have the result yet.
    After,
}

impl Tripwire {
    /// Installs the hook `at`. To let the program die at a point, the hook returns a future that never ends, and the test drops the
    /// runtime.
    pub fn new(at: impl Fn(Point) -> BoxFuture<'static, ()> + Send + Sync + 'static) -> Tripwire {
        Tripwire(Some(Arc::new(at)))
    }

    /// Runs `work`, the effect named `effect`, between two calls of the hook.
    pub async fn around<T>(&self, effect: &'static str, work: impl Future<Output = T>) -> T {
        let Some(at) = &self.0 else { return work.await };
        at(Point { side: Side::Before, effect }).await;
        let done = work.await;
        at(Point { side: Side::After, effect }).await;
        done
    }
}

impl fmt::Debug for Tripwire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Tripwire(armed)" } else { "Tripwire" })
    }
}
