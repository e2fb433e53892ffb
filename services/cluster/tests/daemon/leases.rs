//! The stages of a lease, sent as notices by a clusterd that is killed after each stage.
#![expect(clippy::unwrap_used, reason = "a failed step ends the test")]

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::State;
use axum::routing::post;
use contract::{DaemonProcess, Output, client, until};
use reqwest::StatusCode;
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// The notices that the webhook received, in order.
#[derive(Clone, Default)]
struct WebhookReceiver(Arc<Mutex<Vec<Value>>>);

impl WebhookReceiver {
    /// Starts the webhook, and returns the webhook and its URL.
    async fn start() -> (WebhookReceiver, String) {
        async fn take(State(reported): State<WebhookReceiver>, body: String) -> StatusCode {
            reported.0.lock().unwrap().push(serde_json::from_str(&body).unwrap());
            StatusCode::NO_CONTENT
        }
        let reported = WebhookReceiver::default();
        let router = Router::new().route("/hook", post(take)).with_state(reported.clone());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://127.0.0.1:{}/hook", listener.local_addr().unwrap().port());
        tokio::spawn(async { axum::serve(listener, router).await });
        (reported, url)
    }

    /// The events of all notices without repetitions: a receiver recognises a repeated notice by its id.
    fn events(&self) -> Vec<String> {
        let mut seen = Vec::new();
        let all = self.0.lock().unwrap().clone();
        let first = all.into_iter().filter(|notice| {
            let id = notice["id"].clone();
            let is_new = !seen.contains(&id);
            seen.push(id);
            is_new
        });
        first.map(|notice| notice["event"].as_str().unwrap().to_owned()).collect()
    }
}

#[tokio::test]
async fn every_stage_of_a_lease_is_sent_once_although_clusterd_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let (reported, hook) = WebhookReceiver::start().await;
    let (secret, config) = (folder.path().join("secret"), folder.path().join("clusterd.toml"));
    let state = folder.path().join("state");
    std::fs::write(&secret, format!("{}\n", left::canary::WEBHOOK)).unwrap();
    let text = format!(
        "state_dir = {state:?}\n\
         [api]\nlisten = \"127.0.0.1:0\"\n\
         [conductor]\nlook_every = \"100ms\"\n\
         [leases.clusters]\nshortest = \"1s\"\n\
         [leases.schedule]\nwarn_before = [\"2s\"]\nnotice = \"1s\"\nundo_window = \"3s\"\n\
         [notices.webhook]\nurl = {hook:?}\nsecret_file = {secret:?}\nallow_local = true\n\
         [notices.retry]\nlook_every = \"50ms\"\n"
    );
    std::fs::write(&config, text).unwrap();
    let program = env!("CARGO_BIN_EXE_clusterd");
    let mut daemon = DaemonProcess::start(program, config, &state, Output::Kept).await;
    let url = daemon.url.clone();
    let post = async |path: &str, body: Value| {
        let sent = client().post(format!("{url}/v1/{path}")).json(&body).send().await.unwrap();
        assert!(sent.status().is_success(), "{}", sent.text().await.unwrap());
    };
    let template = json!({"name": "t", "image_id": "i", "coe": "kubernetes", "flavor_id": "f"});
    post("clustertemplates", template).await;
    let cluster = json!({"name": "c", "cluster_template_id": "t", "labels": {"lease": "4s"}});
    post("clusters", cluster).await;

    let rungs = ["lease.ends", "lease.ended", "lease.deletion_near", "lease.deleted"];
    for many in 1..=rungs.len() {
        until(async || (reported.events().len() >= many).then_some(())).await;
        assert_eq!(reported.events(), rungs[..many]);
        daemon.kill_and_start().await;
    }
    until(async || {
        let cluster = format!("{}/v1/clusters/c", daemon.url);
        let found = client().get(cluster).send().await.unwrap();
        (found.status() == StatusCode::NOT_FOUND).then_some(())
    })
    .await;
    assert_eq!(reported.events(), rungs);
    left::keep(&state, "leases");
}
