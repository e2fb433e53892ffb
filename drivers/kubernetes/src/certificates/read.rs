//! A certificate request, as read from the cluster.

use std::collections::BTreeSet;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use crate::lenient;
use crate::object::Metadata;

/// The signer that a kubelet sends its request to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signer {
    /// `kubernetes.io/kube-apiserver-client-kubelet`: the kubelet's identity at the API.
    Client,
    /// `kubernetes.io/kubelet-serving`: the kubelet's identity for clients that fetch logs and metrics.
    Serving,
}

/// A pending certificate request.
///
/// `username` and `groups` come from the API server and can be trusted; `pem` comes from the requester and cannot.
#[derive(Clone, Debug)]
pub struct CertificateRequest {
    pub name: String,
    pub signer: Signer,
    pub username: String,
    pub groups: BTreeSet<String>,
    pub usages: BTreeSet<String>,
    pub created: Option<Timestamp>,
    /// The certificate request itself.
    pub pem: Vec<u8>,
    pub(super) object: Value,
}

#[derive(Deserialize)]
struct Raw {
    metadata: Metadata,
    spec: Spec,
    #[serde(default)]
    status: Status,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec {
    #[serde(default, deserialize_with = "lenient::or_default")]
    request: String,
    signer_name: String,
    #[serde(default, deserialize_with = "lenient::or_default")]
    username: String,
    #[serde(default, deserialize_with = "lenient::or_default")]
    groups: BTreeSet<String>,
    #[serde(default, deserialize_with = "lenient::or_default")]
    usages: BTreeSet<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Status {
    #[serde(deserialize_with = "lenient::or_default")]
    conditions: Vec<Condition>,
    #[serde(deserialize_with = "lenient::or_default")]
    certificate: String,
}

#[derive(Deserialize)]
struct Condition {
    r#type: String,
}

impl Signer {
    fn of(name: &str) -> Option<Signer> {
        match name {
            "kubernetes.io/kube-apiserver-client-kubelet" => Some(Signer::Client),
            "kubernetes.io/kubelet-serving" => Some(Signer::Serving),
            _ => None,
        }
    }
}

impl CertificateRequest {
    /// Reads a `CertificateSigningRequest`; `None` if it is not for a kubelet's signer, or if it was decided already.
    pub(super) fn pending(object: Value) -> Option<CertificateRequest> {
        let raw = Raw::deserialize(&object).ok()?;
        let signer = Signer::of(&raw.spec.signer_name)?;
        let decided = raw.status.conditions.iter();
        let decided =
            decided.filter(|it| ["Approved", "Denied", "Failed"].contains(&it.r#type.as_str()));
        if decided.count() > 0 || !raw.status.certificate.is_empty() {
            return None;
        }
        Some(CertificateRequest {
            name: raw.metadata.name,
            signer,
            username: raw.spec.username,
            groups: raw.spec.groups,
            usages: raw.spec.usages,
            created: raw.metadata.creation_timestamp,
            // Invalid base64 becomes an empty request, which `judge` then denies.
            pem: STANDARD.decode(raw.spec.request).unwrap_or_default(),
            object,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn request(signer: &str, status: Value) -> Option<CertificateRequest> {
        CertificateRequest::pending(json!({
            "metadata": {"name": "csr-1"},
            "spec": {
                "request": "aGk=", "signerName": signer, "username": "system:node:n",
                "groups": ["system:nodes"], "usages": ["client auth", "digital signature"],
            },
            "status": status,
        }))
    }

    #[test]
    fn only_requests_to_kubelets_signers_are_read() {
        let client = request("kubernetes.io/kube-apiserver-client-kubelet", json!({})).unwrap();
        assert_eq!((client.signer, client.pem.as_slice()), (Signer::Client, &b"hi"[..]));
        assert_eq!(client.usages, ["client auth", "digital signature"].map(str::to_owned).into());
        let serving =
            request("kubernetes.io/kubelet-serving", json!({"conditions": null})).unwrap();
        assert_eq!(serving.signer, Signer::Serving);
        assert!(request("kubernetes.io/kube-apiserver-client", json!({})).is_none());
        assert!(request("example.org/mine", json!({})).is_none());
    }

    #[test]
    fn decided_requests_are_left_out() {
        for word in ["Approved", "Denied", "Failed"] {
            let status = json!({"conditions": [{"type": word, "status": "True"}]});
            assert!(request("kubernetes.io/kubelet-serving", status).is_none(), "{word}");
        }
        let signed = json!({"certificate": "LS0="});
        assert!(request("kubernetes.io/kubelet-serving", signed).is_none());
    }
}
