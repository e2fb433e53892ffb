//! Why a turn ended without a result.

use cluster_store::StoreError;
use reconcile::TurnErrorKind;

use crate::cluster_secrets::KeysError;

/// Why a turn ended without a result. The next turn is the retry.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TurnError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Keys(KeysError),
}

impl reconcile::TurnError for TurnError {
    fn kind(&self) -> TurnErrorKind {
        match self {
            TurnError::Store(StoreError::Stale) => TurnErrorKind::Stale,
            TurnError::Store(error) if error.is_transient() => TurnErrorKind::Database,
            TurnError::Store(_) | TurnError::Keys(_) => TurnErrorKind::Failed,
        }
    }
}

impl From<KeysError> for TurnError {
    fn from(error: KeysError) -> Self {
        match error {
            KeysError::Store(error) => TurnError::Store(error),
            error @ (KeysError::Seal(_)
            | KeysError::Malformed(_)
            | KeysError::Make(_)
            | KeysError::Sign(_)) => TurnError::Keys(error),
        }
    }
}
