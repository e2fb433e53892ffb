//! Kubelets' requests for certificates: which are granted.
//!
//! A kubelet that joins has a bootstrap token and asks for a certificate as a client; with that it asks for one as a server, and for
//! the next of both before they end. kube-controller-manager signs what is approved. Its own approval takes everybody's word for
//! their name (`bootstrap::forbid_automatic_approval` ends that); here names, addresses and who asks are compared
//! with the machines that there are.

mod judge;
mod read;
mod subject;

use serde_json::{Value, json};

use crate::client::{Body, Client};
use crate::error::{KubernetesError, gone_is_fine};
use crate::object;

pub use judge::{Fit, Left, Machine, Objection, Verdict, judge};
pub use read::{CertificateRequest, Signer};

const REQUESTS: [&str; 4] = ["apis", "certificates.k8s.io", "v1", "certificatesigningrequests"];

/// What has become of the requests that were pending.
#[derive(Debug, Default)]
pub struct Settled {
    /// The names of requests that were approved, and of the machines they are for.
    pub approved: Vec<(String, String)>,
    /// The names of requests that were denied, and why.
    pub denied: Vec<(String, Objection)>,
    /// The names of requests that were left to people, and why.
    pub left: Vec<(String, Left)>,
}

/// The requests of kubelets that nobody has decided on.
pub async fn pending(client: &Client) -> Result<Vec<CertificateRequest>, KubernetesError> {
    let all: Vec<Value> = object::list(client, &REQUESTS, &[]).await?;
    Ok(all.into_iter().filter_map(CertificateRequest::pending).collect())
}

/// Approves a request that was judged to be fit. What was decided or has gone meanwhile is fine.
pub async fn approve(client: &Client, fit: &Fit<'_>) -> Result<(), KubernetesError> {
    let message = format!("asked by machine {}, as kubelets do", fit.machine());
    decide(client, fit.request(), "Approved", "KnownMachine", &message).await
}

/// Denies a request, for this reason.
pub async fn deny(
    client: &Client,
    request: &CertificateRequest,
    objection: &Objection,
) -> Result<(), KubernetesError> {
    decide(client, request, "Denied", "Objection", &objection.to_string()).await
}

/// One pass: judges what is pending, approves what is fit, denies what no kubelet asks for.
pub async fn settle(client: &Client, machines: &[Machine]) -> Result<Settled, KubernetesError> {
    let mut settled = Settled::default();
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
) -> Result<(), KubernetesError> {
    // The whole object with its version: what is decided on is what was judged, and nothing that came in its place.
    let mut object = request.object.clone();
    let condition = json!({"type": kind, "status": "True", "reason": reason, "message": message});
    object["status"]["conditions"] = json!([condition]);
    let [root, group, version, resource] = REQUESTS;
    let path = [root, group, version, resource, &request.name, "approval"];
    match gone_is_fine(client.put(&path).body(Body::Json(object)).done().await) {
        Err(error) if error.is_changed() => Ok(()),
        other => other,
    }
}
