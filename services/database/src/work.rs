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

/// Runs a body on a connection of a database, only reads, and returns what the body returns:
/// `reading!(self.database, |c| node::find(c, &ident).await)`.
///
/// A macro, because Rust cannot yet demand of an async closure that its future is `Send`; a function would need the body to be boxed by
/// every caller.
#[macro_export]
macro_rules! reading {
    ($database:expr, |$connection:ident| $body:expr) => {
        $database.read(move |$connection| ::std::boxed::Box::pin(async move { $body })).await
    };
}

/// Runs a body that writes, commits what the body wrote, and returns what the body returns:
/// `writing!(self.database, OneStatement, |c| node::insert(c, &node).await)`.
#[macro_export]
macro_rules! writing {
    ($database:expr, $kind:expr, |$connection:ident| $body:expr) => {
        $database
            .write($kind, move |$connection| ::std::boxed::Box::pin(async move { $body }))
            .await
    };
}
