//! A kubelet's requests for certificates, sent without our driver.

use kubernetes::Access;
use reqwest::{Certificate, Identity, Method};
use secrecy::ExposeSecret as _;
use serde_json::Value;

pub(crate) enum KubeletIdentity<'k> {
    Token(&'k str),
    /// A certificate and its key in PEM.
    Certificate(String),
}

/// Sends a request to the cluster with an identity; by default with the identity of `access`.
pub(crate) async fn ask(
    access: &Access,
    known: Option<&KubeletIdentity<'_>>,
    method: &str,
    path: &str,
    body: Option<Value>,
) -> (u16, Value) {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let authority = Certificate::from_pem(access.authority.as_bytes()).unwrap();
    // Every API server's certificate has this name, which is resolved to the endpoint's address.
    let port = access.connect_to.map_or(access.endpoint.port, |it| it.port());
    let host = access.connect_to.map_or(access.endpoint.host.clone(), |it| it.ip().to_string());
    let mut client = reqwest::Client::builder().no_proxy().tls_certs_only([authority]);
    let there = tokio::net::lookup_host((host.as_str(), port)).await.unwrap().next().unwrap();
    client = client.resolve("kubernetes", there);
    let pem = match known {
        None => Some(access.certificate.clone() + access.key.expose_secret()),
        Some(KubeletIdentity::Certificate(pem)) => Some(pem.clone()),
        Some(KubeletIdentity::Token(_)) => None,
    };
    if let Some(pem) = pem {
        client = client.identity(Identity::from_pem(pem.as_bytes()).unwrap());
    }
    let url = format!("https://kubernetes:{port}{path}");
    let mut request = client.build().unwrap().request(method.parse::<Method>().unwrap(), url);
    if let Some(KubeletIdentity::Token(token)) = known {
        request = request.bearer_auth(token);
    }
    if let Some(body) = body {
        request = request.json(&body);
    }
    let answer = request.send().await.unwrap();
    let status = answer.status().as_u16();
    (status, answer.json().await.unwrap_or_default())
}
