//! Two clusterd on one PostgreSQL: each counts the requests of a caller, and remembers the tokens of Keystone, by itself.
#![expect(clippy::unwrap_used, reason = "a failed setup fails the test")]

use cluster::Service;
use contract::until;
use database::scratch::Scratch;
use openstack_emulator::{Cloud, Emulator, Settings};
use reqwest::{Client, Response};
use serde_json::json;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

/// Two clusterd that authenticate callers with the Keystone of one cloud.
struct Pair {
    cloud: Cloud,
    client: Client,
    urls: Vec<String>,
    _emulator: Emulator,
    state: tempfile::TempDir,
    _running: Vec<AbortOnDropHandle<()>>,
}

impl Pair {
    /// Starts both with these further keys of `[api.keystone]`, and the tables after them. Returns `None` without a PostgreSQL.
    async fn start(more: &str) -> Option<Pair> {
        let scratch = Scratch::postgres().await?;
        left::keep_logs();
        let emulator = Emulator::start(Settings::default()).await.unwrap();
        let cloud = emulator.cloud.clone();
        let state = tempfile::tempdir().unwrap();
        let clouds = state.path().join("clouds.yaml");
        std::fs::write(&clouds, cloud.clouds_yaml()).unwrap();
        let _ = rustls::crypto::ring::default_provider().install_default();
        let (mut urls, mut running) = (Vec::new(), Vec::new());
        for hostname in ["a", "b"] {
            let folder = state.path().join(hostname);
            if hostname == "b" {
                std::fs::create_dir(&folder).unwrap();
                let keys = state.path().join("a/seal.keys");
                std::fs::copy(keys, folder.join("seal.keys")).unwrap();
            }
            let text = format!(
                "state_dir = {folder:?}\n[conductor]\nhostname = '{hostname}'\n[database]\nurl = '{}'\n\
                 [api]\nlisten = '127.0.0.1:0'\nauth = 'keystone'\n\
                 [api.keystone]\nclouds_yaml = {clouds:?}\nname = 'clusterd'\n{more}",
                scratch.url
            );
            let service = Service::start(toml::from_str(&text).unwrap()).await.unwrap();
            urls.push(format!("http://{}", service.listeners().api));
            running.push(AbortOnDropHandle::new(tokio::spawn(async move {
                service.run(CancellationToken::new()).await.unwrap();
            })));
        }
        let client = Client::builder().no_proxy().build().unwrap();
        Some(Pair { cloud, client, urls, _emulator: emulator, state, _running: running })
    }

    /// Returns a token of a user of the cloud.
    async fn token(&self) -> String {
        let domain = json!({"id": "default"});
        let user = json!({"name": "alice", "domain": domain, "password": "alice-secret"});
        let identity = json!({"methods": ["password"], "password": {"user": user}});
        let scope = json!({"project": {"name": "tenant-a", "domain": domain}});
        let body = json!({"auth": {"identity": identity, "scope": scope}});
        let url = format!("{}/auth/tokens", self.cloud.auth_url());
        let answer = self.client.post(url).json(&body).send().await.unwrap();
        answer.headers()["x-subject-token"].to_str().unwrap().to_owned()
    }

    /// Reads the clusters from the first or from the second clusterd.
    async fn read(&self, number: usize, token: &str) -> Response {
        let request = self.client.get(format!("{}/v1/clusters", self.urls[number]));
        request.header("x-auth-token", token).send().await.unwrap()
    }

    /// Returns how often Keystone was asked about a token.
    fn validations(&self) -> usize {
        self.cloud.count(|call| call.method == "GET" && call.path.ends_with("/v3/auth/tokens"))
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        left::add_secrets(self.cloud.secrets());
        for hostname in ["a", "b"] {
            left::keep(&self.state.path().join(hostname), &format!("clusters-several-{hostname}"));
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_process_limits_the_requests_of_a_caller_by_itself() {
    let Some(pair) = Pair::start("[api.limits]\nreads_per_second = 1\n").await else { return };
    let token = pair.token().await;
    let refused = until(async || {
        let answer = pair.read(0, &token).await;
        (answer.status() == 429).then_some(answer)
    });
    assert!(refused.await.headers().contains_key("retry-after"));
    assert_eq!(pair.read(1, &token).await.status(), 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_process_asks_keystone_about_a_token_once() {
    let Some(pair) = Pair::start("").await else { return };
    let token = pair.token().await;
    let before = pair.validations();
    for number in [0, 1, 0, 1, 0, 1] {
        assert_eq!(pair.read(number, &token).await.status(), 200);
    }
    assert_eq!(pair.validations() - before, 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_revoked_token_is_refused_by_each_process_once_its_time_is_over() {
    let Some(pair) = Pair::start("cache_for = '1s'\n").await else { return };
    let token = pair.token().await;
    for number in [0, 1] {
        assert_eq!(pair.read(number, &token).await.status(), 200);
    }
    pair.cloud.void_tokens();
    for number in [0, 1] {
        until(async || (pair.read(number, &token).await.status() == 401).then_some(())).await;
    }
}
