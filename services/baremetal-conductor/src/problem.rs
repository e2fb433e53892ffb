//! From a driver's error to what a plan can bear with.

use std::error::Error;

use baremetal_core::{Problem, Reason};
use bmc::BmcError;

/// The difficulty a BMC's error is.
pub(crate) fn of_bmc(error: &BmcError) -> Problem {
    let reason = match error {
        BmcError::Unreachable { .. } | BmcError::Busy { .. } | BmcError::Malformed { .. } => {
            Reason::BmcUnreachable
        }
        BmcError::Untrusted { .. } | BmcError::Unauthorized { .. } => Reason::BmcRefusesUs,
        BmcError::InUse { .. } | BmcError::Refused { .. } | BmcError::Unsupported { .. } => {
            Reason::BmcFailed
        }
    };
    Problem { reason, cause: chain(error), transient: error.is_transient() }
}

/// An error with its sources, in one line.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(next) = source {
        text += &format!(": {next}");
        source = next.source();
    }
    text
}
