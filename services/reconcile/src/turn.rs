//! One turn: observe, decide, write, perform, conclude.

use std::convert::Infallible;

use decision::{Decision, LogLevel, LogLine, Requeue};
use tracing::{debug, info, warn};

/// A turn, or a part of one, for one kind of record. A core decides, a conductor does everything else.
///
/// A crash between any two steps loses nothing: a change is written before the actions that it announces, and every action may be repeated.
pub trait Turn: Sync {
    /// The record, with the version that was read.
    type Record: Send + Sync;
    /// An observation of the world outside of the database.
    type Seen: Send + Sync;
    /// A change to the record, with everything that is written in the same transaction.
    type Change: Send;
    type Action: Send;
    /// The result of an action.
    type Outcome: Send;
    type Error: Send;

    /// Observes as much of the world as the decision needs.
    fn observe(
        &self,
        record: &Self::Record,
    ) -> impl Future<Output = Result<Self::Seen, Self::Error>> + Send;

    /// Decides by a pure function of the core. Reads no clock but that of the settings, and contacts nothing.
    fn decide(
        &self,
        record: &Self::Record,
        seen: &Self::Seen,
    ) -> Result<Decision<Self::Change, Self::Action>, Self::Error>;

    /// Writes the change, if the record still has the version that was read, and returns the record with its new version.
    fn write(
        &self,
        record: Self::Record,
        change: Self::Change,
    ) -> impl Future<Output = Result<Self::Record, Self::Error>> + Send;

    /// Performs an action.
    fn perform(
        &self,
        record: &Self::Record,
        action: Self::Action,
    ) -> impl Future<Output = Result<Self::Outcome, Self::Error>> + Send;

    /// Decides, in the same way, what follows from the results of the actions.
    fn conclude(
        &self,
        record: &Self::Record,
        outcomes: Vec<Self::Outcome>,
    ) -> Result<Decision<Self::Change>, Self::Error>;
}

/// Executes the turn of `record`. Returns the record as it is now, and when the next turn is due.
pub async fn execute<T: Turn>(
    turn: &T,
    record: T::Record,
) -> Result<(T::Record, Requeue), T::Error> {
    let seen = turn.observe(&record).await?;
    let decided = turn.decide(&record, &seen)?;
    let (record, actions, due) = write(turn, record, decided).await?;
    if actions.is_empty() {
        return Ok((record, due));
    }
    let mut outcomes = Vec::with_capacity(actions.len());
    for action in actions {
        outcomes.push(turn.perform(&record, action).await?);
    }
    let concluded: Decision<_, Infallible> = turn.conclude(&record, outcomes)?;
    let (record, _, then_due) = write(turn, record, concluded).await?;
    Ok((record, due.min(then_due)))
}

/// Logs and writes a decision. Returns the record as it is now, and the rest of the decision.
async fn write<T: Turn, A>(
    turn: &T,
    record: T::Record,
    decision: Decision<T::Change, A>,
) -> Result<(T::Record, Vec<A>, Requeue), T::Error> {
    let Decision { log, change, actions, next_turn } = decision;
    if change.is_none() && actions.is_empty() {
        debug!(?next_turn, "nothing has changed");
    }
    for LogLine { level, message, cause } in log {
        match level {
            LogLevel::Info => info!(cause, "{message}"),
            LogLevel::Warn => warn!(cause, "{message}"),
        }
    }
    let record = match change {
        Some(change) => turn.write(record, change).await?,
        None => record,
    };
    Ok((record, actions, next_turn))
}

#[cfg(test)]
mod tests;
