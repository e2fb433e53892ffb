//! Names the obstacles inside a cluster to an upgrade, for its plan.

use cluster_core::{Cluster, KubernetesVersion};
use kubernetes::{Client, KubernetesError, obstacles};

use crate::Conductor;

impl Conductor {
    /// Returns the obstacles inside a cluster to an upgrade to this version; none of a cluster whose API has no address yet.
    pub async fn upgrade_obstacles(&self, cluster: &Cluster, to: KubernetesVersion) -> Vec<String> {
        let unknown =
            |why: String| vec![format!("the obstacles inside the cluster are unknown: {why}")];
        match self.context.clients.client(cluster).await {
            Ok(Some(client)) => {
                named(&client, to).await.unwrap_or_else(|error| unknown(error.to_string()))
            }
            Ok(None) => Vec::new(),
            Err(error) => unknown(error.to_string()),
        }
    }
}

async fn named(client: &Client, to: KubernetesVersion) -> Result<Vec<String>, KubernetesError> {
    let budgets = obstacles::tight_budgets(client).await?.into_iter().map(|it| {
        format!("PodDisruptionBudget {it} permits no eviction now; the upgrade waits until it does")
    });
    let apis = obstacles::removed_apis(client, to.minor).await?.into_iter();
    let apis = apis.map(|it| format!("{it} were requested, which v1.{} does not have", to.minor));
    Ok(budgets.chain(apis).collect())
}
