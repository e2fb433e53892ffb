//! Manages the keys that seal secrets: lists, adds and removes them, and re-encrypts stored secrets in the background.

use std::sync::Arc;
use std::time::Duration;

use cluster_store::{SealedSecret, SealedUserData, StoreError};
use sealing::{KeyFileError, KeyUsage, RetireError, SealError, SealingKeys};
use tokio::time::interval;
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use crate::Conductor;
use crate::context::ConductorContext;

/// How often to look for secrets that another key than the current one sealed: another process may have rotated the keys.
const LOOK_EVERY: Duration = Duration::from_secs(60);
/// How many secrets one transaction re-encrypts.
const PAGE: u32 = 50;

impl Conductor {
    /// Records the report key of members that redeemed claims before the key was recorded. The key is known as long as there is only one.
    pub(crate) async fn note_reports(&self) {
        let keys = self.context.keyring.keys();
        if keys.ids().count() == 1
            && let Err(error) = self.context.store.assume_report_key(keys.current()).await
        {
            warn!("cannot record the key of the report tokens: {error}");
        }
    }

    /// Returns the keys, and what each is needed for.
    pub async fn keys(&self) -> Result<Vec<KeyUsage>, StoreError> {
        let stored = self.context.store.seals_in_use().await?;
        Ok(KeyUsage::count(&self.context.keyring.keys(), &stored))
    }

    /// Makes a new key that seals from now on at all living conductors, and returns its id. Secrets of other keys are re-encrypted soon.
    pub async fn rotate_keys(&self) -> Result<String, KeyFileError> {
        let id = replicas::rotate_key(&self.context.membership, &self.context.keyring).await?;
        self.context.rotated.notify_one();
        Ok(id)
    }

    /// Removes a key that seals nothing any more, and from which no member's report token derives.
    pub async fn retire_key(&self, id: &str) -> Result<(), RetireError<StoreError>> {
        RetireError::check(&self.keys().await.map_err(RetireError::Store)?, id)?;
        // From here on the database refuses anything sealed with the key.
        match self.context.store.forget_seal(id).await {
            Ok(()) => {}
            Err(StoreError::InUse { by }) => {
                return Err(RetireError::Needed { id: id.to_owned(), by: by.to_owned() });
            }
            Err(why) => return Err(RetireError::Store(why)),
        }
        let (context, id) = (self.context.clone(), id.to_owned());
        off_the_runtime(move || context.keyring.retire(&id)).await.map_err(RetireError::File)
    }
}

/// Runs file access on a thread where blocking is allowed.
async fn off_the_runtime<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, KeyFileError> + Send + 'static,
) -> Result<T, KeyFileError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|ended| Err(KeyFileError::BrokeOff(Box::new(ended))))
}

/// Re-encrypts secrets that another key than the current one sealed, until `stop` is cancelled.
pub(crate) async fn run(context: Arc<ConductorContext>, stop: CancellationToken) {
    let mut due = interval(LOOK_EVERY);
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = context.rotated.notified() => {}
            _ = due.tick() => {}
        }
        tokio::select! {
            () = stop.cancelled() => return,
            resealed = reseal(&context) => if let Err(error) = resealed {
                warn!("cannot re-encrypt secrets: {error}");
            },
        }
    }
}

/// Re-encrypts all secrets of other keys with the current one, page by page. After an interruption the next run finds the rest.
async fn reseal(context: &ConductorContext) -> Result<(), StoreError> {
    let keys = context.keyring.keys();
    for (id, sealed, _) in context.store.seals_in_use().await? {
        if sealed == 0 || id == keys.current() {
            continue;
        }
        let done = secrets(context, &keys, &id).await? + user_data(context, &keys, &id).await?;
        info!(key.id = keys.current(), "re-encrypted {done} secrets with key {}", keys.current());
    }
    Ok(())
}

/// Re-encrypts secrets of clusters. Returns how many.
async fn secrets(
    context: &ConductorContext,
    keys: &SealingKeys,
    id: &str,
) -> Result<u64, StoreError> {
    let (mut after, mut done) = (None, 0);
    loop {
        let page = context.store.secrets_sealed_by(id, after.as_ref(), PAGE).await?;
        let anew: Vec<_> = page
            .iter()
            .filter_map(|secret| Some((secret.clone(), secret_anew(keys, secret)?)))
            .collect();
        let Some(last) = page.into_iter().next_back() else { return Ok(done) };
        after = Some(last);
        done += context.store.reseal_secrets(&anew).await?;
        info!("re-encrypted {} secrets, {done} so far", anew.len());
    }
}

/// Re-encrypts user-data of VMs that are not built yet. Returns how many.
async fn user_data(
    context: &ConductorContext,
    keys: &SealingKeys,
    id: &str,
) -> Result<u64, StoreError> {
    let (mut after, mut done) = (None, 0);
    loop {
        let page = context.store.user_data_sealed_by(id, after, PAGE).await?;
        let anew: Vec<_> = page
            .iter()
            .filter_map(|sealed_user_data| {
                Some((sealed_user_data.clone(), user_data_anew(keys, sealed_user_data)?))
            })
            .collect();
        let Some(last) = page.last() else { return Ok(done) };
        after = Some(last.vm);
        done += context.store.reseal_user_data(&anew).await?;
        info!("re-encrypted the user-data of {} VMs, {done} so far", anew.len());
    }
}

/// Returns the secret sealed with the current key; `None` if it cannot be opened.
fn secret_anew(keys: &SealingKeys, secret: &SealedSecret) -> Option<String> {
    let SealedSecret { cluster, name, sealed } = secret;
    let failed = |why| error!(cluster.id = %cluster, "the secret {name} cannot be unsealed: {why}");
    anew(keys, &secret.place(), sealed).map_err(failed).ok()
}

/// Returns the user-data sealed with the current key; `None` if it cannot be opened.
fn user_data_anew(keys: &SealingKeys, sealed_user_data: &SealedUserData) -> Option<String> {
    let failed =
        |why| error!(vm.id = %sealed_user_data.vm, "the user-data cannot be unsealed: {why}");
    anew(keys, &sealed_user_data.place(), &sealed_user_data.sealed).map_err(failed).ok()
}

fn anew(keys: &SealingKeys, place: &str, sealed: &str) -> Result<String, SealError> {
    keys.open(place, sealed).and_then(|opened| keys.seal(place, &opened))
}

#[cfg(test)]
mod tests {
    use std::error::Error;

    use super::*;

    #[tokio::test]
    async fn a_panic_during_file_access_is_reported_as_such() {
        let work = || -> Result<(), KeyFileError> { unreachable!("no such key") };
        let broke_off = off_the_runtime(work).await.unwrap_err();
        assert!(matches!(broke_off, KeyFileError::BrokeOff(_)), "{broke_off}");
        let cause = broke_off.source().unwrap().to_string();
        assert!(cause.contains("panicked") && cause.contains("no such key"), "{cause}");
    }
}
