//! Bootstrap tokens in kubeadm's form, and the approval of certificate requests that use them.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use secrecy::{ExposeSecret, SecretString};
use serde_json::json;

use crate::apply::{self, Document};
use crate::client::Client;
use crate::error::{KubernetesError, Result};

const NAMESPACE: &str = "kube-system";
/// A group with the rights that `kubeadm join` needs; one of kubeadm's bindings names it.
const GROUP: &str = "system:bootstrappers:kubeadm:default-node-token";
/// kubeadm's bindings that make kube-controller-manager approve kubelets' requests without checking the requested name.
const AUTOMATIC: [&str; 2] =
    ["kubeadm:node-autoapprove-bootstrap", "kubeadm:node-autoapprove-certificate-rotation"];

/// A bootstrap token, with which a server joins the cluster.
#[derive(Clone, Debug)]
pub struct Token {
    /// The six public characters.
    pub id: String,
    /// The sixteen secret characters.
    pub secret: SecretString,
    /// The end of the token's validity. The cluster then deletes the token.
    pub expires: Timestamp,
    /// The purpose, shown to people.
    pub description: String,
}

/// Creates a token, with which servers can join until it expires. Replaces a token with the same id.
pub async fn put_token(client: &Client, token: &Token) -> Result<()> {
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

/// Deletes a token, so that no server can join with it.
pub async fn delete_token(client: &Client, id: &str) -> Result<()> {
    let name = secret_name(id)?;
    let path = ["api", "v1", "namespaces", NAMESPACE, "secrets", &name];
    client.delete(&path).done_or_gone().await
}

/// Removes the automatic approval of kubelets' certificates. From then on, only callers of `certificates::settle` approve first requests
/// and renewals.
pub async fn forbid_automatic_approval(client: &Client) -> Result<()> {
    for name in AUTOMATIC {
        let path = ["apis", "rbac.authorization.k8s.io", "v1", "clusterrolebindings", name];
        client.delete(&path).done_or_gone().await?;
    }
    Ok(())
}

fn secret_name(id: &str) -> Result<String> {
    if is_part(id, 6) {
        return Ok(format!("bootstrap-token-{id}"));
    }
    // A caller that passes a whole token instead of its id must not find the secret part in a log.
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
