//! A user with a token, who sends plain HTTP requests.

use openstack_emulator::{Cloud, CreateOutcome, Emulator, End, Kind, Object, Settings};
use reqwest::{Client, Method, Response};
use serde_json::{Value, json};

pub(crate) struct TestUser {
    pub(crate) cloud: Cloud,
    pub(crate) client: Client,
    pub(crate) token: String,
    pub(crate) project: String,
}

/// A client without kept connections, so that a closed connection is never mistaken for a lost answer.
pub(crate) fn client() -> Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::builder().no_proxy().tls_certs_only([]).pool_max_idle_per_host(0).build().unwrap()
}

/// A cloud, and alice in it.
pub(crate) async fn alice(settings: Settings) -> (Emulator, TestUser) {
    let emulator = Emulator::start(settings).await.unwrap();
    let alice = TestUser::log_in(&emulator.cloud, "alice", "tenant-a").await;
    (emulator, alice)
}

impl TestUser {
    pub(crate) async fn log_in(cloud: &Cloud, user: &str, project: &str) -> TestUser {
        let client = client();
        let domain = json!({"id": "default"});
        let body = json!({"auth": {
            "identity": {"methods": ["password"], "password": {"user": {"name": user, "domain": domain, "password": format!("{user}-secret")}}},
            "scope": {"project": {"name": project, "domain": domain}},
        }});
        let url = format!("{}/auth/tokens", cloud.auth_url());
        let answer = client.post(url).json(&body).send().await.unwrap();
        assert_eq!(answer.status(), 201);
        let token = answer.headers()["x-subject-token"].to_str().unwrap().to_owned();
        let body: Value = answer.json().await.unwrap();
        let project = body["token"]["project"]["id"].as_str().unwrap().to_owned();
        TestUser { cloud: cloud.clone(), client, token, project }
    }

    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        body: &Value,
    ) -> reqwest::Result<Response> {
        let mut request = self.client.request(method, format!("{}{path}", self.cloud.url()));
        request = request
            .header("x-auth-token", &self.token)
            .header("openstack-api-version", "compute 2.87, placement 1.36");
        if !body.is_null() {
            request = request.json(body);
        }
        request.send().await
    }

    /// Sends a request and returns the status and body of the answer.
    pub(crate) async fn ask(&self, method: Method, path: &str, body: Value) -> (u16, Value) {
        let answer = self.send(method, path, &body).await.unwrap();
        let status = answer.status().as_u16();
        let text = answer.text().await.unwrap();
        (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
    }

    pub(crate) async fn get(&self, path: &str) -> Value {
        let (status, body) = self.ask(Method::GET, path, Value::Null).await;
        assert_eq!(status, 200, "{path}: {body}");
        body
    }

    /// Creates an object and returns the answer.
    pub(crate) async fn make(&self, path: &str, body: Value) -> Value {
        let (status, answer) = self.ask(Method::POST, path, body).await;
        assert!((200..300).contains(&status), "{path}: {status} {answer}");
        answer
    }

    pub(crate) async fn delete(&self, path: &str) -> u16 {
        self.ask(Method::DELETE, path, Value::Null).await.0
    }

    /// Creates a network with a subnet and returns both ids.
    pub(crate) async fn network(&self, cidr: &str) -> (String, String) {
        let network =
            self.make("/network/v2.0/networks", json!({"network": {"name": "net"}})).await;
        let network = text(&network["network"]["id"]);
        let body = json!({"subnet": {"network_id": network, "cidr": cidr, "ip_version": 4}});
        let subnet = self.make("/network/v2.0/subnets", body).await;
        (network, text(&subnet["subnet"]["id"]))
    }

    /// Creates a server on a network and returns its id.
    pub(crate) async fn server(&self, name: &str, network: &str, more: Value) -> String {
        let server = json!({"name": name, "flavorRef": "1", "imageRef": self.image(), "networks": [{"uuid": network}]});
        let server = with(server, &more);
        let made = self.make("/compute/v2.1/servers", json!({"server": server})).await;
        text(&made["server"]["id"])
    }

    pub(crate) fn image(&self) -> String {
        self.cloud.objects(Kind::Image)[0].id.clone()
    }

    /// Waits until a server has this status.
    pub(crate) async fn server_is(&self, id: &str, status: &str) -> Value {
        let is = |server: &Object| server.id == id && server.text("status") == status;
        let look = |cloud: &Cloud| cloud.objects(Kind::Server).iter().any(is).then_some(());
        self.cloud.wait_until(look).await;
        self.get(&format!("/compute/v2.1/servers/{id}")).await["server"].clone()
    }
}

pub(crate) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text")).to_owned()
}

/// An object with further fields.
pub(crate) fn with(mut object: Value, more: &Value) -> Value {
    for (key, value) in more.as_object().into_iter().flatten() {
        object[key] = value.clone();
    }
    object
}

/// A fate of all new objects with this kind and name.
pub(crate) fn fate(kind: Kind, name: &str, end: End) -> CreateOutcome {
    CreateOutcome { kind, name: name.into(), after: 0, times: None, end }
}

/// Compares some fields of an object.
#[track_caller]
pub(crate) fn shows(object: &Value, fields: Value) {
    for (key, value) in fields.as_object().unwrap() {
        assert_eq!(&object[key], value, "{key} of {object}");
    }
}
