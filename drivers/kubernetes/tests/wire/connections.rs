//! Tests of trust, addresses and timeouts.

use std::time::Instant;

use kubernetes::{Client, Endpoint, KubernetesError, health, nodes};
use serde_json::json;

use crate::server::{Authority, ReceivedRequest, Reply, Server};

fn fine(_: &ReceivedRequest) -> Reply {
    Reply::Json(200, json!({"items": []}))
}

#[tokio::test]
async fn a_server_is_verified_by_its_name_at_any_address() {
    let server = Server::start(fine).await;
    for (host, reported) in
        [("api.c.example", "api.c.example:6443"), ("192.0.2.1", "192.0.2.1:6443")]
    {
        let mut access = server.access();
        access.endpoint.host = host.to_owned();
        nodes::list(&Client::new(&access).unwrap()).await.unwrap();
        assert_eq!(server.asked().last().unwrap().header("host"), Some(reported));
    }
    // Neither the connected address nor another name is in the certificate.
    for host in ["127.0.0.1", "other.example"] {
        let mut access = server.access();
        access.endpoint = Endpoint { host: host.to_owned(), port: server.address.port() };
        let error = nodes::list(&Client::new(&access).unwrap()).await.unwrap_err();
        assert!(matches!(error, KubernetesError::Untrusted { .. }), "{host}: {error:?}");
        assert!(!error.is_transient());
    }
    assert_eq!(server.lines().len(), 2);
}

#[tokio::test]
async fn another_authority_is_refused() {
    let server = Server::start(fine).await;
    let mut access = server.access();
    access.authority = Authority::new().pem();
    let error = nodes::list(&Client::new(&access).unwrap()).await.unwrap_err();
    assert!(matches!(error, KubernetesError::Untrusted { .. }), "{error:?}");
    assert_eq!(server.lines().len(), 0);
}

#[tokio::test]
async fn a_client_of_another_authority_is_rejected() {
    let server = Server::start(fine).await;
    let mut access = server.access();
    let (certificate, key) = Authority::new().sign(&["admin"]);
    (access.certificate, access.key) = (certificate.pem(), key.serialize_pem().into());
    nodes::list(&Client::new(&access).unwrap()).await.unwrap_err();
    assert_eq!(server.lines().len(), 0);
}

#[tokio::test]
async fn missing_answers_differ_from_refusals() {
    let mut access = Server::start(fine).await.access();
    access.connect_to = Some(Server::nowhere());
    let error = health::is_ready(&Client::new(&access).unwrap()).await.unwrap_err();
    assert!(error.is_unreachable() && error.is_transient(), "{error:?}");

    let server = Server::start(|_| Reply::Lost).await;
    let error = nodes::cordon(&server.client(), "n").await.unwrap_err();
    assert!(error.is_unreachable(), "{error:?}");
    assert_eq!(server.lines(), ["PATCH /api/v1/nodes/n"], "sent once");

    let server = Server::start(|_| Reply::Silence).await;
    let begun = Instant::now();
    let error = health::is_ready(&server.client()).await.unwrap_err();
    assert!(error.to_string().ends_with("GET /readyz: none within 0.4 s"), "{error}");
    assert!(begun.elapsed().as_secs() < 4);

    let server = Server::start(|_| Reply::Json(500, json!("[-]etcd failed"))).await;
    assert!(!health::is_ready(&server.client()).await.unwrap());
}

#[tokio::test]
async fn invalid_keys_are_reported_at_once_and_not_quoted() {
    let server = Server::start(fine).await;
    let mut access = server.access();
    access.key = "hunter2".to_owned().into();
    let error = Client::new(&access).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the client's key cannot be used: it is not a private key in PEM"
    );
    access = server.access();
    access.authority = String::new();
    assert!(Client::new(&access).unwrap_err().to_string().contains("it has no certificate"));
    access = server.access();
    access.endpoint.host = "x/../y@z".to_owned();
    assert!(Client::new(&access).unwrap_err().to_string().contains("neither a host's name"));
}
