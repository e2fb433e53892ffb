//! Decides about kubelets' certificate requests.
//!
//! A kubelet that joins uses a bootstrap token to request a client certificate, and the client certificate to request a server certificate.
//! It renews both before they expire. kube-controller-manager signs approved requests. kube-controller-manager's own approval does not
//! check the requested name (`bootstrap::forbid_automatic_approval` turns it off). This module compares names, addresses and requester with
//! the members of the cluster.

mod judge;
mod objection;
mod read;
mod subject;

use serde_json::{Value, json};

use crate::client::{Body, Client};
use crate::error::{Result, ignore_not_found};
use crate::object;

pub use judge::{ClusterMember, UndecidedReason, ValidRequest, Verdict, judge};
pub use objection::Objection;
pub use read::{CertificateRequest, Signer};

const REQUESTS: [&str; 4] = ["apis", "certificates.k8s.io", "v1", "certificatesigningrequests"];

/// The outcome of one pass over the pending requests.
#[derive(Debug, Default)]
pub struct PassOutcome {
    /// The names of approved requests, each with its member's name.
    pub approved: Vec<(String, String)>,
    /// The names of denied requests, each with the reason.
    pub denied: Vec<(String, Objection)>,
    /// The names of requests that were left to a person, each with the reason.
    pub left: Vec<(String, UndecidedReason)>,
}

/// Lists the pending requests of kubelets.
pub async fn pending(client: &Client) -> Result<Vec<CertificateRequest>> {
    let all: Vec<Value> = object::list(client, &REQUESTS, &[]).await?;
    Ok(all.into_iter().filter_map(CertificateRequest::pending).collect())
}

/// Approves a request that was found valid. A request that was decided or deleted in the meantime is no error.
pub async fn approve(client: &Client, fit: &ValidRequest<'_>) -> Result<()> {
    let message = format!("asked by machine {}, as kubelets do", fit.machine());
    decide(client, fit.request(), "Approved", "KnownMachine", &message).await
}

/// Denies a request with a reason.
pub async fn deny(
    client: &Client,
    request: &CertificateRequest,
    objection: &Objection,
) -> Result<()> {
    decide(client, request, "Denied", "Objection", &objection.to_string()).await
}

/// Runs one pass: approves valid requests and denies requests that no kubelet sends.
pub async fn decide_pending(client: &Client, machines: &[ClusterMember]) -> Result<PassOutcome> {
    let mut settled = PassOutcome::default();
    for request in pending(client).await? {
        let name = request.name.clone();
        match judge(&request, machines) {
            Verdict::Approve(fit) => {
                approve(client, &fit).await?;
                settled.approved.push((name, fit.machine().to_owned()));
            }
            Verdict::Deny(objection) => {
                deny(client, &request, &objection).await?;
                settled.denied.push((name, objection));
            }
            Verdict::Leave(why) => settled.left.push((name, why)),
        }
    }
    Ok(settled)
}

async fn decide(
    client: &Client,
    request: &CertificateRequest,
    kind: &str,
    reason: &str,
    message: &str,
) -> Result<()> {
    // The whole object is sent with its version, so the decision applies only to the request that was checked, not to a replacement.
    let mut object = request.object.clone();
    let condition = json!({"type": kind, "status": "True", "reason": reason, "message": message});
    object["status"]["conditions"] = json!([condition]);
    let [root, group, version, resource] = REQUESTS;
    let path = [root, group, version, resource, &request.name, "approval"];
    match ignore_not_found(client.put(&path).body(Body::Json(object)).done().await) {
        Err(error) if error.is_changed() => Ok(()),
        other => other,
    }
}
