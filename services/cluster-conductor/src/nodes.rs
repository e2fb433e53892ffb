//! The client of a cluster's own Kubernetes API: the state of its nodes, and changes of them.

mod act;
mod add_ons;
mod authorities;
mod clients;
mod control_plane;
mod observe;
mod reboots;

use cluster_addons::ImageSource;
use cluster_core::{ClusterSpec, DesiredObjects, DesiredState};
use cluster_store::Store;
use kubernetes::nodes::Node;
use kubernetes::{Client, KubernetesError, health};

use crate::cluster_secrets::{ClusterSecrets, KeysError};

pub(crate) use clients::Clients;

/// A cluster's Kubernetes API within one turn.
pub(crate) struct Nodes<'a> {
    store: &'a Store,
    secrets: &'a ClusterSecrets,
    /// The registry of add-on images.
    images: &'a ImageSource,
    spec: &'a ClusterSpec<'a>,
    shape: &'a DesiredObjects,
    /// `None` when the API does not answer.
    answers: Option<Answers>,
    /// Why the API does not answer, when it was called.
    silence: Option<String>,
}

struct Answers {
    client: Client,
    nodes: Vec<Node>,
}

impl<'a> Nodes<'a> {
    /// Lists the nodes of a cluster, if the address of its API is known.
    pub(crate) async fn reach(
        (clients, images): (&'a Clients, &'a ImageSource),
        spec: &'a ClusterSpec<'a>,
        shape: &'a DesiredObjects,
    ) -> Result<Self, KeysError> {
        let (secrets, store) = (&clients.secrets, &clients.secrets.store);
        let mut nodes = Nodes { store, secrets, images, spec, shape, answers: None, silence: None };
        if spec.cluster.desire == DesiredState::Gone {
            return Ok(nodes);
        }
        // The control plane that may still answer is about to be replaced.
        if spec.cluster.is_clearing() {
            nodes.silence = Some("the control plane is being restored".to_owned());
            return Ok(nodes);
        }
        let Some(client) = clients.client(spec.cluster).await? else { return Ok(nodes) };
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
}

/// Returns the nodes, or `None` when the API is not ready.
async fn ask(client: &Client) -> Result<Option<Vec<Node>>, KubernetesError> {
    if !health::is_ready(client).await? {
        return Ok(None);
    }
    Ok(Some(kubernetes::nodes::list(client).await?))
}
