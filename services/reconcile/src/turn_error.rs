//! The end of a turn that failed.

use std::error::Error;
use std::fmt::Display;
use std::time::Duration;

use decision::Requeue;
use tracing::{debug, error, warn};

use crate::Watch;

/// An error that ends a turn. The next turn is the retry.
pub trait TurnError: Error {
    /// Returns what the error means for the next turn.
    fn kind(&self) -> TurnErrorKind;
}

/// The meaning of an error for the next turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnErrorKind {
    /// Another writer was faster: the next turn reads the record again, immediately.
    Stale,
    /// The database does not answer now.
    Database,
    /// The lease of this process has passed, so another process works on the record.
    Elsewhere,
    /// Everything else. A person has to look at the log.
    Failed,
}

/// The pauses before the next turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPauses {
    /// After the database did not answer.
    pub database: Duration,
    /// After any other error.
    pub failed: Duration,
}

/// Returns when the next turn of `subject` is due, and logs the error that ended this one.
pub fn requeue<E: TurnError>(
    ended: Result<Requeue, E>,
    subject: impl Display,
    watch: &Watch,
    pauses: RetryPauses,
) -> Requeue {
    let error = match ended {
        Ok(due) => return due,
        Err(error) => error,
    };
    match error.kind() {
        TurnErrorKind::Stale => Requeue::Now,
        TurnErrorKind::Database => {
            watch.failed();
            warn!(error = with_sources(&error), "the turn of {subject} waits for the database");
            Requeue::After(pauses.database)
        }
        TurnErrorKind::Elsewhere => {
            debug!("the turn of {subject} ended: {error}");
            Requeue::After(pauses.failed)
        }
        TurnErrorKind::Failed => {
            error!(
                error = with_sources(&error),
                "the turn of {subject} failed and will be retried"
            );
            Requeue::After(pauses.failed)
        }
    }
}

/// Formats an error with all its sources on one line.
pub fn with_sources(error: &dyn Error) -> String {
    let sources = std::iter::successors(Some(error), |&error| error.source());
    sources.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
