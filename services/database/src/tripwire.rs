//! Where a test stops a program as if it had died there: before and after each write, and each other effect that is led through it.

use std::fmt;
use std::sync::Arc;

use crate::BoxFuture;

/// What a test has done at each point that a program passes. A program that runs for good has none.
#[derive(Clone, Default)]
pub struct Tripwire(Option<Arc<dyn Fn(Point) -> BoxFuture<'static, ()> + Send + Sync>>);

/// A place that a program passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// On which side of the effect.
    pub side: Side,
    /// Which effect: of a write, the type of the work that is done.
    pub effect: &'static str,
}

/// A side of an effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Nothing of it has been done.
    Before,
    /// All of it has been done, and nobody has been told.
    After,
}

impl Tripwire {
    /// Has `at` done at each point. A program that is to die there is held by a future that never ends, until its runtime is dropped.
    pub fn new(at: impl Fn(Point) -> BoxFuture<'static, ()> + Send + Sync + 'static) -> Tripwire {
        Tripwire(Some(Arc::new(at)))
    }

    /// Does `work`, whose effect is called so, between two points.
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
