//! Clients of clusters' Kubernetes APIs. Clients are kept, because connections and certificates take time to make.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use cluster_core::{Cluster, ClusterUuid};
use cluster_pki::Validity;
use jiff::{SignedDuration, Timestamp};
use kubernetes::{Access, Client, Timeouts};

use crate::cluster_secrets::{ClusterSecrets, KeysError};

/// The lifetime of clusterd's own client certificate, and how long a client with it is kept.
const CERTIFICATE_LASTS: Duration = Duration::from_secs(24 * 3600);
const CLIENT_LASTS: SignedDuration = SignedDuration::from_hours(12);
/// How long a turn waits for a cluster that does not answer; the rest of the turn waits too.
const API_TIMEOUTS: Timeouts =
    Timeouts { connect: Duration::from_secs(2), call: Duration::from_secs(10) };

/// Clients of clusters' APIs.
pub(crate) struct Clients {
    pub(super) secrets: ClusterSecrets,
    kept: Mutex<HashMap<ClusterUuid, CachedClient>>,
}

struct CachedClient {
    address: String,
    /// The CA revision that the client was made for.
    revision: u32,
    until: Timestamp,
    client: Client,
}

impl Clients {
    pub(crate) fn new(secrets: ClusterSecrets) -> Self {
        Clients { secrets, kept: Mutex::default() }
    }

    /// Returns an administrator's client of the cluster's API, once its address is known.
    pub(crate) async fn client(&self, cluster: &Cluster) -> Result<Option<Client>, KeysError> {
        let Some(address) = &cluster.api_address else { return Ok(None) };
        let (now, revision) = ((self.secrets.clock)(), cluster.authorities.revision);
        if let Some(client) = self.find(cluster.id, address, revision, now) {
            return Ok(Some(client));
        }
        let validity = Validity { now, lifetime: CERTIFICATE_LASTS };
        let config = self.secrets.admin_kubeconfig(cluster, address, validity).await?;
        let Some(config) = config else { return Ok(None) };
        let made = Access::from_kubeconfig(config.expose(), None)
            .map_err(|error| error.to_string())
            .map(|access| Access { timeouts: API_TIMEOUTS, ..access })
            .and_then(|access| Client::new(&access).map_err(|error| error.to_string()));
        match made {
            Ok(client) => {
                let until = now.saturating_add(CLIENT_LASTS).unwrap_or(now);
                let address = address.to_owned();
                let kept = CachedClient { address, revision, until, client: client.clone() };
                self.keep(cluster.id, kept);
                Ok(Some(client))
            }
            Err(error) => {
                tracing::error!(cluster.id = %cluster.id, "cannot make a client for the cluster's API: {error}");
                Ok(None)
            }
        }
    }

    fn find(
        &self,
        cluster: ClusterUuid,
        address: &str,
        revision: u32,
        now: Timestamp,
    ) -> Option<Client> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let found = kept.get(&cluster)?;
        (found.address == address && found.revision == revision && found.until > now)
            .then(|| found.client.clone())
    }

    fn keep(&self, cluster: ClusterUuid, new: CachedClient) {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).insert(cluster, new);
    }

    /// Drops the client of a cluster that was deleted or has other keys.
    pub(crate) fn forget(&self, cluster: ClusterUuid) {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).remove(&cluster);
    }
}
