//! The end of the service on request.

use std::time::Duration;

use cluster::{Config, Service};
use reqwest::Client;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

#[tokio::test]
async fn event_streams_end_when_the_service_stops() {
    let state = tempfile::tempdir().unwrap();
    let text = format!("state_dir = {:?}\n[api]\nlisten = \"127.0.0.1:0\"\n", state.path());
    let config: Config = toml::from_str(&text).unwrap();
    let service = Service::start(config).await.unwrap();
    let url = format!("http://{}", service.listeners().api);
    let stop = CancellationToken::new();
    let running = tokio::spawn(service.run(stop.clone()));

    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = Client::builder().no_proxy().build().unwrap();
    let post = async |path: &str, body: Value| {
        let sent = client.post(format!("{url}/v1/{path}")).json(&body).send().await.unwrap();
        assert!(sent.status().is_success(), "{}", sent.text().await.unwrap());
    };
    let template = json!({"name": "t", "image_id": "i", "coe": "kubernetes", "flavor_id": "f"});
    post("clustertemplates", template).await;
    post("clusters", json!({"name": "c", "cluster_template_id": "t"})).await;

    let events = client.get(format!("{url}/bedplate/v1/clusters/c/events"));
    let mut stream = events.header("accept", "text/event-stream").send().await.unwrap();
    let first = stream.chunk().await.unwrap().unwrap();
    assert!(first.starts_with(b"id: "), "{first:?}");
    stop.cancel();
    // A stream that is cut off returns an error here, and a stream that is not ended runs into the timeout.
    let rest = async { while stream.chunk().await.unwrap().is_some() {} };
    tokio::time::timeout(Duration::from_secs(20), rest).await.unwrap();
    running.await.unwrap().unwrap();
}
