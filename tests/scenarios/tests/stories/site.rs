//! An emulated cloud, and a user who makes requests in it.

use openstack_emulator::{Cloud, Emulator, Settings};
use reqwest::{Client, Method};
use serde_json::{Value, json};
use tempfile::TempDir;

/// The cloud, and a folder with its clouds.yaml. The secrets of the cloud are searched for in everything that the tests keep.
pub(crate) struct Site {
    pub(crate) cloud: Cloud,
    pub(crate) client: Client,
    pub(crate) folder: TempDir,
    token: String,
    _emulator: Emulator,
}

impl Site {
    /// Starts a cloud in which this user, whose password is the name with `-secret` appended, creates a network `lab` in this project.
    pub(crate) async fn start(user: &str, project: &str) -> Site {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let emulator = Emulator::start(Settings::default()).await.expect("the emulator starts");
        let cloud = emulator.cloud.clone();
        let client = Client::builder().no_proxy().build().expect("a client");
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("clouds.yaml"), cloud.clouds_yaml()).expect("a file");
        let domain = json!({"id": "default"});
        let password = format!("{user}-secret");
        let body = json!({"auth": {
            "identity": {"methods": ["password"], "password": {"user": {"name": user, "domain": domain, "password": password}}},
            "scope": {"project": {"name": project, "domain": domain}},
        }});
        let answer = client.post(format!("{}/auth/tokens", cloud.auth_url())).json(&body).send();
        let answer = answer.await.expect("Keystone answers");
        let token = answer.headers()["x-subject-token"].to_str().expect("a token").to_owned();
        let site = Site { cloud, client, folder, token, _emulator: emulator };
        let network = json!({"network": {"name": "lab"}});
        let network = site.make("/network/v2.0/networks", &network).await;
        let id = &network["network"]["id"];
        let subnet = json!({"subnet": {"network_id": id, "cidr": "10.7.0.0/24", "ip_version": 4}});
        site.make("/network/v2.0/subnets", &subnet).await;
        site
    }

    /// Creates an object in the cloud as the user.
    pub(crate) async fn make(&self, path: &str, body: &Value) -> Value {
        self.ask(Method::POST, path, body).await
    }

    /// Sends a request to the cloud as the user. The microversion of Nova includes all features that the tests use.
    pub(crate) async fn ask(&self, method: Method, path: &str, body: &Value) -> Value {
        let request = self.client.request(method, format!("{}{path}", self.cloud.url()));
        let request = request.header("openstack-api-version", "compute 2.90");
        let answer = request.header("x-auth-token", &self.token).json(body).send().await;
        let answer = answer.expect("the cloud answers");
        assert!(answer.status().is_success(), "{path}: {}", answer.status());
        answer.json().await.expect("JSON")
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        left::add_secrets(self.cloud.secrets());
    }
}
