//! Whether the API serves, and as which version.

use serde::Deserialize;

use crate::client::Client;
use crate::error::KubernetesError;

/// What an API server says of its version (`GET /version`).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Version {
    /// As `v1.20.2`.
    #[serde(rename = "gitVersion")]
    pub git_version: String,
}

/// `GET /readyz`: whether the API server that answers has begun all it has to begin with.
///
/// A server that says no is no error, and neither is a balancer that has none behind it. Nobody at all is.
pub async fn is_ready(client: &Client) -> Result<bool, KubernetesError> {
    match client.get(&["readyz"]).done().await {
        Ok(()) => Ok(true),
        Err(KubernetesError::Failed(_) | KubernetesError::Busy { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

/// The version of the API server that answers.
pub async fn version(client: &Client) -> Result<Version, KubernetesError> {
    client.get(&["version"]).json().await
}
