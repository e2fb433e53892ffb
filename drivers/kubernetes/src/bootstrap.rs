//! How machines are let in: tokens, as kubeadm lays them out, and who approves what they ask for with them.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use secrecy::{ExposeSecret, SecretString};
use serde_json::json;

use crate::apply::{self, Document};
use crate::client::Client;
use crate::error::KubernetesError;

const NAMESPACE: &str = "kube-system";
/// Who may read what `kubeadm join` reads; a binding of kubeadm's names it.
const GROUP: &str = "system:bootstrappers:kubeadm:default-node-token";
/// kubeadm's bindings by which kube-controller-manager approves what is asked for, whoever's name stands in it.
const AUTOMATIC: [&str; 2] =
    ["kubeadm:node-autoapprove-bootstrap", "kubeadm:node-autoapprove-certificate-rotation"];

/// A bootstrap token.
#[derive(Clone, Debug)]
pub struct Token {
    /// The six characters that are no secret.
    pub id: String,
    /// The sixteen that are.
    pub secret: SecretString,
    /// When it ends. The cluster then deletes it by itself.
    pub expires: Timestamp,
    /// What it is for, for people.
    pub description: String,
}

/// Lets machines join with this token, until it ends. One of the same id is replaced.
pub async fn put_token(client: &Client, token: &Token) -> Result<(), KubernetesError> {
    let name = secret_name(&token.id)?;
    if !is_part(token.secret.expose_secret(), 16) {
        let (text, rule) = ("…".to_owned(), "be the secret of a bootstrap token");
        return Err(KubernetesError::InvalidName { text, rule });
    }
    let data = |text: &str| STANDARD.encode(text);
    let body = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "type": "bootstrap.kubernetes.io/token",
        "data": {
            "token-id": data(&token.id),
            "token-secret": data(token.secret.expose_secret()),
            "expiration": data(&token.expires.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()),
            "usage-bootstrap-authentication": data("true"),
            "usage-bootstrap-signing": data("true"),
            "auth-extra-groups": data(GROUP),
            "description": data(&token.description),
        },
    });
    let document = Document::try_from(body).expect("it has a version, a kind and a name");
    apply::one(client, &document).await
}

/// No machine joins with this token any more.
pub async fn delete_token(client: &Client, id: &str) -> Result<(), KubernetesError> {
    let name = secret_name(id)?;
    let path = ["api", "v1", "namespaces", NAMESPACE, "secrets", &name];
    client.delete(&path).done_or_gone().await
}

/// From now on kubelets' certificates are approved by who calls `certificates::settle`, and by nobody else: first ones and renewals.
pub async fn forbid_automatic_approval(client: &Client) -> Result<(), KubernetesError> {
    for name in AUTOMATIC {
        let path = ["apis", "rbac.authorization.k8s.io", "v1", "clusterrolebindings", name];
        client.delete(&path).done_or_gone().await?;
    }
    Ok(())
}

fn secret_name(id: &str) -> Result<String, KubernetesError> {
    if is_part(id, 6) {
        return Ok(format!("bootstrap-token-{id}"));
    }
    // Who mistakes a whole token for its id shall not find it in a log.
    let text = id.chars().take(6).collect();
    Err(KubernetesError::InvalidName { text, rule: "be the id of a bootstrap token" })
}

fn is_part(text: &str, length: usize) -> bool {
    text.len() == length && text.bytes().all(|it| it.is_ascii_lowercase() || it.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_has_six_characters_and_a_whole_token_is_not_shown() {
        assert_eq!(secret_name("abc123").unwrap(), "bootstrap-token-abc123");
        for wrong in ["", "abc12", "ABC123", "abc12/", "abc123.0123456789abcdef"] {
            let error = secret_name(wrong).unwrap_err().to_string();
            assert!(error.ends_with("cannot be the id of a bootstrap token"), "{error}");
            assert!(!error.contains("0123456789"), "{error}");
        }
    }
}
