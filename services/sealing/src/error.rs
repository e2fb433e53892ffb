//! Why a secret cannot be sealed or opened.

/// Why a secret cannot be sealed or opened.
#[derive(Debug, thiserror::Error)]
pub enum SealError {
    #[error("line {line} of the key file is not ID:BASE64 with 32 bytes")]
    BadLine {
        /// Counted from 1.
        line: usize,
    },
    #[error("line {line} of the key file: the id is the fingerprint of another key")]
    WrongId {
        /// Counted from 1.
        line: usize,
    },
    #[error("the key file holds no key")]
    NoKeys,
    #[error("the operating system returned no random numbers")]
    NoRandom,
    #[error(
        "the record was sealed by key {id}, which the key file does not hold: restore the key file that holds this key"
    )]
    UnknownKey { id: String },
    /// The text was changed, is not a sealed text, or was sealed for another place.
    #[error(
        "the stored secret cannot be opened: it was changed, or was sealed by other keys or for another place"
    )]
    CannotOpen,
}
