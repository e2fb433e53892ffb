//! The keys that seal stored secrets.

use std::sync::Arc;

use cluster_core::VmUuid;
use database::WriteKind::{OneStatement, OnlyFirstStatementCanFail};
use database::{Result, StoreError, reading, seals, writing};
use sealing::{Keyring, RegisteredKey};

use crate::table::{seal, secret, vm};
use crate::{SealedSecret, SealedUserData, Store};

impl Store {
    /// Returns the keys that the database needs, for [`Keyring::open`].
    pub async fn known_keys(&self) -> Result<Vec<RegisteredKey>> {
        let in_use = self.seals_in_use().await?;
        let canaries = reading!(self.database, |c| seals::canaries(c).await)?;
        let mut known = Vec::with_capacity(in_use.len());
        for (id, records, reports) in in_use {
            let canary = canaries.get(&id).cloned();
            let sample = if canary.is_none() { self.sample(&id).await? } else { None };
            known.push(RegisteredKey { id, canary, needed: records + reports, sample });
        }
        Ok(known)
    }

    /// Returns a store that registers every new secret with the key that seals it, and stores a canary of each key. A canary distinguishes
    /// the key from another one with the same id.
    ///
    /// # Errors
    ///
    /// `Corrupt`, when a stored secret was sealed with a key that is not in `keys`.
    pub async fn with_keys(mut self, keys: Arc<Keyring>) -> Result<Store> {
        let (known, now) = (self.known_keys().await?, keys.keys());
        now.check(&known).map_err(|lost| StoreError::corrupt("seals", "keys", lost))?;
        seals::save_canaries(&self.database, now.missing_canaries(&known)).await?;
        self.keys = Some(keys);
        Ok(self)
    }

    /// Returns one text that this key sealed, with its place.
    async fn sample(&self, id: &str) -> Result<Option<(String, String)>> {
        if let Some(secret) = self.secrets_sealed_by(id, None, 1).await?.pop() {
            return Ok(Some((secret.place(), secret.sealed)));
        }
        let reported = self.user_data_sealed_by(id, None, 1).await?.pop();
        Ok(reported.map(|reported| (reported.place(), reported.sealed)))
    }

    /// Returns every registered key, with the number of secrets it seals and the number of members whose report tokens derive from it.
    pub async fn seals_in_use(&self) -> Result<Vec<(String, u64, u64)>> {
        reading!(self.database, |c| seal::counts(c).await)
    }

    /// Removes a key from the register, so that nothing can be sealed with it any more. `InUse` while a secret is.
    pub async fn forget_seal(&self, id: &str) -> Result<()> {
        self.known.remove(&self.database, id).await
    }

    /// Records this key for members whose report key is unknown. Correct only when there never was another key.
    pub async fn assume_report_key(&self, id: &str) -> Result<u64> {
        self.register_key(id).await?;
        let id = id.to_owned();
        writing!(self.database, OneStatement, |c| seal::assume(c, &id).await)
    }

    /// Returns the next `limit` secrets sealed with this key, in the order of cluster and name, after `after`.
    pub async fn secrets_sealed_by(
        &self,
        key: &str,
        after: Option<&SealedSecret>,
        limit: u32,
    ) -> Result<Vec<SealedSecret>> {
        let (key, after) = (key.to_owned(), after.cloned());
        reading!(self.database, |c| secret::sealed_by(c, &key, after.as_ref(), limit).await)
    }

    /// Writes re-encrypted secrets. A secret that changed since it was read stays as it is. Returns how many were written.
    pub async fn reseal_secrets(&self, anew: &[(SealedSecret, String)]) -> Result<u64> {
        for (_, sealed) in anew {
            self.know_seal_of(sealed).await?;
        }
        let anew = anew.to_vec();
        writing!(self.database, OnlyFirstStatementCanFail, |c| {
            let mut written = 0;
            for (old, sealed) in &anew {
                written += u64::from(secret::reseal(c, old, sealed).await?);
            }
            Ok(written)
        })
    }

    /// Returns the next `limit` user-data sealed with this key, in the order of the VMs' ids, after the VM `after`.
    pub async fn user_data_sealed_by(
        &self,
        key: &str,
        after: Option<VmUuid>,
        limit: u32,
    ) -> Result<Vec<SealedUserData>> {
        let key = key.to_owned();
        reading!(self.database, |c| vm::sealed_by(c, &key, after, limit).await)
    }

    /// As [`Store::reseal_secrets`], for user-data. The versions of the VMs stay.
    pub async fn reseal_user_data(&self, anew: &[(SealedUserData, String)]) -> Result<u64> {
        for (_, sealed) in anew {
            self.know_seal_of(sealed).await?;
        }
        let anew = anew.to_vec();
        writing!(self.database, OnlyFirstStatementCanFail, |c| {
            let mut written = 0;
            for (old, sealed) in &anew {
                written += u64::from(vm::reseal(c, old, sealed).await?);
            }
            Ok(written)
        })
    }

    /// Records the sealing key of secrets that were stored before version 7.
    pub(super) async fn note_seals(&self) -> Result<()> {
        let unknown = reading!(self.database, |c| secret::sealed_by_unknown(c).await)?;
        for secret in unknown {
            let anew = [(secret.clone(), secret.sealed)];
            self.reseal_secrets(&anew).await?;
        }
        Ok(())
    }

    pub(super) async fn know_seal_of(&self, sealed: &str) -> Result<()> {
        match sealing::id_of(sealed) {
            Some(id) => self.register_key(id).await,
            None => Ok(()),
        }
    }

    /// Registers a key in the database before something is sealed with it.
    pub(super) async fn register_key(&self, id: &str) -> Result<()> {
        let canary = || self.keys.as_ref().and_then(|keys| keys.keys().canary(id));
        self.known.register(&self.database, id, canary).await
    }
}
