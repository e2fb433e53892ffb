//! The secrets of clusters in the store: certificate authorities and credentials. Each is sealed, and bound to its cluster and its name.

mod stored_authorities;

use std::sync::Arc;
use std::time::Duration;

use cluster_bootstrap::{Endpoint, Name, Pki};
use cluster_core::Cluster;
use cluster_pki::{Kubeconfig, PkiError, SignError, Validity};
use cluster_store::{Store, StoreError};
use jiff::Timestamp;
use sealing::{DecryptedSecret, Keyring, SealError};
use secrecy::SecretString;
use zeroize::Zeroizing;

const AUTHORITY_LIFETIME: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

/// A result whose error is a [`KeysError`], unless it says otherwise.
pub(crate) type Result<T, E = KeysError> = std::result::Result<T, E>;

/// Why the keys of a cluster cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeysError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("cannot seal or unseal the cluster's keys")]
    Seal(#[from] SealError),
    #[error("cannot read the cluster's keys")]
    Malformed(#[from] serde_json::Error),
    #[error("cannot make the cluster's keys")]
    Make(#[from] PkiError),
    #[error("csr: {0}")]
    Sign(SignError),
}

/// The store with the secrets of clusters, and the keys that seal them.
#[derive(Clone)]
pub(crate) struct ClusterSecrets {
    pub(crate) store: Store,
    pub(crate) keyring: Arc<Keyring>,
    pub(crate) clock: fn() -> Timestamp,
}

impl ClusterSecrets {
    /// Returns the cluster's certificate authorities with their keys. During a CA rotation each certificate is followed by the one that is
    /// trusted besides.
    pub(crate) async fn pki(&self, cluster: &Cluster) -> Result<Pki> {
        let (signs, also) = self.authorities(cluster).await?;
        Ok(also.map_or_else(|| signs.clone(), |also| signs.with_trusted(&also)))
    }

    /// Returns the certificate authorities that sign now, and those that are trusted besides.
    pub(crate) async fn authorities(&self, cluster: &Cluster) -> Result<(Pki, Option<Pki>)> {
        let (signs, also) = cluster.authorities.generations();
        let signs = self.generation(cluster, signs).await?;
        match also {
            Some(also) => Ok((signs, Some(self.generation(cluster, also).await?))),
            None => Ok((signs, None)),
        }
    }

    /// Returns the certificate authorities of a generation, which are made on first use.
    async fn generation(&self, cluster: &Cluster, generation: u32) -> Result<Pki> {
        let name = stored_authorities::name(generation);
        let place = format!("{}/{name}", cluster.id);
        let sealed = match self.store.find_secret(cluster.id, &name).await? {
            Some(sealed) => sealed,
            None => {
                let validity = Validity { now: (self.clock)(), lifetime: AUTHORITY_LIFETIME };
                let pki = cluster_pki::make_pki(&dns_label(cluster), generation, validity)?;
                let written = Zeroizing::new(stored_authorities::write(&pki)?);
                let sealed = self.keyring.seal(&place, &written)?;
                // Concurrent callers all get the CAs that were written first.
                self.store.keep_secret(cluster.id, &name, &sealed).await?
            }
        };
        let mut pki = stored_authorities::read(&self.keyring.open_sealed(&place, &sealed)?)?;
        if generation > 0 {
            // The key of service accounts is the same in all generations, so that existing tokens stay valid.
            pki.service_account = Box::pin(self.generation(cluster, 0)).await?.service_account;
        }
        Ok(pki)
    }

    /// Returns the secret of the cluster's application credential, which is made on first use.
    pub(crate) async fn credential(
        &self,
        cluster: &Cluster,
        generation: u32,
    ) -> Result<SecretString> {
        let name = format!("credential/{generation}");
        let place = format!("{}/{name}", cluster.id);
        let sealed = match self.store.find_secret(cluster.id, &name).await? {
            Some(sealed) => sealed,
            None => {
                let sealed = self.keyring.seal(&place, sealing::random()?.as_bytes())?;
                self.store.keep_secret(cluster.id, &name, &sealed).await?
            }
        };
        Ok(self.keyring.open_sealed(&place, &sealed)?.text()?.into())
    }

    /// Returns the secret with which the cluster's backups are sealed, which is made on first use.
    pub(crate) async fn backup_key(&self, cluster: &Cluster) -> Result<DecryptedSecret> {
        const NAME: &str = "backup-key";
        let place = format!("{}/{NAME}", cluster.id);
        let sealed = match self.store.find_secret(cluster.id, NAME).await? {
            Some(sealed) => sealed,
            None => {
                let sealed = self.keyring.seal(&place, sealing::random()?.as_bytes())?;
                self.store.keep_secret(cluster.id, NAME, &sealed).await?
            }
        };
        Ok(self.keyring.open_sealed(&place, &sealed)?)
    }

    /// Makes a kubeconfig for an administrator of the cluster, whose API is at `address`. `None` when the address is not `https://HOST:PORT`.
    pub(crate) async fn admin_kubeconfig(
        &self,
        cluster: &Cluster,
        address: &str,
        validity: Validity,
    ) -> Result<Option<Kubeconfig>> {
        let Some(endpoint) = endpoint(address) else { return Ok(None) };
        let authority = self.pki(cluster).await?.cluster;
        let name = dns_label(cluster);
        Ok(Some(cluster_pki::admin_kubeconfig(&name, &endpoint, &authority, validity)?))
    }
}

pub(crate) fn dns_label(cluster: &Cluster) -> Name {
    Name::try_from(cluster.name.label(63)).expect("a name in the letters of a label is a label")
}

/// Splits `https://HOST:PORT` into host and port.
fn endpoint(address: &str) -> Option<Endpoint> {
    let (host, port) = address.strip_prefix("https://")?.rsplit_once(':')?;
    let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    Some(Endpoint { host, port: port.parse().ok()? })
}
