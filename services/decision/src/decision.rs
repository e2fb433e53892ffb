//! The result of a decision: everything that a turn does next.

use std::convert::Infallible;

use crate::Requeue;

/// The result of a decision about one record. The turn logs the lines, writes the change, and then performs the actions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision<C, A = Infallible> {
    pub log: Vec<LogLine>,
    /// The change to the record, which is written before any action is performed.
    pub change: Option<C>,
    /// The actions outside of the database, in the order in which they are performed. Every action may be repeated without harm.
    pub actions: Vec<A>,
    /// When the next turn is due, unless the result of an action makes it earlier.
    pub next_turn: Requeue,
}

/// A line for the service's log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLine {
    pub level: LogLevel,
    pub message: String,
    /// The cause of a problem, logged as a field of its own.
    pub cause: Option<String>,
}

/// The level of a line for the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogLevel {
    /// A change of state.
    Info,
    /// An oddity that the service survives.
    Warn,
}

impl<C, A> Decision<C, A> {
    /// Does nothing until the next turn.
    pub fn rest(next_turn: Requeue) -> Self {
        Decision { log: Vec::new(), change: None, actions: Vec::new(), next_turn }
    }

    /// Writes `change`.
    pub fn write(change: C, next_turn: Requeue) -> Self {
        Decision { change: Some(change), ..Decision::rest(next_turn) }
    }

    /// Performs `action` and changes nothing before. The result of the action decides when the next turn is due.
    pub fn act(action: A) -> Self {
        Decision { actions: vec![action], ..Decision::rest(Requeue::OnChange) }
    }

    /// Returns the decision with a line for the log about a change of state.
    pub fn info(self, message: impl Into<String>) -> Self {
        self.with_line(LogLevel::Info, message.into(), None)
    }

    /// Returns the decision with a line for the log about an oddity.
    pub fn warn(self, message: impl Into<String>) -> Self {
        self.with_line(LogLevel::Warn, message.into(), None)
    }

    /// Returns the decision with a line for the log about an oddity and its cause.
    pub fn warn_of(self, cause: impl ToString, message: impl Into<String>) -> Self {
        self.with_line(LogLevel::Warn, message.into(), Some(cause.to_string()))
    }

    fn with_line(mut self, level: LogLevel, message: String, cause: Option<String>) -> Self {
        self.log.push(LogLine { level, message, cause });
        self
    }
}

impl<C> Decision<C> {
    /// Returns the same decision for a turn whose other decisions have actions of type `A`.
    pub fn without_actions<A>(self) -> Decision<C, A> {
        let Decision { log, change, actions: _, next_turn } = self;
        Decision { log, change, actions: Vec::new(), next_turn }
    }
}
