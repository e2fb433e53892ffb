//! Converts errors to the form in which the conductor shows them.

use std::error::Error;

use agent_protocol::CommandError;

/// Makes the error of a failed step.
pub(crate) fn failure(kind: &str, message: &str, details: &str) -> CommandError {
    CommandError {
        kind: kind.to_owned(),
        code: 500,
        message: message.to_owned(),
        details: details.to_owned(),
    }
}

/// Joins an error and its causes on one line: `cannot write to /dev/vda: No space left on device`.
pub(crate) fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let words = cause.to_string();
        if !text.ends_with(&words) {
            text.push_str(": ");
            text.push_str(&words);
        }
        next = cause.source();
    }
    text
}
