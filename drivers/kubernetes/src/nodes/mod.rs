//! Kubernetes nodes: list, cordon, label, delete.

mod read;
mod taints;

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::client::{Body, Client};
use crate::error::Result;
use crate::object;

pub use read::{Node, Readiness, Taint};
pub use taints::{change_taints, taint, untaint};

pub(crate) const NODES: [&str; 3] = ["api", "v1", "nodes"];

/// Lists all nodes.
pub async fn list(client: &Client) -> Result<Vec<Node>> {
    object::list(client, &NODES, &[]).await
}

/// Returns the node of this name.
pub async fn find(client: &Client, name: &str) -> Result<Option<Node>> {
    client.get(&["api", "v1", "nodes", name]).find().await
}

/// Cordons the node: it gets no new pods.
pub async fn cordon(client: &Client, name: &str) -> Result<()> {
    patch(client, name, json!({"spec": {"unschedulable": true}})).await
}

/// Uncordons the node: it gets new pods again.
pub async fn uncordon(client: &Client, name: &str) -> Result<()> {
    patch(client, name, json!({"spec": {"unschedulable": null}})).await
}

/// Sets labels, and removes those whose value is `None`; other labels stay.
///
/// Can also set labels that a kubelet cannot give itself: `node-role.kubernetes.io/…`, `node-restriction.kubernetes.io/…`.
pub async fn label(
    client: &Client,
    name: &str,
    labels: &BTreeMap<String, Option<String>>,
) -> Result<()> {
    patch(client, name, json!({"metadata": {"labels": labels}})).await
}

/// Deletes the node object. Its pods are lost, so drain the node first.
pub async fn delete(client: &Client, name: &str) -> Result<()> {
    client.delete(&["api", "v1", "nodes", name]).done_or_gone().await
}

async fn patch(client: &Client, name: &str, patch: Value) -> Result<()> {
    client.patch(&["api", "v1", "nodes", name]).body(Body::Merge(patch)).done().await
}
