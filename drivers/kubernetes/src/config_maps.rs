//! ConfigMaps, in which those who look after a cluster leave each other notes.

use serde_json::Value;

use crate::client::Client;
use crate::error::KubernetesError;
use crate::object;

/// Those of a namespace that have this label, whatever its value.
pub async fn labelled(
    client: &Client,
    namespace: &str,
    label: &str,
) -> Result<Vec<Value>, KubernetesError> {
    let path = ["api", "v1", "namespaces", namespace, "configmaps"];
    object::list(client, &path, &[("labelSelector", label.to_owned())]).await
}
