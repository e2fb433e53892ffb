//! ConfigMaps, which components of a cluster use to store their records.

use serde_json::Value;

use crate::client::Client;
use crate::error::Result;
use crate::object;

/// Lists the ConfigMaps of a namespace that have this label, whatever its value.
pub async fn labelled(client: &Client, namespace: &str, label: &str) -> Result<Vec<Value>> {
    let path = ["api", "v1", "namespaces", namespace, "configmaps"];
    object::list(client, &path, &[("labelSelector", label.to_owned())]).await
}
