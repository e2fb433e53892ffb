//! An emulated cloud, and somebody in it who asks for things.

use openstack_emulator::{Cloud, Emulator, Settings};
use reqwest::{Client, Method};
use serde_json::{Value, json};
use tempfile::TempDir;

/// The cloud, and a folder with its clouds.yaml. Its secrets are looked for in all that is stored and said.
pub(crate) struct Site {
    pub(crate) cloud: Cloud,
    pub(crate) client: Client,
    pub(crate) folder: TempDir,
    token: String,
    _emulator: Emulator,
}

impl Site {
    /// Starts a cloud in which this user of a project, whose password is the name and `-secret`, makes a network `lab`.
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

    /// Has the user make something in the cloud.
    pub(crate) async fn make(&self, path: &str, body: &Value) -> Value {
        self.ask(Method::POST, path, body).await
    }

    /// Asks the cloud as the user, of Nova at a microversion with all that is asked here.
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
        left::know(self.cloud.secrets());
    }
}
