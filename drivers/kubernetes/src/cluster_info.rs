//! The certificate authority that a cluster publishes: to joining servers in kubeadm's ConfigMap `cluster-info` in `kube-public`, and to
//! pods in `kube-root-ca.crt` of each namespace.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::client::{Body, Client};
use crate::error::Result;

const PATH: [&str; 6] = ["api", "v1", "namespaces", "kube-public", "configmaps", "cluster-info"];
/// The text before the authority in the embedded kubeconfig.
const FIELD: &str = "certificate-authority-data: ";

/// Publishes this authority (PEM) to servers that join from now on. Does nothing if the cluster has no `cluster-info`.
///
/// The bootstrap signer of kube-controller-manager updates the signature by itself.
pub async fn set_authority(client: &Client, authority: &str) -> Result<()> {
    let Some(found) = client.get(&PATH).find::<Value>().await? else { return Ok(()) };
    let Some(text) = found["data"]["kubeconfig"].as_str() else { return Ok(()) };
    let wanted = with_authority(text, authority);
    if wanted == text {
        return Ok(());
    }
    let patch = json!({
        "metadata": {"resourceVersion": found["metadata"]["resourceVersion"]},
        "data": {"kubeconfig": wanted},
    });
    client.patch(&PATH).body(Body::Merge(patch)).done().await
}

/// Whether pods that start in this namespace from now on trust this authority (PEM). True for a cluster without the ConfigMap.
///
/// kube-controller-manager writes the ConfigMap shortly after it was started with other CAs.
pub async fn pods_trust(client: &Client, namespace: &str, authority: &str) -> Result<bool> {
    let path = ["api", "v1", "namespaces", namespace, "configmaps", "kube-root-ca.crt"];
    let Some(found) = client.get(&path).find::<Value>().await? else { return Ok(true) };
    let reported = found["data"]["ca.crt"].as_str();
    Ok(reported.is_none_or(|reported| reported.trim() == authority.trim()))
}

/// Replaces the authority in a kubeconfig. kubeadm writes one field a line.
fn with_authority(kubeconfig: &str, authority: &str) -> String {
    let line = |line: &str| match line.find(FIELD) {
        Some(at) => format!("{}{FIELD}{}\n", &line[..at], STANDARD.encode(authority)),
        None => format!("{line}\n"),
    };
    kubeconfig.lines().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_authority_changes_and_nothing_else() {
        let text = "clusters:\n- cluster:\n    certificate-authority-data: b2xk\n    server: https://a:6443\n  name: \"\"\n";
        assert_eq!(with_authority(text, "new"), text.replace("b2xk", "bmV3"));
        assert_eq!(with_authority(text, "old"), text);
    }
}
