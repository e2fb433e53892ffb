//! A job that precedes a write, in the same transaction.

use std::sync::{Arc, OnceLock};

use crate::{BoxFuture, Connection, Result};

/// A job that runs before a write: both are committed, or neither is. If the job fails, the write is not begun.
pub trait Preceding: Send + Sync {
    fn run<'c>(&'c self, connection: &'c mut Connection) -> BoxFuture<'c, Result<()>>;

    /// Called if the job was not committed.
    fn undone(&self);
}

/// Finds the job that precedes the next write of the current task.
pub type FindPreceding = dyn Fn() -> Option<Arc<dyn Preceding>> + Send + Sync;

/// The function that finds the job, once it is set.
pub(crate) type PrecedingFinder = Arc<OnceLock<Box<FindPreceding>>>;
