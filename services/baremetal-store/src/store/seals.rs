//! The keys that seal secrets in this store, and re-encryption after a rotation.

use std::sync::Arc;

use baremetal_core::Node;
use database::WriteKind::{OneStatement, OnlyFirstStatementCanFail};
use database::{Result, StoreError, reading, seals, writing};
use sealing::{Keyring, RegisteredKey, SealingKeys};
use serde_json::Value;
use tracing::{error, info};

use crate::table::{node, profile, rack, resource, seal};
use crate::{Secrets, Store, secrets};

/// The number of nodes re-encrypted in one transaction.
const PAGE: u32 = 50;

/// The result of a re-encryption.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReencryptionResult {
    /// The number of rows that are now sealed with the first key and were not before.
    pub done: u64,
    /// The number of rows that could not be unsealed. They are unchanged.
    pub broken: u64,
}

impl Store {
    /// Sets the keys that seal secrets from now on, and seals the secrets that are stored in the clear.
    ///
    /// # Errors
    ///
    /// `Corrupt` if a stored secret was sealed with a key that is not among these keys.
    pub async fn with_keys(mut self, keys: Arc<Keyring>) -> Result<Store> {
        let (known, now) = (self.known_keys().await?, keys.keys());
        now.check(&known).map_err(|lost| StoreError::corrupt("seals", "keys", lost))?;
        seals::save_canaries(&self.database, now.missing_canaries(&known)).await?;
        self.keys = Some(keys);
        let sealed = self.reseal_from(None).await?;
        if sealed.done > 0 {
            info!("sealed secrets that were stored in the clear: {} rows", sealed.done);
        }
        Ok(self)
    }

    /// Returns the keys that the database knows, for [`Keyring::open`].
    pub async fn known_keys(&self) -> Result<Vec<RegisteredKey>> {
        let in_use = self.seals_in_use().await?;
        let canaries = reading!(self.database, |c| seals::canaries(c).await)?;
        let mut known = Vec::with_capacity(in_use.len());
        for (id, needed) in in_use {
            let canary = canaries.get(&id).cloned();
            let sample = if canary.is_none() { self.sample(&id).await? } else { None };
            known.push(RegisteredKey { id, canary, needed, sample });
        }
        Ok(known)
    }

    /// Returns one text that this key has sealed, with the place that it was sealed for.
    async fn sample(&self, id: &str) -> Result<Option<(String, String)>> {
        let key = id.to_owned();
        reading!(self.database, |c| {
            let by = Some(key.as_str());
            if let Some(node) = node::sealed_by(c, by, None, 1).await?.first() {
                return Ok(secrets::sample_of_node(node, &key));
            }
            if let Some((name, document, _)) = rack::sealed_by(c, by).await?.first() {
                return Ok(secrets::sample_of_rack(name, document, &key));
            }
            if let Some((name, document, _)) = profile::sealed_by(c, by).await?.first() {
                return Ok(secrets::sample_of_profile(name, document, &key));
            }
            let resources = resource::sealed_by(c, by).await?;
            Ok(resources
                .first()
                .and_then(|it| secrets::sample_of_resource(it.id, &it.document, &key)))
        })
    }

    /// Returns the handle that unseals secrets.
    pub fn secrets(&self) -> Secrets {
        Secrets::of(self.keys.clone())
    }

    /// Returns the keys, or `None` if nothing is sealed.
    pub fn keyring(&self) -> Option<&Arc<Keyring>> {
        self.keys.as_ref()
    }

    /// Returns the keys that may seal rows, each with the number of rows that it seals now.
    pub async fn seals_in_use(&self) -> Result<Vec<(String, u64)>> {
        reading!(self.database, |c| seal::counts(c).await)
    }

    /// Removes a key, so that the database refuses rows sealed with it. Fails with `InUse` while the key seals a row.
    pub async fn forget_seal(&self, id: &str) -> Result<()> {
        self.known.remove(&self.database, id).await
    }

    /// Re-encrypts with the first key all secrets that another key has sealed or that are in the clear, one page at a time. A row that is
    /// written meanwhile is sealed by its writer. After an interruption, the next call continues with the rest.
    pub async fn reseal(&self) -> Result<ReencryptionResult> {
        let Some(keys) = &self.keys else { return Ok(ReencryptionResult::default()) };
        let current = keys.keys().current().to_owned();
        let mut all = self.reseal_from(None).await?;
        for (id, rows) in self.seals_in_use().await? {
            if rows > 0 && id != current {
                let some = self.reseal_from(Some(id)).await?;
                all = ReencryptionResult {
                    done: all.done + some.done,
                    broken: all.broken + some.broken,
                };
            }
        }
        Ok(all)
    }

    /// Re-encrypts the records sealed with `key`; with `None`, the records that have not been scanned yet.
    async fn reseal_from(&self, key: Option<String>) -> Result<ReencryptionResult> {
        let mut all = ReencryptionResult::default();
        let mut after = None;
        loop {
            let of = key.clone();
            let page =
                reading!(self.database, |c| node::sealed_by(c, of.as_deref(), after, PAGE).await)?;
            let Some(last) = page.last() else { break };
            after = Some(last.id);
            let mut anew = Vec::with_capacity(page.len());
            for node in page {
                match self.sealed(&node).await {
                    Ok(sealed) => anew.push(sealed),
                    Err(StoreError::Corrupt { source, .. }) => {
                        error!(node.id = %node.id, "cannot unseal the secrets of node {}: {source}", node.label());
                        all.broken += 1;
                    }
                    Err(other) => return Err(other),
                }
            }
            let written = writing!(self.database, OnlyFirstStatementCanFail, |c| {
                c.lock_bulk_writes().await?;
                let mut written = 0;
                for node in &anew {
                    written += u64::from(node::reseal(c, node).await?);
                }
                Ok(written)
            })?;
            all.done += written;
            info!("re-encrypted {written} nodes, {} so far", all.done);
        }
        self.reseal_racks(key.clone(), &mut all).await?;
        self.reseal_profiles(key.clone(), &mut all).await?;
        self.reseal_resources(key, &mut all).await?;
        Ok(all)
    }

    async fn reseal_racks(&self, key: Option<String>, all: &mut ReencryptionResult) -> Result<()> {
        let racks = reading!(self.database, |c| rack::sealed_by(c, key.as_deref()).await)?;
        for (name, document, version) in racks {
            match self.update_rack(&name, &document, version).await {
                Ok(()) => all.done += 1,
                Err(StoreError::Stale) => {}
                Err(StoreError::Corrupt { source, .. }) => {
                    error!("cannot unseal the secrets of rack {name}: {source}");
                    all.broken += 1;
                }
                Err(other) => return Err(other),
            }
        }
        Ok(())
    }

    async fn reseal_profiles(
        &self,
        key: Option<String>,
        all: &mut ReencryptionResult,
    ) -> Result<()> {
        let profiles = reading!(self.database, |c| profile::sealed_by(c, key.as_deref()).await)?;
        for (name, document, version) in profiles {
            match self.reseal_profile(&name, &document, version).await {
                Ok(()) => all.done += 1,
                Err(StoreError::Stale) => {}
                Err(StoreError::Corrupt { source, .. }) => {
                    error!("cannot unseal the secrets of profile {name}: {source}");
                    all.broken += 1;
                }
                Err(other) => return Err(other),
            }
        }
        Ok(())
    }

    async fn reseal_resources(
        &self,
        key: Option<String>,
        all: &mut ReencryptionResult,
    ) -> Result<()> {
        let rows = reading!(self.database, |c| resource::sealed_by(c, key.as_deref()).await)?;
        for mut row in rows {
            let (id, parts) = (row.id, row.parts);
            let seal = |keys: &SealingKeys, document: &mut Value| {
                secrets::seal_resource(keys, id, document, parts)
                    .map_err(|why| StoreError::corrupt("resources", &id.to_string(), why))
            };
            match self.seal(&row.document, seal).await {
                Ok(sealed) => row.document = sealed,
                Err(StoreError::Corrupt { source, .. }) => {
                    error!("cannot unseal the secrets of resource {id}: {source}");
                    all.broken += 1;
                    continue;
                }
                Err(other) => return Err(other),
            }
            all.done += u64::from(writing!(self.database, OneStatement, |c| {
                resource::reseal(c, &row).await
            })?);
        }
        Ok(())
    }

    /// Returns the node as it is written: with all secrets sealed, and with the trace in which its work was requested.
    pub(super) async fn sealed(&self, node: &Node) -> Result<Node> {
        let mut node = self.with_sealed_secrets(node).await?;
        if !node::is_busy(&node) {
            node.trace = None;
        } else if node.trace.is_none() {
            node.trace = spans::current();
        }
        Ok(node)
    }

    async fn with_sealed_secrets(&self, node: &Node) -> Result<Node> {
        // Each request for the keys looks at the key file.
        if secrets::node_sealed_by(node) == Some(secrets::NO_SECRETS) {
            return Ok(node.clone());
        }
        let corrupt = |why| StoreError::corrupt("nodes", &node.id.to_string(), why);
        self.seal(node, |keys, node| secrets::seal_node(keys, node).map_err(corrupt)).await
    }

    pub(super) async fn sealed_all(&self, nodes: &[Node]) -> Result<Vec<Node>> {
        let mut sealed = Vec::with_capacity(nodes.len());
        for node in nodes {
            sealed.push(self.sealed(node).await?);
        }
        Ok(sealed)
    }

    /// Returns the rack's document with all secrets sealed, as it is written.
    pub(super) async fn sealed_rack(&self, name: &str, document: &Value) -> Result<Value> {
        let corrupt = |why| StoreError::corrupt("racks", name, why);
        let seal = |keys: &SealingKeys, document: &mut Value| {
            secrets::seal_rack(keys, name, document).map_err(corrupt)
        };
        self.seal(document, seal).await
    }

    pub(super) async fn seal<T: Clone>(
        &self,
        it: &T,
        seal: impl FnOnce(&SealingKeys, &mut T) -> Result<()>,
    ) -> Result<T> {
        let mut it = it.clone();
        if let Some(keys) = self.current_keys().await? {
            seal(&keys, &mut it)?;
        }
        Ok(it)
    }

    /// Returns the keys for a transaction that seals a record which it has yet to choose; `None` if nothing is sealed.
    pub(super) async fn current_keys(&self) -> Result<Option<Arc<SealingKeys>>> {
        let Some(keys) = &self.keys else { return Ok(None) };
        let keys = keys.keys();
        let id = keys.current();
        self.known.register(&self.database, id, || keys.canary(id)).await?;
        Ok(Some(keys))
    }
}
