//! The stages of a lease, sent as notices by a clusterd that is killed after each stage.
#![expect(clippy::unwrap_used, reason = "a failed step ends the test")]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::routing::post;
use cluster::Listeners;
use reqwest::{Client, StatusCode};
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// The timeout of every wait.
const PATIENCE: Duration = Duration::from_secs(60);

/// The notices that the webhook received, in order.
#[derive(Clone, Default)]
struct WebhookReceiver(Arc<Mutex<Vec<Value>>>);

impl WebhookReceiver {
    /// Starts the webhook, and returns the webhook and its URL.
    async fn start() -> (WebhookReceiver, String) {
        async fn take(State(told): State<WebhookReceiver>, body: String) -> StatusCode {
            told.0.lock().unwrap().push(serde_json::from_str(&body).unwrap());
            StatusCode::NO_CONTENT
        }
        let told = WebhookReceiver::default();
        let router = Router::new().route("/hook", post(take)).with_state(told.clone());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://127.0.0.1:{}/hook", listener.local_addr().unwrap().port());
        tokio::spawn(async { axum::serve(listener, router).await });
        (told, url)
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

/// A clusterd process that can be killed.
struct Daemon {
    config: PathBuf,
    listeners: PathBuf,
    process: Child,
}

impl Daemon {
    async fn start(config: PathBuf, state: &Path) -> Daemon {
        let listeners = state.join("listeners.json");
        let process = spawn(&config);
        let daemon = Daemon { config, listeners, process };
        daemon.until_it_listens().await;
        daemon
    }

    async fn until_it_listens(&self) {
        let waiting = async {
            while !self.listeners.exists() || self.api().await.is_none() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(PATIENCE, waiting).await.unwrap();
    }

    /// The URL of the API; `None` while the API does not answer.
    async fn api(&self) -> Option<String> {
        let text = std::fs::read(&self.listeners).ok()?;
        let listeners: Listeners = serde_json::from_slice(&text).ok()?;
        let url = format!("http://{}", listeners.api);
        client().get(format!("{url}/")).send().await.ok().map(|_| url)
    }

    /// Kills the daemon with SIGKILL and starts another.
    async fn kill_and_start(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
        std::fs::remove_file(&self.listeners).unwrap();
        self.process = spawn(&self.config);
        self.until_it_listens().await;
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn spawn(config: &Path) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_clusterd"));
    let log = std::fs::File::options()
        .create(true)
        .append(true)
        .open(config.with_file_name("state").join("log"));
    command.arg("--config").arg(config).stdout(Stdio::null()).stderr(log.unwrap());
    command.spawn().unwrap()
}

fn client() -> Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::builder().no_proxy().build().unwrap()
}

#[tokio::test]
async fn every_stage_of_a_lease_is_sent_once_although_clusterd_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let (told, hook) = WebhookReceiver::start().await;
    let (secret, config) = (folder.path().join("secret"), folder.path().join("clusterd.toml"));
    let state = folder.path().join("state");
    std::fs::create_dir(&state).unwrap();
    std::fs::write(&secret, format!("{}\n", left::canary::WEBHOOK)).unwrap();
    let text = format!(
        "state_dir = {state:?}\n\
         [api]\nlisten = \"127.0.0.1:0\"\n\
         [conductor]\nlook_every = \"100ms\"\n\
         [leases.clusters]\nshortest = \"1s\"\n\
         [leases.ladder]\nwarn_before = [\"2s\"]\nnotice = \"1s\"\nundo_window = \"3s\"\n\
         [notices.webhook]\nurl = {hook:?}\nsecret_file = {secret:?}\nallow_local = true\n\
         [notices.retry]\nlook_every = \"50ms\"\n"
    );
    std::fs::write(&config, text).unwrap();
    let mut daemon = Daemon::start(config, &state).await;
    let url = daemon.api().await.unwrap();
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
        let waiting = async {
            while told.events().len() < many {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(PATIENCE, waiting).await.unwrap();
        assert_eq!(told.events(), rungs[..many]);
        daemon.kill_and_start().await;
    }
    let url = daemon.api().await.unwrap();
    let waiting = async {
        loop {
            let found = client().get(format!("{url}/v1/clusters/c")).send().await.unwrap();
            if found.status() == StatusCode::NOT_FOUND {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.unwrap();
    assert_eq!(told.events(), rungs);
    left::keep(&state, "leases");
}
