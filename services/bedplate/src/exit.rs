//! The exit statuses of `bedplate`, which scripts rely on.

use std::fmt::Write as _;
use std::io;

use openstack::CloudError;
use reqwest::StatusCode;

/// Why a command failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    Failed,
    /// The command line is wrong.
    Usage,
    /// The caller is not authenticated or not permitted.
    Refused,
    /// The resource does not exist.
    NotFound,
    TimedOut,
    /// A service does not answer, or cannot answer now.
    Unreachable,
    /// The reader of the output closed the pipe.
    PipeClosed,
}

/// Every status with its meaning.
pub(crate) const EXITS: [(u8, &str); 8] = [
    (0, "done"),
    (1, "failed: the service refused, the operation failed, or a check failed"),
    (2, "usage: the command line is invalid"),
    (3, "refused: the caller is not authenticated or not permitted"),
    (4, "not found: the resource does not exist or is not visible to the caller"),
    (5, "timed out: the operation did not complete within --timeout"),
    (6, "not reachable: a service does not answer or is unavailable"),
    (141, "closed pipe: the reader of the output closed the pipe"),
];

impl Exit {
    /// The exit status for scripts.
    pub(crate) fn code(self) -> u8 {
        match self {
            Exit::Failed => 1,
            Exit::Usage => 2,
            Exit::Refused => 3,
            Exit::NotFound => 4,
            Exit::TimedOut => 5,
            Exit::Unreachable => 6,
            Exit::PipeClosed => 141,
        }
    }

    /// The reason of an error, from the first cause that has one.
    pub(crate) fn of(error: &anyhow::Error) -> Exit {
        error.chain().find_map(of_cause).unwrap_or(Exit::Failed)
    }

    /// The reason of a refusal with this HTTP status.
    pub(crate) fn of_status(status: StatusCode) -> Exit {
        match status.as_u16() {
            401 | 403 => Exit::Refused,
            404 => Exit::NotFound,
            429 | 502..=504 => Exit::Unreachable,
            _ => Exit::Failed,
        }
    }
}

/// An error with an exit status.
#[derive(Debug, thiserror::Error)]
#[error("{sentence}")]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    /// The problem, and what to do.
    sentence: String,
    source: Option<reqwest::Error>,
}

impl Failure {
    pub(crate) fn new(exit: Exit, sentence: impl Into<String>) -> Failure {
        Failure { exit, sentence: sentence.into(), source: None }
    }

    /// Makes the failure of a service that does not answer.
    pub(crate) fn unreachable(sentence: String, source: reqwest::Error) -> Failure {
        Failure { exit: Exit::Unreachable, sentence, source: Some(source) }
    }

    /// Makes the failure of a wrong command line that clap does not detect.
    pub(crate) fn usage(sentence: impl Into<String>) -> Failure {
        Failure::new(Exit::Usage, sentence)
    }
}

fn of_cause(cause: &(dyn std::error::Error + 'static)) -> Option<Exit> {
    if let Some(failure) = cause.downcast_ref::<Failure>() {
        return Some(failure.exit);
    }
    if let Some(error) = cause.downcast_ref::<io::Error>() {
        return (error.kind() == io::ErrorKind::BrokenPipe).then_some(Exit::PipeClosed);
    }
    cause.downcast_ref::<CloudError>().map(of_cloud)
}

fn of_cloud(error: &CloudError) -> Exit {
    match error {
        CloudError::Unreachable { .. } | CloudError::Untrusted { .. } | CloudError::Busy { .. } => {
            Exit::Unreachable
        }
        CloudError::Unauthorized(_) | CloudError::Forbidden(_) => Exit::Refused,
        CloudError::NotFound(_) | CloudError::NoEndpoint { .. } => Exit::NotFound,
        CloudError::InvalidId { .. } => Exit::NotFound,
        CloudError::Failed(_)
        | CloudError::Conflict(_)
        | CloudError::QuotaExceeded(_)
        | CloudError::Refused(_)
        | CloudError::Malformed { .. } => Exit::Failed,
    }
}

/// The statuses for `--help`.
pub(crate) fn help() -> String {
    let mut help = "Exit status:\n".to_owned();
    for (code, meaning) in EXITS {
        // Writing to a String does not fail.
        let _ = writeln!(help, "  {code:<4} {meaning}");
    }
    help.push_str("\nErrors go to standard error, output to standard output.");
    help
}

#[cfg(test)]
mod tests {
    use anyhow::Context;

    use super::*;

    #[test]
    fn every_status_is_documented() {
        let codes: Vec<u8> = EXITS.iter().map(|(code, _)| *code).collect();
        for exit in [
            Exit::Failed,
            Exit::Usage,
            Exit::Refused,
            Exit::NotFound,
            Exit::TimedOut,
            Exit::Unreachable,
            Exit::PipeClosed,
        ] {
            assert!(codes.contains(&exit.code()), "{exit:?}");
        }
    }

    #[test]
    fn the_readme_has_the_same_statuses() {
        let readme = include_str!("../README.md");
        for (code, meaning) in EXITS {
            assert!(readme.contains(&format!("{code:<4} {meaning}")), "{code} {meaning}");
        }
    }

    #[test]
    fn the_status_is_found_in_a_wrapped_cause() {
        let cause = Failure::new(Exit::TimedOut, "not yet");
        let error: anyhow::Error = Err::<(), _>(cause).context("while waiting").unwrap_err();
        assert_eq!(Exit::of(&error), Exit::TimedOut);
        let closed: anyhow::Error = io::Error::from(io::ErrorKind::BrokenPipe).into();
        assert_eq!(Exit::of(&closed), Exit::PipeClosed);
        assert_eq!(Exit::of(&anyhow::anyhow!("no")), Exit::Failed);
    }

    #[test]
    fn the_http_status_decides_the_exit_status() {
        let exit = |status| Exit::of_status(StatusCode::from_u16(status).unwrap());
        assert_eq!([401, 403].map(exit), [Exit::Refused; 2]);
        assert_eq!(exit(404), Exit::NotFound);
        assert_eq!([429, 502, 503, 504].map(exit), [Exit::Unreachable; 4]);
        assert_eq!([400, 409, 500].map(exit), [Exit::Failed; 3]);
    }
}
