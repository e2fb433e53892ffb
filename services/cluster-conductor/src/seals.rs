//! The keys that seal secrets: which there are, a new one, an old one away; and sealing anew beside all other work.

use std::sync::Arc;
use std::time::Duration;

use cluster_store::{SealedSecret, SealedUserData, StoreError};
use sealing::{KeyFileError, KeyUse, RetireError, SealError, SealingKeys};
use tokio::time::interval;
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use crate::Conductor;
use crate::handle::World;

/// How often it is looked whether something is sealed by another key than the first: another program may have rotated.
const LOOK_EVERY: Duration = Duration::from_secs(60);
/// So many secrets are sealed anew in one transaction.
const PAGE: u32 = 50;

impl Conductor {
    /// Machines that have their configs from before it was noted report by the key there was: while there is but one, that is known.
    pub(crate) async fn note_reports(&self) {
        let keys = self.world.keys.keys();
        if keys.ids().count() == 1
            && let Err(error) = self.world.store.reports_were_by(keys.current()).await
        {
            warn!("cannot note by which key machines report: {error}");
        }
    }

    /// The keys that there are, and what each is needed for.
    pub async fn keys(&self) -> Result<Vec<KeyUse>, StoreError> {
        let stored = self.world.store.seals_in_use().await?;
        Ok(KeyUse::of(&self.world.keys.keys(), &stored))
    }

    /// Makes a key that seals from now on; what others sealed is sealed anew soon. The answer is its id.
    pub async fn rotate_keys(&self) -> Result<String, KeyFileError> {
        let world = self.world.clone();
        let id = off_the_runtime(move || world.keys.rotate()).await?;
        self.world.rotated.notify_one();
        Ok(id)
    }

    /// Takes away a key that nothing is sealed by any more, and by which no machine reports.
    pub async fn retire_key(&self, id: &str) -> Result<(), RetireError<StoreError>> {
        RetireError::check(&self.keys().await.map_err(RetireError::Store)?, id)?;
        // From here on the database refuses what would be sealed by it.
        match self.world.store.forget_seal(id).await {
            Ok(()) => {}
            Err(StoreError::InUse { by }) => {
                return Err(RetireError::Needed { id: id.to_owned(), by: by.to_owned() });
            }
            Err(why) => return Err(RetireError::Store(why)),
        }
        let (world, id) = (self.world.clone(), id.to_owned());
        off_the_runtime(move || world.keys.retire(&id)).await.map_err(RetireError::File)
    }
}

/// Files are written where that holds nobody up.
async fn off_the_runtime<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, KeyFileError> + Send + 'static,
) -> Result<T, KeyFileError> {
    tokio::task::spawn_blocking(work).await.unwrap_or(Err(KeyFileError::NoFile))
}

/// Seals anew what another key than the first sealed, until `stop` is cancelled.
pub(crate) async fn run(world: Arc<World>, stop: CancellationToken) {
    let mut due = interval(LOOK_EVERY);
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = world.rotated.notified() => {}
            _ = due.tick() => {}
        }
        tokio::select! {
            () = stop.cancelled() => return,
            resealed = reseal(&world) => if let Err(error) = resealed {
                warn!("secrets cannot be sealed anew now: {error}");
            },
        }
    }
}

/// Seals by the first key whatever another one sealed, a page at a time. Wherever it is broken off, what is left is found the next time.
async fn reseal(world: &World) -> Result<(), StoreError> {
    let keys = world.keys.keys();
    for (id, sealed, _) in world.store.seals_in_use().await? {
        if sealed == 0 || id == keys.current() {
            continue;
        }
        let done = secrets(world, &keys, &id).await? + user_data(world, &keys, &id).await?;
        info!(key.id = keys.current(), "sealed {done} secrets anew by key {}", keys.current());
    }
    Ok(())
}

/// What is kept of clusters. The answer is how many were sealed anew, as of [`user_data`].
async fn secrets(world: &World, keys: &SealingKeys, id: &str) -> Result<u64, StoreError> {
    let (mut after, mut done) = (None, 0);
    loop {
        let page = world.store.secrets_sealed_by(id, after.as_ref(), PAGE).await?;
        let anew: Vec<_> = page
            .iter()
            .filter_map(|secret| Some((secret.clone(), secret_anew(keys, secret)?)))
            .collect();
        let Some(last) = page.into_iter().next_back() else { return Ok(done) };
        after = Some(last);
        done += world.store.reseal_secrets(&anew).await?;
        info!("sealed {} secrets anew, {done} so far", anew.len());
    }
}

/// What owners told machines that are not built yet.
async fn user_data(world: &World, keys: &SealingKeys, id: &str) -> Result<u64, StoreError> {
    let (mut after, mut done) = (None, 0);
    loop {
        let page = world.store.user_data_sealed_by(id, after, PAGE).await?;
        let anew: Vec<_> = page
            .iter()
            .filter_map(|told| Some((told.clone(), user_data_anew(keys, told)?)))
            .collect();
        let Some(last) = page.last() else { return Ok(done) };
        after = Some(last.vm);
        done += world.store.reseal_user_data(&anew).await?;
        info!("sealed what {} machines are told anew, {done} so far", anew.len());
    }
}

/// The same secret, sealed by the first key; `None` if it does not open.
fn secret_anew(keys: &SealingKeys, secret: &SealedSecret) -> Option<String> {
    let SealedSecret { cluster, name, sealed } = secret;
    let failed = |why| error!(cluster.id = %cluster, "the secret {name} cannot be opened: {why}");
    anew(keys, &secret.place(), sealed).map_err(failed).ok()
}

/// The same, sealed by the first key; `None` if it does not open.
fn user_data_anew(keys: &SealingKeys, told: &SealedUserData) -> Option<String> {
    let failed = |why| error!(vm.id = %told.vm, "what it is told cannot be opened: {why}");
    anew(keys, &told.place(), &told.sealed).map_err(failed).ok()
}

fn anew(keys: &SealingKeys, place: &str, sealed: &str) -> Result<String, SealError> {
    keys.open(place, sealed).and_then(|opened| keys.seal(place, &opened))
}
