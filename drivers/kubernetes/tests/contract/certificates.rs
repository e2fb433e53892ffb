//! Tests that a member can join like a kubelet, and only under its own name.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use kubernetes::bootstrap::{self, Token};
use kubernetes::certificates::{self, ClusterMember, Objection, UndecidedReason};
use rcgen::{CertificateParams, DnType, KeyPair, SanType};
use serde_json::json;

use crate::given::{ClusterUnderTest, cluster, name, until};
use crate::kubelet::{KubeletIdentity, ask};

const PATH: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";

/// Creates a request with an identity; returns its name.
async fn request(
    given: &ClusterUnderTest,
    known: &KubeletIdentity<'_>,
    (node, signer, purpose): (&str, &str, &str),
    key: &KeyPair,
    names: Vec<SanType>,
) -> String {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::OrganizationName, "system:nodes");
    params.distinguished_name.push(DnType::CommonName, format!("system:node:{node}"));
    params.subject_alt_names = names;
    let pem = params.serialize_request(key).unwrap().pem().unwrap();
    let body = json!({
        "apiVersion": "certificates.k8s.io/v1",
        "kind": "CertificateSigningRequest",
        "metadata": {"generateName": "contract-"},
        "spec": {
            "request": STANDARD.encode(pem),
            "signerName": format!("kubernetes.io/{signer}"),
            "usages": ["digital signature", "key encipherment", purpose],
        },
    });
    let (status, made) = ask(&given.access, Some(known), "POST", PATH, Some(body)).await;
    assert_eq!(status, 201, "{made}");
    made["metadata"]["name"].as_str().unwrap().to_owned()
}

/// Waits for the signed certificate of a request.
async fn signed(given: &ClusterUnderTest, name: &str) -> String {
    until("the certificate", || async {
        let object = given.object(&format!("{PATH}/{name}")).await.unwrap();
        let certificate = object["status"]["certificate"].as_str();
        Ok(certificate.map(|it| String::from_utf8(STANDARD.decode(it).unwrap()).unwrap()))
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_joins_and_serves_only_under_its_own_name() {
    let given = cluster().await;
    let client = &given.client;
    bootstrap::forbid_automatic_approval(client).await.unwrap();
    bootstrap::forbid_automatic_approval(client).await.unwrap();
    let node = name();
    let id: String = node.chars().rev().filter(char::is_ascii_alphanumeric).take(6).collect();
    let secret = "fedcba9876543210".to_owned();
    let expires = Timestamp::now() + Duration::from_secs(600);
    let description = "of a test".to_owned();
    let token = Token { id: id.clone(), secret: secret.clone().into(), expires, description };
    bootstrap::put_token(client, &token).await.unwrap();
    let token = format!("{id}.{secret}");
    let joining = KubeletIdentity::Token(&token);
    until("the token to be known", || async {
        let (status, _) = ask(&given.access, Some(&joining), "GET", "/api/v1/nodes", None).await;
        Ok((status == 403).then_some(()))
    })
    .await;
    let machines = [ClusterMember {
        name: node.clone(),
        names: Vec::new(),
        addresses: vec!["192.0.2.7".parse().unwrap()],
        may_join: true,
    }];

    // A request of our member, and one of an unknown member.
    let (client_of, serving_of) = ("kube-apiserver-client-kubelet", "kubelet-serving");
    let key = KeyPair::generate().unwrap();
    let stranger = format!("{node}-x");
    let first = request(&given, &joining, (&node, client_of, "client auth"), &key, vec![]).await;
    let other =
        request(&given, &joining, (&stranger, client_of, "client auth"), &key, vec![]).await;
    let settled = certificates::decide_pending(client, &machines).await.unwrap();
    assert!(settled.approved.contains(&(first.clone(), node.clone())), "{settled:?}");
    let left = UndecidedReason::UnknownMachine { name: stranger };
    assert!(settled.left.contains(&(other.clone(), left)), "{settled:?}");
    let certificate = signed(&given, &first).await;

    // With this certificate the kubelet is a node. It requests a server certificate for itself, and one for a neighbour's address.
    let known = KubeletIdentity::Certificate(certificate + &key.serialize_pem());
    let own = SanType::IpAddress("192.0.2.7".parse().unwrap());
    let foreign = SanType::IpAddress("192.0.2.8".parse().unwrap());
    let serves = (node.as_str(), serving_of, "server auth");
    let good = request(&given, &known, serves, &key, vec![own.clone()]).await;
    let bad = request(&given, &known, serves, &key, vec![own, foreign]).await;
    let settled = certificates::decide_pending(client, &machines).await.unwrap();
    assert!(settled.approved.contains(&(good.clone(), node.clone())), "{settled:?}");
    let objection = Objection::ForeignName { name: "192.0.2.8".to_owned(), machine: node };
    assert!(settled.denied.contains(&(bad.clone(), objection)), "{settled:?}");
    signed(&given, &good).await;
    let denied = given.object(&format!("{PATH}/{bad}")).await.unwrap();
    assert_eq!(denied["status"]["conditions"][0]["type"], "Denied", "{denied}");

    // A decided request is not judged again.
    let settled = certificates::decide_pending(client, &machines).await.unwrap();
    assert!(settled.approved.is_empty() && settled.denied.is_empty(), "{settled:?}");
    for name in [first, other, good, bad] {
        ask(&given.access, None, "DELETE", &format!("{PATH}/{name}"), None).await;
    }
    bootstrap::delete_token(client, &id).await.unwrap();
}
