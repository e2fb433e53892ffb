//! Whom to believe, as a cluster tells it: who is not let in yet by the ConfigMap `cluster-info` in `kube-public`, as kubeadm makes it,
//! and pods by `kube-root-ca.crt` in each namespace.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::client::{Body, Client};
use crate::error::KubernetesError;

const PATH: [&str; 6] = ["api", "v1", "namespaces", "kube-public", "configmaps", "cluster-info"];
/// Before the text in the kubeconfig that it holds.
const FIELD: &str = "certificate-authority-data: ";

/// Has machines that join from now on believe this authority, PEM. A cluster without a `cluster-info` has none to change.
///
/// The bootstrap signer of kube-controller-manager signs it anew by itself.
pub async fn set_authority(client: &Client, authority: &str) -> Result<(), KubernetesError> {
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

/// Whether pods that start in this namespace from now on believe this authority, PEM; so does a cluster that tells its pods otherwise.
///
/// kube-controller-manager writes it, a moment after it was started with other authorities.
pub async fn pods_believe(
    client: &Client,
    namespace: &str,
    authority: &str,
) -> Result<bool, KubernetesError> {
    let path = ["api", "v1", "namespaces", namespace, "configmaps", "kube-root-ca.crt"];
    let Some(found) = client.get(&path).find::<Value>().await? else { return Ok(true) };
    let told = found["data"]["ca.crt"].as_str();
    Ok(told.is_none_or(|told| told.trim() == authority.trim()))
}

/// The kubeconfig, which kubeadm writes a field a line, with another authority.
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
