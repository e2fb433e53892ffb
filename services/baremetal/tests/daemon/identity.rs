//! Authentication and permissions with Keystone.
#![expect(clippy::unwrap_used, reason = "a failed setup fails the test")]

use baremetal::{Config, Service};
use openstack_emulator::{Act, Cloud, Emulator, Rule, Settings};
use reqwest::{Client, Method, Response};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

/// A baremetald that authenticates callers with the Keystone of an emulated cloud.
struct TestDaemon {
    cloud: Cloud,
    client: Client,
    url: String,
    _emulator: Emulator,
    state: tempfile::TempDir,
    _running: AbortOnDropHandle<()>,
}

impl TestDaemon {
    async fn start() -> TestDaemon {
        left::keep_logs();
        let emulator = Emulator::start(Settings::default()).await.unwrap();
        let cloud = emulator.cloud.clone();
        let state = tempfile::tempdir().unwrap();
        let clouds = state.path().join("clouds.yaml");
        std::fs::write(&clouds, cloud.clouds_yaml()).unwrap();
        let text = format!(
            "state_dir = {:?}\n[api]\nlisten = '127.0.0.1:0'\nauth = 'keystone'\n\
             [api.keystone]\nclouds_yaml = {clouds:?}\nname = 'clusterd'\n\
             public_url = 'https://cloud.example:5000/'\n[cloud]\nclouds_yaml = {clouds:?}\nname = 'admin'\n",
            state.path().join("state"),
        );
        let config: Config = toml::from_str(&text).unwrap();
        let _ = rustls::crypto::ring::default_provider().install_default();
        let service = Service::start(config).await.unwrap();
        let url = format!("http://{}", service.listeners().api);
        let running = tokio::spawn(async move {
            service.run(CancellationToken::new()).await.unwrap();
        });
        TestDaemon {
            cloud,
            client: Client::builder().no_proxy().build().unwrap(),
            url,
            _emulator: emulator,
            state,
            _running: AbortOnDropHandle::new(running),
        }
    }

    /// Returns a token of this user in this scope. The password is `NAME-secret`.
    async fn token(&self, user: &str, scope: Value) -> String {
        let user = json!({"name": user, "domain": {"id": "default"}, "password": format!("{user}-secret")});
        let identity = json!({"methods": ["password"], "password": {"user": user}});
        let body = json!({"auth": {"identity": identity, "scope": scope}});
        let url = format!("{}/auth/tokens", self.cloud.auth_url());
        let answer = self.client.post(url).json(&body).send().await.unwrap();
        answer.headers()["x-subject-token"].to_str().unwrap().to_owned()
    }

    async fn send(&self, token: &str, method: Method, path: &str) -> Response {
        let request = self.client.request(method, format!("{}{path}", self.url));
        let request = request.header("x-auth-token", token);
        request.header("x-openstack-ironic-api-version", "1.80").send().await.unwrap()
    }

    /// Sends a body, and returns status and text of the answer.
    async fn reported(
        &self,
        token: &str,
        method: Method,
        path: &str,
        body: &Value,
    ) -> (u16, String) {
        let request = self.client.request(method, format!("{}{path}", self.url));
        let request = request.header("x-auth-token", token).json(body);
        let request = request.header("x-openstack-ironic-api-version", "1.80");
        let answer = request.send().await.unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    }

    /// Creates an object of the cloud, and returns its id.
    async fn create(&self, token: &str, path: &str, body: Value) -> String {
        let request = self.client.post(format!("{}{path}", self.cloud.url()));
        let answer = request.header("x-auth-token", token).json(&body).send().await.unwrap();
        let made: Value = answer.json().await.unwrap();
        let objects = std::iter::once(&made).chain(made.as_object().unwrap().values());
        let mut ids = objects.filter_map(|it| it["id"].as_str());
        ids.next().unwrap_or_else(|| panic!("{made}")).to_owned()
    }

    /// Creates a port on a network of its own in Neutron, and returns its id.
    async fn vif(&self, token: &str) -> String {
        let network = json!({"network": {"name": "own"}});
        let network = self.create(token, "/network/v2.0/networks", network).await;
        let port = json!({"port": {"network_id": network}});
        self.create(token, "/network/v2.0/ports", port).await
    }

    /// Creates a record of a private image in Glance, and returns its id.
    async fn image(&self, token: &str) -> String {
        let image = json!({"name": "own", "visibility": "private", "disk_format": "raw", "container_format": "bare"});
        self.create(token, "/image/v2/images", image).await
    }

    /// Returns the status of a read and of a change.
    async fn may(&self, token: &str) -> [u16; 2] {
        let read = self.send(token, Method::GET, "/v1/nodes").await;
        // The node does not exist, so a caller who may change nodes gets 404 instead of 403.
        let change = self.send(token, Method::DELETE, "/v1/nodes/none").await;
        [read.status().as_u16(), change.status().as_u16()]
    }
}

fn project(name: &str) -> Value {
    json!({"project": {"name": name, "domain": {"id": "default"}}})
}

impl Drop for TestDaemon {
    fn drop(&mut self) {
        left::add_secrets(self.cloud.secrets());
        left::keep(&self.state.path().join("state"), "machines-identity");
    }
}

#[tokio::test]
async fn only_administrators_of_the_cloud_delete_nodes() {
    let given = TestDaemon::start().await;
    let watcher = given.cloud.add_user_with("watcher", "watcher-secret", "tenant-a", &["reader"]);
    given.cloud.grant_system(&watcher.user_id, &["reader"]);
    let whole = || json!({"system": {"all": true}});
    for (user, scope, may) in [
        ("admin", project("admin"), [200, 404]),
        ("admin", whole(), [200, 404]),
        ("watcher", whole(), [200, 403]),
        // A node that the caller of a project does not see is missing, as in Ironic.
        ("watcher", project("tenant-a"), [200, 404]),
        ("alice", project("tenant-a"), [200, 404]),
        ("clusterd", project("service"), [200, 404]),
    ] {
        let token = given.token(user, scope.clone()).await;
        assert_eq!(given.may(&token).await, may, "{user} in {scope}");
    }
}

#[tokio::test]
async fn a_refusal_is_in_the_envelope_of_this_api() {
    let given = TestDaemon::start().await;
    let refused = given.send("nobodys", Method::GET, "/v1/nodes").await;
    assert_eq!(refused.status(), 401);
    let challenge = "Keystone uri=\"https://cloud.example:5000\"";
    assert_eq!(refused.headers()["www-authenticate"], challenge);
    assert!(refused.text().await.unwrap().starts_with(r#"{"error_message":"#));

    let admin = given.token("admin", project("admin")).await;
    given.cloud.misbehave(Rule::new("GET", "/identity/v3/auth/tokens", Act::Close));
    let refused = given.send(&admin, Method::GET, "/v1/nodes").await;
    assert_eq!(
        (refused.status().as_u16(), &refused.headers()["retry-after"]),
        (503, &"5".parse().unwrap())
    );
    assert!(refused.text().await.unwrap().contains("Keystone is unavailable"));
}

#[tokio::test]
async fn a_project_unknown_to_keystone_is_refused_as_owner_or_lessee() {
    let given = TestDaemon::start().await;
    let admin = given.token("admin", project("admin")).await;
    let owner = given.cloud.add_user("ann", "ann-secret", "owners").project_id;
    let ann = given.token("ann", project("owners")).await;
    let node = |owner: &str| json!({"driver": "fake-hardware", "name": "n", "owner": owner});
    for nobody in ["7c9e6679742540de944be07fc1f90ae7", "owners", "../users"] {
        let (status, text) = given.reported(&admin, Method::POST, "/v1/nodes", &node(nobody)).await;
        assert_eq!(status, 400, "{nobody}: {text}");
        assert!(text.contains("owner: Keystone has no project with the id"), "{text}");
    }
    assert_eq!(given.reported(&admin, Method::POST, "/v1/nodes", &node(&owner)).await.0, 201);

    let lend = |to: &str| json!([{"op": "add", "path": "/lessee", "value": to}]);
    let (status, text) = given.reported(&ann, Method::PATCH, "/v1/nodes/n", &lend("nobody")).await;
    assert_eq!(status, 400);
    assert!(text.contains("lessee: Keystone has no project"), "{text}");
    // A caller's own project is confirmed by the token, so Keystone is not asked.
    let act = Act::Answer { status: 500, retry_after: None, message: None };
    given.cloud.misbehave(Rule::new("GET", "/identity/v3/projects/**", act));
    assert_eq!(given.reported(&ann, Method::PATCH, "/v1/nodes/n", &lend(&owner)).await.0, 200);
    let (status, text) = given.reported(&ann, Method::PATCH, "/v1/nodes/n", &lend("another")).await;
    assert_eq!(status, 503);
    assert!(text.contains("lessee: Keystone is unavailable"), "{text}");
}

/// The service asks the cloud as an administrator, and must not do for a project what the cloud refuses to the project.
#[tokio::test]
async fn a_project_attaches_its_own_vifs_and_names_images_that_it_sees() {
    let given = TestDaemon::start().await;
    let admin = given.token("admin", project("admin")).await;
    let owner = given.cloud.add_user("ann", "ann-secret", "owners").project_id;
    let ann = given.token("ann", project("owners")).await;
    let id = "7c9e6679-7425-40de-944b-e07fc1f90ae7";
    let node = json!({"uuid": id, "driver": "fake-hardware", "name": "n", "owner": owner, "network_interface": "flat"});
    assert_eq!(given.reported(&admin, Method::POST, "/v1/nodes", &node).await.0, 201);
    let port = json!({"node_uuid": id, "address": "52:54:00:aa:00:01"});
    assert_eq!(given.reported(&admin, Method::POST, "/v1/ports", &port).await.0, 201);

    let attach = async |token: &str, vif: &str| {
        let body = json!({"id": vif});
        given.reported(token, Method::POST, "/v1/nodes/n/vifs", &body).await
    };
    let (theirs, own) = (given.vif(&admin).await, given.vif(&ann).await);
    let (status, text) = attach(&ann, &theirs).await;
    assert!(status == 400 && text.contains("was not found in Neutron"), "{status} {text}");
    assert_eq!(attach(&ann, &own).await.0, 204);

    let choose = async |token: &str, image: &str| {
        let patch = json!([{"op": "add", "path": "/instance_info/image_source", "value": image}]);
        given.reported(token, Method::PATCH, "/v1/nodes/n", &patch).await
    };
    let (theirs, own) = (given.image(&admin).await, given.image(&ann).await);
    let (status, text) = choose(&ann, &theirs).await;
    assert!(status == 400 && text.contains("was not found in Glance"), "{status} {text}");
    let (status, _) = choose(&ann, &format!("glance://{theirs}")).await;
    assert_eq!(status, 400);
    assert_eq!(choose(&ann, &own).await.0, 200);
    assert_eq!(choose(&admin, &theirs).await.0, 200, "an operator may name any image");
}
