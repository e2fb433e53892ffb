//! A cluster's certificate authority, and signing with it.

use cluster_core::{
    ClaimUuid, Cluster, ClusterUuid, Ident, LedgerEntry, LedgerState, LedgerUuid, MemberName,
    NodeGroup,
};
use cluster_store::{Claim, ClusterChange, Scope};
use jiff::Timestamp;
use newtype_uuid::GenericUuid;
use rcgen::{CertificateParams, DnType, KeyPair};
use serde_json::json;

use crate::api::Api;

/// A certificate request like the one of `openstack coe cluster config`, with another kind of key.
fn request(name: &str, organization: Option<&str>) -> String {
    let mut parameters = CertificateParams::default();
    parameters.distinguished_name.push(DnType::CommonName, name);
    if let Some(organization) = organization {
        parameters.distinguished_name.push(DnType::OrganizationName, organization);
    }
    let key = KeyPair::generate().unwrap();
    parameters.serialize_request(&key).unwrap().pem().unwrap()
}

#[tokio::test]
async fn a_request_is_signed_by_the_shown_certificate_authority() {
    let api = Api::start().await;
    let id = api.small().await;
    let shown = api.get(&format!("/v1/certificates/{id}")).await.has(200).json();
    let pem = shown["pem"].as_str().unwrap();
    assert!(pem.starts_with("-----BEGIN CERTIFICATE-----"));
    assert_eq!((&shown["cluster_uuid"], &shown["csr"]), (&json!(id), &json!(null)));
    assert_eq!(api.get("/v1/certificates/c").await.json()["pem"], pem, "it is made once");

    let csr = request("admin", Some("system:masters"));
    let body = json!({"cluster_uuid": id, "csr": csr}).to_string();
    let signed = api.post("/v1/certificates", &body).await.has(201).json();
    assert_eq!(signed["csr"], csr);
    assert!(signed["pem"].as_str().unwrap().starts_with("-----BEGIN CERTIFICATE-----"));
    assert_ne!(signed["pem"], pem);
    let events = api.get("/bedplate/v1/clusters/c/events").await.json();
    let last = events["events"].as_array().unwrap().last().unwrap().clone();
    assert_eq!(last["message"], "signed a certificate for anonymous");
}

#[tokio::test]
async fn each_certificate_authority_is_shown_and_signs() {
    let api = Api::start().await;
    api.small().await;
    let pem = async |kind: &str| {
        let path = format!("/v1/certificates/c?ca_cert_type={kind}");
        api.get(&path).await.has(200).json()["pem"].as_str().unwrap().to_owned()
    };
    let (own, etcd) = (pem("kubernetes").await, pem("etcd").await);
    let proxy = pem("front-proxy").await;
    assert!(own != etcd && etcd != proxy && own != proxy);
    assert_eq!(pem("front_proxy").await, proxy);
    let csr = request("backup", None);
    let ask =
        |kind: &str| json!({"cluster_uuid": "c", "csr": csr, "ca_cert_type": kind}).to_string();
    let signed = api.post("/v1/certificates", &ask("etcd")).await.has(201).json();
    assert!(signed["pem"].as_str().unwrap().starts_with("-----BEGIN CERTIFICATE-----"));
    let events = api.get("/bedplate/v1/clusters/c/events").await.text;
    assert!(events.contains("signed a certificate by the CA of etcd for anonymous"), "{events}");
    let why = "ca_cert_type: must be kubernetes, etcd or front-proxy";
    api.post("/v1/certificates", &ask("colour")).await.refuses(400, why);
    let body = json!({"cluster_uuid": "nobody", "csr": csr}).to_string();
    let why = "cluster_uuid: Cluster nobody could not be found.";
    api.post("/v1/certificates", &body).await.refuses(400, why);
}

#[tokio::test]
async fn a_request_for_a_forbidden_name_is_not_signed() {
    let api = Api::start().await;
    api.small().await;
    let sign = async |csr: &str| {
        let body = json!({"cluster_uuid": "c", "csr": csr}).to_string();
        api.post("/v1/certificates", &body).await
    };
    sign("no request")
        .await
        .refuses(400, "csr: cannot read the certificate request: send a PKCS #10 request in PEM, signed by its own key");
    sign(&request("system:kube-scheduler", None)).await.refuses(
        400,
        "csr: the subject of the request is not allowed: names that begin with `system:` are reserved by Kubernetes",
    );
}

#[tokio::test]
async fn a_cluster_without_members_gets_a_new_certificate_authority_at_once() {
    let api = Api::start().await;
    let id = api.small().await;
    let before = api.get("/v1/certificates/c").await.json()["pem"].clone();
    api.patch("/v1/certificates/c", "").await.has(202).is(&format!(r#"{{"uuid": "{id}"}}"#));
    assert_ne!(api.get("/v1/certificates/c").await.json()["pem"], before);
    api.send("PATCH", "/v1/certificates/c", "container-infra 1.1", "").await.has(202);
}

#[tokio::test]
async fn a_cluster_gets_its_next_credential() {
    let api = Api::start().await;
    let id = api.small().await;
    let objects = async || {
        let plan = api.get(&format!("/bedplate/v1/clusters/{id}/plan")).await.json();
        plan["objects"].to_string()
    };
    assert!(objects().await.contains("credential/1"), "{}", objects().await);
    api.patch("/v1/credentials/c", "").await.has(202).is(&format!(r#"{{"uuid": "{id}"}}"#));
    let after = objects().await;
    assert!(after.contains("credential/2") && !after.contains("credential/1"), "{after}");
    api.send("PATCH", "/v1/credentials/c", "container-infra 1.11", "").await.has(406);
}

#[tokio::test]
async fn a_ca_rotation_of_a_cluster_in_use_has_steps_and_excludes_another() {
    let api = Api::start().await;
    let id = api.small().await;
    let cluster: ClusterUuid = id.parse().unwrap();
    let before = api.get("/v1/certificates/c").await.json()["pem"].clone();
    let line = LedgerEntry {
        id: LedgerUuid::new_v4(),
        of: cluster.into(),
        kind: "server/default-master-0".to_owned(),
        name: "c-default-master-0".to_owned(),
        cloud_id: None,
        state: LedgerState::Intended,
        created_at: Timestamp::UNIX_EPOCH,
        updated_at: None,
    };
    api.store.save_ledger(&[line]).await.unwrap();
    api.patch("/v1/certificates/c", "")
        .await
        .refuses(409, "member default-master-0 is not a Kubernetes node yet; try again when it is");
    let ident = Ident::Id(cluster.into_untyped_uuid());
    let found =
        || async { api.store.find_clusters(&ident, &Scope::All).await.unwrap().pop().unwrap() };
    let groups = api.store.groups_of(cluster).await.unwrap();
    let machines: Vec<MemberName> = groups.iter().flat_map(NodeGroup::refs).collect();
    let nodes = machines.iter().cloned().collect();
    api.store.change_cluster(&ClusterChange::of(Cluster { nodes, ..found().await })).await.unwrap();
    let refusal = api.patch("/v1/certificates/c", "").await.has(409).text;
    assert!(refusal.contains("default-master-0 has not reported which revision"), "{refusal}");
    assert_eq!(api.get("/v1/certificates/c").await.json()["pem"], before);

    for machine in machines {
        let claim = Claim {
            id: ClaimUuid::new_v4(),
            cluster,
            digest: machine.to_string(),
            machine,
            facts: String::new(),
            expires_at: Timestamp::UNIX_EPOCH,
            redeemed_at: None,
            redeemed_by: None,
        };
        api.store.insert_claim(&claim).await.unwrap();
        api.store.note_authorities(claim.id, 0).await.unwrap();
    }
    api.patch("/v1/certificates/c", "").await.has(202).is(&format!(r#"{{"uuid": "{id}"}}"#));
    let during = api.get("/v1/certificates/c").await.json()["pem"].clone();
    let (before, during) = (before.as_str().unwrap(), during.as_str().unwrap());
    assert!(during.starts_with(before) && during.len() > before.len(), "both are trusted");
    api.patch("/v1/certificates/c", "").await.refuses(
        409,
        "a CA rotation of cluster c is already in progress: members learn to trust the new certificate authorities besides the old ones",
    );
    let events = api.get("/bedplate/v1/clusters/c/events").await.text;
    assert_eq!(events.matches("AuthorityRotated").count(), 1, "{events}");
}

#[tokio::test]
async fn nothing_secret_is_stored_in_the_clear() {
    let api = Api::start().await;
    let id = api.small().await;
    api.get("/v1/certificates/c").await.has(200);
    let sealed = api.store.find_secret(id.parse().unwrap(), "pki").await.unwrap().unwrap();
    assert!(sealed.starts_with("sealed:v1:") && !sealed.contains("BEGIN"), "{sealed}");
}
