//! A user of an emulated cloud who sends requests to its services.

use openstack::{CloudConfig, Session};
use openstack_emulator::Cloud;
use reqwest::{Body, Method};
use secrecy::ExposeSecret;
use serde_json::{Value, json};

/// A user of a cloud. The functions of `drivers/openstack` take the session.
pub(crate) struct CloudUser {
    pub(crate) session: Session,
    url: String,
}

impl CloudUser {
    /// A user of the cloud's clouds.yaml.
    pub(crate) fn new(cloud: &Cloud, name: &str) -> CloudUser {
        let config = CloudConfig::from_clouds_yaml(&cloud.clouds_yaml(), Some(name));
        let session = Session::new(config.expect("the user is configured"));
        CloudUser { session: session.expect("a session"), url: cloud.url() }
    }

    /// Creates an object under the key `kind`, and returns its id.
    pub(crate) async fn create(&self, path: &str, kind: &str, body: Value) -> String {
        let body = json!({kind: body}).to_string();
        let made = self.send(Method::POST, path, "application/json", body).await;
        made[kind]["id"].as_str().expect("an id").to_owned()
    }

    /// Sends a request, and returns the JSON of the answer.
    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        kind: &str,
        body: impl Into<Body>,
    ) -> Value {
        let token = self.session.bearer().await.expect("a token");
        let request = self.session.client().request(method, format!("{}{path}", self.url));
        let request = request.header("x-auth-token", token.expose_secret());
        let answer = request.header("content-type", kind).body(body).send().await;
        let answer = answer.expect("the cloud answers");
        let (status, text) = (answer.status(), answer.text().await.expect("a text"));
        assert!(status.is_success(), "{path}: {status} {text}");
        serde_json::from_str(&text).unwrap_or_default()
    }
}
