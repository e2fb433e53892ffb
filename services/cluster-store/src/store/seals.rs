//! By which keys secrets are sealed.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use cluster_core::{ClusterUuid, VmUuid};
use database::Extent::{FirstDecides, OneStatement};
use database::StoreError;
use sealing::{Keyring, KnownKey};

use crate::Store;
use crate::table::{seal, secret, vm};

/// The keys that the database is known to know.
#[derive(Clone, Default)]
pub(super) struct Known(Arc<Mutex<BTreeSet<String>>>);

/// A secret as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealedSecret {
    /// Whose.
    pub cluster: ClusterUuid,
    /// Which.
    pub name: String,
    /// Its sealed text.
    pub sealed: String,
}

/// What an owner told a machine that is not built yet, as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealedUserData {
    /// Which machine.
    pub vm: VmUuid,
    /// Its sealed text.
    pub sealed: String,
}

impl SealedSecret {
    /// What it is sealed for.
    pub fn place(&self) -> String {
        format!("{}/{}", self.cluster, self.name)
    }
}

impl SealedUserData {
    /// What it is sealed for.
    pub fn place(&self) -> String {
        SealedUserData::place_of(self.vm)
    }

    /// What that is sealed for which the owner of this machine told it.
    pub fn place_of(vm: VmUuid) -> String {
        format!("vm/{vm}/user-data")
    }
}

impl Known {
    fn set(&self) -> std::sync::MutexGuard<'_, BTreeSet<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store {
    /// The keys that the database knows, for [`Keyring::open`].
    pub async fn known_keys(&self) -> Result<Vec<KnownKey>, StoreError> {
        let in_use = self.seals_in_use().await?;
        let canaries = self.database.read(|c| Box::pin(seal::canaries(c))).await?;
        let mut known = Vec::with_capacity(in_use.len());
        for (id, records, reports) in in_use {
            let canary = canaries.get(&id).cloned();
            let sample = if canary.is_none() { self.sample(&id).await? } else { None };
            known.push(KnownKey { id, canary, needed: records + reports, sample });
        }
        Ok(known)
    }

    /// Secrets are sealed by these keys: from now on the database keeps what tells each from another with the same id.
    ///
    /// # Errors
    ///
    /// `Corrupt`, where something stored is sealed by a key that is not among these.
    pub async fn sealing(mut self, keys: Arc<Keyring>) -> Result<Store, StoreError> {
        let (known, now) = (self.known_keys().await?, keys.keys());
        now.check(&known).map_err(|lost| StoreError::corrupt("seals", "keys", lost))?;
        let missing = now.missing_canaries(&known);
        if !missing.is_empty() {
            self.database
                .write(FirstDecides, |c| {
                    Box::pin(async move {
                        for (id, canary) in &missing {
                            seal::save_canary(c, id, canary).await?;
                        }
                        Ok(())
                    })
                })
                .await?;
        }
        self.keys = Some(keys);
        Ok(self)
    }

    /// One text that this key sealed, and what for.
    async fn sample(&self, id: &str) -> Result<Option<(String, String)>, StoreError> {
        if let Some(secret) = self.secrets_sealed_by(id, None, 1).await?.pop() {
            return Ok(Some((secret.place(), secret.sealed)));
        }
        let told = self.user_data_sealed_by(id, None, 1).await?.pop();
        Ok(told.map(|told| (told.place(), told.sealed)))
    }

    /// The keys that something needs or needed: how many secrets each seals, and how many machines report by it.
    pub async fn seals_in_use(&self) -> Result<Vec<(String, u64, u64)>, StoreError> {
        self.database.read(|c| Box::pin(seal::counts(c))).await
    }

    /// Nothing can be sealed by this key any more; `InUse` while something is.
    pub async fn forget_seal(&self, id: &str) -> Result<(), StoreError> {
        self.known.set().remove(id);
        let id = id.to_owned();
        self.database
            .write(OneStatement, |c| Box::pin(async move { seal::forget(c, &id).await }))
            .await
    }

    /// Machines of whom it is not known by which key they report do so by this: there never was another.
    pub async fn reports_were_by(&self, id: &str) -> Result<u64, StoreError> {
        self.know_seal(id).await?;
        let id = id.to_owned();
        self.database
            .write(OneStatement, |c| Box::pin(async move { seal::assume(c, &id).await }))
            .await
    }

    /// The next `limit` secrets that this key sealed, after `after` by cluster and name.
    pub async fn secrets_sealed_by(
        &self,
        key: &str,
        after: Option<&SealedSecret>,
        limit: u32,
    ) -> Result<Vec<SealedSecret>, StoreError> {
        let (key, after) = (key.to_owned(), after.cloned());
        self.database
            .read(move |c| {
                Box::pin(async move { secret::sealed_by(c, &key, after.as_ref(), limit).await })
            })
            .await
    }

    /// Writes secrets that were sealed anew, each in place of what it was made of; one that is something else by now stays. The answer
    /// is how many were written.
    pub async fn reseal_secrets(&self, anew: &[(SealedSecret, String)]) -> Result<u64, StoreError> {
        for (_, sealed) in anew {
            self.know_seal_of(sealed).await?;
        }
        let anew = anew.to_vec();
        self.database
            .write(FirstDecides, |c| {
                Box::pin(async move {
                    let mut written = 0;
                    for (old, sealed) in &anew {
                        written += u64::from(secret::reseal(c, old, sealed).await?);
                    }
                    Ok(written)
                })
            })
            .await
    }

    /// The next `limit` of what owners told machines and this key sealed, after the machine `after`.
    pub async fn user_data_sealed_by(
        &self,
        key: &str,
        after: Option<VmUuid>,
        limit: u32,
    ) -> Result<Vec<SealedUserData>, StoreError> {
        let key = key.to_owned();
        self.database
            .read(move |c| Box::pin(async move { vm::sealed_by(c, &key, after, limit).await }))
            .await
    }

    /// As [`Store::reseal_secrets`], of what owners told machines. Machines' versions stay.
    pub async fn reseal_user_data(
        &self,
        anew: &[(SealedUserData, String)],
    ) -> Result<u64, StoreError> {
        for (_, sealed) in anew {
            self.know_seal_of(sealed).await?;
        }
        let anew = anew.to_vec();
        self.database
            .write(FirstDecides, |c| {
                Box::pin(async move {
                    let mut written = 0;
                    for (old, sealed) in &anew {
                        written += u64::from(vm::reseal(c, old, sealed).await?);
                    }
                    Ok(written)
                })
            })
            .await
    }

    /// Notes of secrets that were stored before version 7 by which key they are sealed.
    pub(super) async fn note_seals(&self) -> Result<(), StoreError> {
        let unknown = self.database.read(|c| Box::pin(secret::sealed_by_unknown(c))).await?;
        for secret in unknown {
            let anew = [(secret.clone(), secret.sealed)];
            self.reseal_secrets(&anew).await?;
        }
        Ok(())
    }

    pub(super) async fn know_seal_of(&self, sealed: &str) -> Result<(), StoreError> {
        match sealing::id_of(sealed) {
            Some(id) => self.know_seal(id).await,
            None => Ok(()),
        }
    }

    /// Tells the database of a key before something is sealed by it.
    pub(super) async fn know_seal(&self, id: &str) -> Result<(), StoreError> {
        if self.known.set().contains(id) {
            return Ok(());
        }
        let key = id.to_owned();
        let canary = self.keys.as_ref().and_then(|keys| keys.keys().canary(id));
        self.database
            .write(OneStatement, |c| {
                Box::pin(async move { seal::know(c, &key, canary.as_deref()).await })
            })
            .await?;
        self.known.set().insert(id.to_owned());
        Ok(())
    }
}
