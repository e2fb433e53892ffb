//! Why a record that limits or a quorum restrict was not written.

use cluster_core::{DrainRefused, QuotaRefused};
use database::StoreError;

/// Why a record that counts towards limits was not written.
#[derive(Debug, thiserror::Error)]
pub enum QuotaWriteError {
    #[error(transparent)]
    Refused(#[from] QuotaRefused),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why a drain was not granted.
#[derive(Debug, thiserror::Error)]
pub enum DrainGrantError {
    #[error(transparent)]
    Refused(#[from] DrainRefused),
    #[error(transparent)]
    Store(#[from] StoreError),
}
