//! A cluster's own Kubernetes: what it says of its nodes, and what is asked of it.

mod act;
mod add_ons;
mod authorities;
mod observe;

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use cluster_core::{Cluster, ClusterSpec, ClusterUuid, MachineRef, Seen, Shape};
use cluster_pki::Validity;
use jiff::{SignedDuration, Timestamp};
use kubernetes::nodes::Node;
use kubernetes::{Access, Client, KubernetesError, Timeouts, health};

use crate::handle::{KeysError, World, endpoint, label};

/// How long our own certificate is good, and how long a client with one is kept.
const CERTIFICATE_LASTS: Duration = Duration::from_secs(24 * 3600);
const CLIENT_LASTS: SignedDuration = SignedDuration::from_hours(12);
/// How long a turn waits for a cluster that says nothing; the rest of the turn waits with it.
const PATIENCE: Timeouts =
    Timeouts { connect: Duration::from_secs(2), call: Duration::from_secs(10) };

/// The clients of clusters' APIs, kept because connections and certificates take time to make.
#[derive(Default)]
pub(crate) struct Clients {
    kept: Mutex<HashMap<ClusterUuid, Kept>>,
}

struct Kept {
    address: String,
    /// The revision of the authorities that it was made for.
    revision: u32,
    until: Timestamp,
    client: Client,
}

/// A cluster's Kubernetes in one turn.
pub(crate) struct Nodes<'a> {
    world: &'a World,
    spec: &'a ClusterSpec<'a>,
    shape: &'a Shape,
    /// Nothing where it does not answer.
    answers: Option<Answers>,
    /// Why it does not, where it was asked.
    silence: Option<String>,
}

/// What it said.
struct Answers {
    client: Client,
    nodes: Vec<Node>,
}

impl<'a> Nodes<'a> {
    /// Asks a cluster's API for its nodes, where it is known where that is.
    pub(crate) async fn reach(
        world: &'a World,
        spec: &'a ClusterSpec<'a>,
        shape: &'a Shape,
    ) -> Result<Self, KeysError> {
        let mut nodes = Nodes { world, spec, shape, answers: None, silence: None };
        let is_going = spec.cluster.desire == cluster_core::Desire::Gone;
        let address = spec.cluster.api_address.as_deref().filter(|_| !is_going);
        let Some(client) = client(world, spec.cluster, address).await? else { return Ok(nodes) };
        nodes.answers = match ask(&client).await {
            Ok(Some(all)) => Some(Answers { client, nodes: all }),
            Ok(None) => {
                nodes.silence = Some("it says that it is not ready".to_owned());
                None
            }
            Err(error) => {
                tracing::debug!("the cluster's API does not answer: {error}");
                nodes.silence = Some(error.to_string());
                None
            }
        };
        Ok(nodes)
    }

    /// Whether machines are on their way, or their authorities change, which is seen by looking again soon.
    pub(crate) fn is_under_way(&self, seen: &Seen) -> bool {
        let waits = |machine: &MachineRef| {
            seen.objects.contains_key(&cluster_core::Key::Server(machine.clone()))
                && !self.spec.cluster.nodes.contains(machine)
        };
        seen.machines.keys().any(waits) || !self.spec.cluster.authorities.is_settled()
    }
}

/// Its nodes, once it is ready.
async fn ask(client: &Client) -> Result<Option<Vec<Node>>, KubernetesError> {
    if !health::is_ready(client).await? {
        return Ok(None);
    }
    Ok(Some(kubernetes::nodes::list(client).await?))
}

/// A client of the cluster's API, as its administrator, once it is known where that is.
pub(crate) async fn client_of(
    world: &World,
    cluster: &Cluster,
) -> Result<Option<Client>, KeysError> {
    client(world, cluster, cluster.api_address.as_deref()).await
}

/// A client of the cluster's API, as its administrator.
async fn client(
    world: &World,
    cluster: &Cluster,
    address: Option<&str>,
) -> Result<Option<Client>, KeysError> {
    let Some(address) = address else { return Ok(None) };
    let Some(endpoint) = endpoint(address) else { return Ok(None) };
    let (now, revision) = ((world.settings.clock)(), cluster.authorities.revision);
    if let Some(client) = world.clients.find(cluster.id, address, revision, now) {
        return Ok(Some(client));
    }
    let pki = world.pki(cluster).await?;
    let validity = Validity { now, lifetime: CERTIFICATE_LASTS };
    let config = cluster_pki::admin(&label(cluster), &endpoint, &pki.cluster, validity)?;
    let made = Access::from_kubeconfig(config.expose(), None)
        .map_err(|error| error.to_string())
        .map(|access| Access { timeouts: PATIENCE, ..access })
        .and_then(|access| Client::new(&access).map_err(|error| error.to_string()));
    match made {
        Ok(client) => {
            let until = now.saturating_add(CLIENT_LASTS).unwrap_or(now);
            let kept =
                Kept { address: address.to_owned(), revision, until, client: client.clone() };
            world.clients.keep(cluster.id, kept);
            Ok(Some(client))
        }
        Err(error) => {
            tracing::error!(cluster.id = %cluster.id, "cannot speak to the cluster's API: {error}");
            Ok(None)
        }
    }
}

impl Clients {
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

    fn keep(&self, cluster: ClusterUuid, new: Kept) {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).insert(cluster, new);
    }

    /// Drops the client of a cluster that is no more, or has other keys.
    pub(crate) fn forget(&self, cluster: ClusterUuid) {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).remove(&cluster);
    }
}
