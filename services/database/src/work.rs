//! Work on a connection: its future, and whether it may have to be undone.

use std::future::Future;
use std::pin::Pin;

/// A boxed future, so that jobs of different types fit into one queue.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Whether a job may be refused after it has written something, so that its writes have to be undone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteKind {
    /// A single statement writes, so there is never anything to undo.
    OneStatement,
    /// Several statements write, and only the first can be refused.
    OnlyFirstStatementCanFail,
    /// Several statements write, and any of them can be refused. The job runs in a savepoint.
    AnyStatementCanFail,
}
