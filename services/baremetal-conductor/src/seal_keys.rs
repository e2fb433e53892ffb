//! Lists, rotates and retires the keys that seal secrets, and re-encrypts records in the background.

use std::sync::Arc;
use std::time::Duration;

use baremetal_store::{ReencryptionResult, StoreError};
use sealing::{KeyFileError, KeyUsage, Keyring, RetireError};
use tokio::time::interval;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::conductor::Conductor;
use crate::context::TurnContext;
use crate::problem::chain;

/// How often records are checked for older keys, because another process may have rotated the key.
const LOOK_EVERY: Duration = Duration::from_secs(60);

impl Conductor {
    /// Returns all keys, each with the number of records that need it.
    pub async fn keys(&self) -> Result<Vec<KeyUsage>, StoreError> {
        let Some(keyring) = self.context.store.keyring() else { return Ok(Vec::new()) };
        let stored = self.context.store.seals_in_use().await?;
        let stored: Vec<_> = stored.into_iter().map(|(id, records)| (id, records, 0)).collect();
        Ok(KeyUsage::count(&keyring.keys(), &stored))
    }

    /// Creates a key that seals from now on at all living conductors, and returns its id. Records sealed with older keys are re-encrypted soon.
    pub async fn rotate_keys(&self) -> Result<String, KeyFileError> {
        let keyring = self.context.store.keyring().ok_or(KeyFileError::NoFile)?;
        let id = replicas::rotate_key(&self.context.membership, keyring).await?;
        self.context.rotated.notify_one();
        Ok(id)
    }

    /// Removes a key that no record needs any more.
    pub async fn retire_key(&self, id: &str) -> Result<(), RetireError<StoreError>> {
        let store = &self.context.store;
        RetireError::check(&self.keys().await.map_err(RetireError::Store)?, id)?;
        // From here on the database refuses records that are sealed with the key.
        match store.forget_seal(id).await {
            Ok(()) => {}
            Err(StoreError::InUse { by }) => {
                return Err(RetireError::Needed { id: id.to_owned(), by: by.to_owned() });
            }
            Err(why) => return Err(RetireError::Store(why)),
        }
        let keyring = store.keyring().ok_or(RetireError::File(KeyFileError::NoFile))?.clone();
        let id = id.to_owned();
        on_blocking_thread(move || keyring.retire(&id)).await.map_err(RetireError::File)
    }
}

/// Runs `work`, which writes files, on a thread where it does not block other tasks.
async fn on_blocking_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, KeyFileError> + Send + 'static,
) -> Result<T, KeyFileError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|ended| Err(KeyFileError::BrokeOff(Box::new(ended))))
}

/// Re-encrypts records that are sealed with older keys, until `stop` is cancelled.
pub(crate) async fn run(context: Arc<TurnContext>, stop: CancellationToken) {
    let keyring: Option<Arc<Keyring>> = context.store.keyring().cloned();
    let Some(keyring) = keyring else { return };
    let mut due = interval(LOOK_EVERY);
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = context.rotated.notified() => {}
            _ = due.tick() => {}
        }
        let resealed = tokio::select! {
            () = stop.cancelled() => return,
            resealed = context.store.reseal() => resealed,
        };
        match resealed {
            Ok(ReencryptionResult { done: 0, .. }) => {}
            Ok(ReencryptionResult { done, .. }) => {
                let key = keyring.keys().current().to_owned();
                info!(key.id = key, "re-encrypted {done} records with key {key}");
            }
            Err(error) => warn!(error = chain(&error), "cannot re-encrypt secrets now"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error;

    use super::*;

    #[tokio::test]
    async fn a_panic_during_file_access_is_reported_as_such() {
        let work = || -> Result<(), KeyFileError> { unreachable!("no such key") };
        let broke_off = on_blocking_thread(work).await.unwrap_err();
        assert!(matches!(broke_off, KeyFileError::BrokeOff(_)), "{broke_off}");
        let cause = broke_off.source().unwrap().to_string();
        assert!(cause.contains("panicked") && cause.contains("no such key"), "{cause}");
    }
}
