//! Why a letter was not sent.

/// Why a letter was not sent.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SendError {
    /// The receiver accepts nothing at the moment, so its other letters wait as well.
    #[error("{0}")]
    Unreachable(String),
    /// The receiver refuses this letter; other letters may still be accepted.
    #[error("{0}")]
    Refused(String),
}
