//! A lab whose service has an administrator's credentials for an emulated cloud.

use std::ops::Deref;

use lab::{Lab, Settings};
use openstack_emulator::{Cloud, Emulator};
use reqwest::{Client, Method};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A lab with its cloud.
pub(crate) struct LabInCloud {
    pub(crate) lab: Lab,
    pub(crate) cloud: Cloud,
    client: Client,
    token: String,
    _folder: TempDir,
    _emulator: Emulator,
}

impl Deref for LabInCloud {
    type Target = Lab;

    fn deref(&self) -> &Lab {
        &self.lab
    }
}

impl LabInCloud {
    pub(crate) async fn start(
        start: impl AsyncFnOnce(Settings) -> Lab,
        settings: Settings,
    ) -> LabInCloud {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let emulator = Emulator::start(openstack_emulator::Settings::default()).await;
        let emulator = emulator.expect("the emulator starts");
        let cloud = emulator.cloud.clone();
        let folder = tempfile::tempdir().expect("a folder");
        let clouds = folder.path().join("clouds.yaml");
        std::fs::write(&clouds, cloud.clouds_yaml()).expect("a file");
        let lab = start(Settings { cloud: Some(clouds), ..settings }).await;
        let client = Client::builder().no_proxy().build().expect("a client");
        let token = token(&client, &cloud).await;
        LabInCloud { lab, cloud, client, token, _folder: folder, _emulator: emulator }
    }

    /// Sends a request to the cloud as its administrator, and returns the JSON of the answer.
    pub(crate) async fn ask_cloud(&self, method: Method, path: &str, body: Vec<u8>) -> Value {
        let request = self.client.request(method, format!("{}{path}", self.cloud.url()));
        let kind =
            if path.ends_with("/file") { "application/octet-stream" } else { "application/json" };
        let request = request.header("x-auth-token", &self.token).header("content-type", kind);
        let answer = request.body(body).send().await.expect("the cloud answers");
        let (status, text) = (answer.status(), answer.text().await.expect("a text"));
        assert!(status.is_success(), "{path}: {status} {text}");
        serde_json::from_str(&text).unwrap_or_default()
    }
}

impl Drop for LabInCloud {
    fn drop(&mut self) {
        left::add_secrets(self.cloud.secrets());
    }
}

async fn token(client: &Client, cloud: &Cloud) -> String {
    let domain = json!({"id": "default"});
    let body = json!({"auth": {
        "identity": {"methods": ["password"], "password": {"user": {"name": "admin", "domain": domain, "password": "admin-secret"}}},
        "scope": {"project": {"name": "admin", "domain": domain}},
    }});
    let answer = client.post(format!("{}/auth/tokens", cloud.auth_url())).json(&body).send().await;
    let answer = answer.expect("Keystone answers");
    answer.headers()["x-subject-token"].to_str().expect("a token").to_owned()
}
