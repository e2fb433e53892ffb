//! One turn: observe, decide, write, perform, conclude.

use decision::{Decision, LogLevel, LogLine, Requeue};
use tracing::{debug, info, warn};

use crate::mutation::Mutation;

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
    fn decide(&self, record: &Self::Record, seen: &Self::Seen) -> Decided<Self>;

    /// Writes the change, if the record still has the version that was read, and returns the record with its new version.
    fn write(
        &self,
        record: Self::Record,
        change: Self::Change,
    ) -> impl Future<Output = Result<Self::Record, Self::Error>> + Send;

    fn perform(
        &self,
        record: &Self::Record,
        action: Self::Action,
    ) -> impl Future<Output = Result<Self::Outcome, Self::Error>> + Send;

    /// Whether the actions that follow in the same decision are skipped after this result.
    fn skips_rest(&self, _: &Self::Outcome) -> bool {
        false
    }

    /// Decides, in the same way, what follows from the results of the actions. The actions of the conclusion are performed after its change
    /// is written, and their results lead to one more conclusion.
    fn conclude(&self, record: &Self::Record, outcomes: Vec<Self::Outcome>) -> Decided<Self>;
}

/// The decision of a turn, or its error.
pub type Decided<T> =
    Result<Decision<<T as Turn>::Change, <T as Turn>::Action>, <T as Turn>::Error>;

/// Executes the turn of `record`, until a decision has no actions. Returns the record as it is now, and when the next turn is due: at the
/// earliest time of all decisions.
pub async fn execute<T: Turn>(
    turn: &T,
    record: T::Record,
) -> Result<(T::Record, Requeue), T::Error> {
    let seen = turn.observe(&record).await?;
    let mut decision = turn.decide(&record, &seen)?;
    let (mut record, mut due) = (record, Requeue::OnChange);
    loop {
        let early = match Mutation::ActBeforeRecord.is_made() {
            true => perform(turn, &record, std::mem::take(&mut decision.actions)).await?,
            false => Vec::new(),
        };
        let (written, actions, next_turn) = write(turn, record, decision).await?;
        (record, due) = (written, due.min(next_turn));
        if actions.is_empty() && early.is_empty() {
            return Ok((record, due));
        }
        let mut outcomes = perform(turn, &record, actions).await?;
        outcomes.extend(early);
        decision = turn.conclude(&record, outcomes)?;
    }
}

/// Performs the actions in their order. Returns their results.
async fn perform<T: Turn>(
    turn: &T,
    record: &T::Record,
    actions: Vec<T::Action>,
) -> Result<Vec<T::Outcome>, T::Error> {
    let mut outcomes = Vec::with_capacity(actions.len());
    for action in actions {
        let outcome = turn.perform(record, action).await?;
        let skips_rest = turn.skips_rest(&outcome);
        outcomes.push(outcome);
        if skips_rest {
            break;
        }
    }
    Ok(outcomes)
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
