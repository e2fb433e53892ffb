//! Problems of actions: converts a driver's error into the kind of problem that a plan handles.

use std::error::Error;
use std::io;

use baremetal_core::{Problem, Reason};
use baremetal_store::StoreError;
use bmc::BmcError;
use replicas::LeasePassed;

/// A result whose error is an [`ActionError`], unless it says otherwise.
pub(crate) type Result<T, E = ActionError> = std::result::Result<T, E>;

/// Why an action was not performed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ActionError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    LeasePassed(#[from] LeasePassed),
    /// The machine, its BMC or its agent did not do as asked.
    #[error("{}", .0.cause)]
    Machine(Problem),
}

impl From<Problem> for ActionError {
    fn from(problem: Problem) -> ActionError {
        ActionError::Machine(problem)
    }
}

/// The problem of a node whose fields are wrong.
pub(crate) fn bad_request(cause: String) -> Problem {
    Problem { reason: Reason::BadRequest, cause, transient: false }
}

/// The problem of a BMC that lacks a capability.
pub(crate) fn cannot(what: &str) -> Problem {
    let cause = format!("this BMC cannot {what}");
    Problem { reason: Reason::BmcFailed, cause, transient: false }
}

/// Converts a BMC's error into a problem of the node's work.
pub(crate) fn of_bmc(error: &BmcError) -> Problem {
    let reason = match error {
        BmcError::Unreachable { .. }
        | BmcError::Busy { .. }
        | BmcError::Stopped { .. }
        | BmcError::Malformed { .. } => Reason::BmcUnreachable,
        BmcError::Untrusted { .. }
        | BmcError::Unauthorized { .. }
        | BmcError::LoginWithheld { .. } => Reason::BmcRefusesUs,
        BmcError::InUse { .. } | BmcError::Refused { .. } | BmcError::Unsupported { .. } => {
            Reason::BmcFailed
        }
    };
    Problem { reason, cause: chain(error), transient: error.is_transient() }
}

/// Whether the BMC has surely not begun what it was asked for. After the other errors it may have.
pub(crate) fn is_refusal(error: &BmcError) -> bool {
    match error {
        BmcError::Unreachable { .. } | BmcError::Stopped { .. } | BmcError::Malformed { .. } => {
            false
        }
        BmcError::Untrusted { .. }
        | BmcError::Unauthorized { .. }
        | BmcError::LoginWithheld { .. }
        | BmcError::Busy { .. }
        | BmcError::InUse { .. }
        | BmcError::Refused { .. }
        | BmcError::Unsupported { .. } => true,
    }
}

/// Formats an error with all its sources on one line.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(next) = source {
        text += &format!(": {next}");
        source = next.source();
    }
    text
}

/// Finds an error of type `T` among an error and its sources.
pub(crate) fn find_cause<'a, T: Error + 'static>(
    error: &'a (dyn Error + 'static),
) -> Option<&'a T> {
    let mut next = Some(error);
    while let Some(cause) = next {
        if let Some(found) = cause.downcast_ref() {
            return Some(found);
        }
        // `io::Error::source` skips the wrapped error itself, so the wrapped error is looked at first.
        let wrapped = cause.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        next = wrapped.map(|it| it as &(dyn Error + 'static)).or_else(|| cause.source());
    }
    None
}
