//! The results of calls.

use std::time::Duration;

use crate::{CloudObject, Key, MemberName, MemberObservation, Problem};

/// The change that an action made, relative to the observation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ActionChange {
    /// The new state of an object.
    Object(Key, CloudObject),
    /// The new state of a member.
    Member(MemberName, MemberObservation),
}

/// Why a call failed, as far as later calls depend on the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallFailure {
    /// The reason for people.
    pub problem: Problem,
    /// Whether a retry soon is likely to succeed.
    pub is_transient: bool,
    /// When to retry, if the service said so.
    pub retry_after: Option<Duration>,
    /// The cloud's message when it failed to create an object, so that an immediate retry makes no sense.
    pub create_failure: Option<String>,
}

/// The results of all calls of a turn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallResults {
    /// The most severe problem.
    pub problem: Option<Problem>,
    pub failures: Vec<CallFailure>,
    /// Descriptions of objects that were deleted because the cloud failed at them.
    pub given_up: Vec<String>,
    /// Whether an object was deleted that disappears at once, so that the next turn need not wait.
    pub is_gone_soon: bool,
    /// Whether any action was planned besides creates and changes of rules.
    pub has_changed: bool,
}
