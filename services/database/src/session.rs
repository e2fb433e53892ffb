//! A connection to PostgreSQL whose statements have a timeout.

use std::io;
use std::time::{Duration, Instant};

use sqlx::postgres::{PgConnection, PgDatabaseError, PgSeverity};

/// A connection to PostgreSQL. The methods of [`crate::Connection`] use it.
pub struct PostgresConnection {
    pub(crate) connection: PgConnection,
    pub(crate) opened_at: Instant,
    /// The time that each statement may take.
    pub(crate) timeout: Duration,
    /// A statement had no result, so the protocol is at an unknown point; or the server has ended the session.
    pub(crate) is_broken: bool,
}

impl PostgresConnection {
    /// The connection that a statement is sent on, and the time that its result may take.
    pub(crate) fn begin_statement(&mut self) -> (&mut PgConnection, Duration) {
        (&mut self.connection, self.timeout)
    }

    /// The result of a statement; a timeout becomes an error.
    pub(crate) fn end_statement<T>(
        &mut self,
        result: Result<Result<T, sqlx::Error>, tokio::time::error::Elapsed>,
    ) -> Result<T, sqlx::Error> {
        let result = result.unwrap_or_else(|_| Err(late("answer a statement", self.timeout)));
        self.is_broken |= result.as_ref().is_err_and(|error| !is_refusal(error));
        result
    }
}

/// Returns whether the server has refused a statement and continues the session.
pub(crate) fn is_refusal(error: &sqlx::Error) -> bool {
    let refused = error.as_database_error();
    let refused = refused.and_then(|error| error.try_downcast_ref::<PgDatabaseError>());
    refused.is_some_and(|error| !matches!(error.severity(), PgSeverity::Fatal | PgSeverity::Panic))
}

pub(crate) fn late(what: &str, limit: Duration) -> sqlx::Error {
    let said = format!("PostgreSQL did not {what} within {} s", limit.as_secs_f32());
    sqlx::Error::Io(io::Error::new(io::ErrorKind::TimedOut, said))
}
