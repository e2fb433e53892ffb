//! Readiness and version of the API.

use serde::Deserialize;

use crate::client::Client;
use crate::error::{KubernetesError, Result};

/// The version that an API server reports (`GET /version`).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Version {
    /// For example `v1.20.2`.
    #[serde(rename = "gitVersion")]
    pub git_version: String,
}

/// `GET /readyz`: whether the answering API server has finished its start.
///
/// A server that is not ready, and a load balancer without a backend, give `false`. No answer at all is an error.
pub async fn is_ready(client: &Client) -> Result<bool> {
    match client.get(&["readyz"]).done().await {
        Ok(()) => Ok(true),
        Err(KubernetesError::Failed(_) | KubernetesError::Busy { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Returns the version of the API server that answers.
pub async fn version(client: &Client) -> Result<Version> {
    client.get(&["version"]).json().await
}
