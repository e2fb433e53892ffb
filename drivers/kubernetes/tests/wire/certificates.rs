//! Tests that only a request that was judged is approved.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kubernetes::certificates::{self, ClusterMember};
use rcgen::{CertificateParams, DnType, KeyPair};
use serde_json::{Value, json};

use crate::server::{ReceivedRequest, Reply, Server};

fn request() -> Value {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::OrganizationName, "system:nodes");
    params.distinguished_name.push(DnType::CommonName, "system:node:w");
    let pem = params.serialize_request(&KeyPair::generate().unwrap()).unwrap().pem().unwrap();
    json!({
        "metadata": {"name": "csr-1", "uid": "u", "resourceVersion": "41", "annotations": {"kept": "yes"}},
        "spec": {
            "request": STANDARD.encode(pem),
            "signerName": "kubernetes.io/kube-apiserver-client-kubelet",
            "username": "system:bootstrap:abcdef",
            "groups": ["system:bootstrappers", "system:authenticated"],
            "usages": ["digital signature", "key encipherment", "client auth"],
        },
    })
}

fn machines(may_join: bool) -> [ClusterMember; 1] {
    [ClusterMember { name: "w".to_owned(), names: vec![], addresses: vec![], may_join }]
}

#[tokio::test]
async fn an_approval_names_the_version_that_was_judged() {
    let request = request();
    let list = json!({"items": [request]});
    let server =
        Server::start(move |asked: &ReceivedRequest| match asked.line.starts_with("GET") {
            true => Reply::Json(200, list.clone()),
            false => Reply::Json(200, json!({})),
        })
        .await;
    let settled = certificates::decide_pending(&server.client(), &machines(true)).await.unwrap();
    assert_eq!(settled.approved, [("csr-1".to_owned(), "w".to_owned())]);
    let put = server.asked().pop().unwrap();
    assert_eq!(
        put.line,
        "PUT /apis/certificates.k8s.io/v1/certificatesigningrequests/csr-1/approval"
    );
    let mut want = request;
    want["status"] = json!({"conditions": [{"type": "Approved", "status": "True", "reason": "KnownMachine", "message": "asked by machine w, as kubelets do"}]});
    assert_eq!(put.body, want);
}

#[tokio::test]
async fn a_replaced_request_is_judged_again() {
    let list = json!({"items": [request()]});
    let server =
        Server::start(move |asked: &ReceivedRequest| match asked.line.starts_with("GET") {
            true => Reply::Json(200, list.clone()),
            false => Reply::Json(409, json!({"reason": "Conflict"})),
        })
        .await;
    certificates::decide_pending(&server.client(), &machines(true)).await.unwrap();
    assert_eq!(server.lines().len(), 2, "not asked again in this pass");
}

#[tokio::test]
async fn a_request_left_to_a_person_is_not_changed() {
    let list = json!({"items": [request()]});
    let server = Server::start(move |_| Reply::Json(200, list.clone())).await;
    let settled = certificates::decide_pending(&server.client(), &machines(false)).await.unwrap();
    assert_eq!((settled.approved.len(), settled.denied.len(), settled.left.len()), (0, 0, 1));
    assert_eq!(server.lines().len(), 1);
}
