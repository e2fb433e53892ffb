//! The client of a cluster's own Kubernetes API: the state of its nodes, and changes of them.

mod act;
mod add_ons;
mod authorities;
mod observe;

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use cluster_core::{
    Cluster, ClusterObservation, ClusterSpec, ClusterUuid, DesiredObjects, MemberName,
};
use cluster_pki::Validity;
use jiff::{SignedDuration, Timestamp};
use kubernetes::nodes::Node;
use kubernetes::{Access, Client, KubernetesError, Timeouts, health};

use crate::handle::{ConductorContext, KeysError, dns_label, endpoint};

/// The lifetime of clusterd's own client certificate, and how long a client with it is kept.
const CERTIFICATE_LASTS: Duration = Duration::from_secs(24 * 3600);
const CLIENT_LASTS: SignedDuration = SignedDuration::from_hours(12);
/// How long a turn waits for a cluster that does not answer; the rest of the turn waits too.
const API_TIMEOUTS: Timeouts =
    Timeouts { connect: Duration::from_secs(2), call: Duration::from_secs(10) };

/// Clients of clusters' APIs. Clients are kept, because connections and certificates take time to make.
#[derive(Default)]
pub(crate) struct Clients {
    kept: Mutex<HashMap<ClusterUuid, CachedClient>>,
}

struct CachedClient {
    address: String,
    /// The CA revision that the client was made for.
    revision: u32,
    until: Timestamp,
    client: Client,
}

/// A cluster's Kubernetes API within one turn.
pub(crate) struct Nodes<'a> {
    context: &'a ConductorContext,
    spec: &'a ClusterSpec<'a>,
    shape: &'a DesiredObjects,
    /// `None` when the API does not answer.
    answers: Option<Answers>,
    /// Why the API does not answer, when it was called.
    silence: Option<String>,
}

/// The answers of the API.
struct Answers {
    client: Client,
    nodes: Vec<Node>,
}

impl<'a> Nodes<'a> {
    /// Lists the nodes of a cluster, if the address of its API is known.
    pub(crate) async fn reach(
        context: &'a ConductorContext,
        spec: &'a ClusterSpec<'a>,
        shape: &'a DesiredObjects,
    ) -> Result<Self, KeysError> {
        let mut nodes = Nodes { context, spec, shape, answers: None, silence: None };
        let is_going = spec.cluster.desire == cluster_core::DesiredState::Gone;
        let address = spec.cluster.api_address.as_deref().filter(|_| !is_going);
        let Some(client) = client(context, spec.cluster, address).await? else { return Ok(nodes) };
        nodes.answers = match ask(&client).await {
            Ok(Some(all)) => Some(Answers { client, nodes: all }),
            Ok(None) => {
                nodes.silence = Some("it reports that it is not ready".to_owned());
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

    /// Whether servers are about to join, or a CA rotation is in progress: both need an observation soon.
    pub(crate) fn is_under_way(&self, seen: &ClusterObservation) -> bool {
        let waits = |machine: &MemberName| {
            seen.objects.contains_key(&cluster_core::Key::Server(machine.clone()))
                && !self.spec.cluster.nodes.contains(machine)
        };
        seen.machines.keys().any(waits) || !self.spec.cluster.authorities.is_settled()
    }
}

/// Returns the nodes, or `None` when the API is not ready.
async fn ask(client: &Client) -> Result<Option<Vec<Node>>, KubernetesError> {
    if !health::is_ready(client).await? {
        return Ok(None);
    }
    Ok(Some(kubernetes::nodes::list(client).await?))
}

/// Returns an administrator's client of the cluster's API, once its address is known.
pub(crate) async fn client_of(
    context: &ConductorContext,
    cluster: &Cluster,
) -> Result<Option<Client>, KeysError> {
    client(context, cluster, cluster.api_address.as_deref()).await
}

/// Returns an administrator's client of the cluster's API at `address`.
async fn client(
    context: &ConductorContext,
    cluster: &Cluster,
    address: Option<&str>,
) -> Result<Option<Client>, KeysError> {
    let Some(address) = address else { return Ok(None) };
    let Some(endpoint) = endpoint(address) else { return Ok(None) };
    let (now, revision) = ((context.settings.clock)(), cluster.authorities.revision);
    if let Some(client) = context.clients.find(cluster.id, address, revision, now) {
        return Ok(Some(client));
    }
    let pki = context.pki(cluster).await?;
    let validity = Validity { now, lifetime: CERTIFICATE_LASTS };
    let config =
        cluster_pki::admin_kubeconfig(&dns_label(cluster), &endpoint, &pki.cluster, validity)?;
    let made = Access::from_kubeconfig(config.expose(), None)
        .map_err(|error| error.to_string())
        .map(|access| Access { timeouts: API_TIMEOUTS, ..access })
        .and_then(|access| Client::new(&access).map_err(|error| error.to_string()));
    match made {
        Ok(client) => {
            let until = now.saturating_add(CLIENT_LASTS).unwrap_or(now);
            let kept = CachedClient {
                address: address.to_owned(),
                revision,
                until,
                client: client.clone(),
            };
            context.clients.keep(cluster.id, kept);
            Ok(Some(client))
        }
        Err(error) => {
            tracing::error!(cluster.id = %cluster.id, "cannot make a client for the cluster's API: {error}");
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

    fn keep(&self, cluster: ClusterUuid, new: CachedClient) {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).insert(cluster, new);
    }

    /// Drops the client of a cluster that was deleted or has other keys.
    pub(crate) fn forget(&self, cluster: ClusterUuid) {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).remove(&cluster);
    }
}
