//! The project in which clusters are created, and the roles that clusterd needs there.
#![expect(clippy::unwrap_used, reason = "a failed step ends the test")]

use std::time::Duration;

use cluster::{Config, Service};
use openstack::identity::roles;
use openstack::{CloudConfig, Session};
use openstack_emulator::{Cloud, Emulator, Kind, Settings};
use reqwest::{Client, Method};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

/// The roles that clusterd's user needs in the projects of its tenants.
const ROLES: [&str; 2] = ["member", "load-balancer_member"];

/// A clusterd that creates clusters in the cloud whose Keystone authenticates its callers.
struct TestDaemon {
    cloud: Cloud,
    client: Client,
    url: String,
    token: String,
    _emulator: Emulator,
    state: tempfile::TempDir,
    _running: AbortOnDropHandle<()>,
}

impl TestDaemon {
    async fn start(tenancy: &str) -> TestDaemon {
        left::keep_logs();
        let emulator = Emulator::start(Settings::default()).await.unwrap();
        let cloud = emulator.cloud.clone();
        let state = tempfile::tempdir().unwrap();
        let clouds = state.path().join("clouds.yaml");
        std::fs::write(&clouds, cloud.clouds_yaml()).unwrap();
        let text = format!(
            "state_dir = {:?}\n[api]\nlisten = '127.0.0.1:0'\nauth = 'keystone'\n\
             [api.keystone]\nclouds_yaml = {clouds:?}\nname = 'clusterd'\n\
             [cloud]\nclouds_yaml = {clouds:?}\nname = 'clusterd'\n{tenancy}",
            state.path().join("state"),
        );
        let config: Config = toml::from_str(&text).unwrap();
        let _ = rustls::crypto::ring::default_provider().install_default();
        let service = Service::start(config).await.unwrap();
        let url = format!("http://{}", service.listeners().api);
        let running = tokio::spawn(async move {
            service.run(CancellationToken::new()).await.unwrap();
        });
        let client = Client::builder().no_proxy().build().unwrap();
        let given = TestDaemon {
            token: token(&cloud, &client, ("alice", "tenant-a")).await,
            cloud,
            client,
            url,
            _emulator: emulator,
            state,
            _running: AbortOnDropHandle::new(running),
        };
        let template = json!({"name": "t", "coe": "kubernetes", "image_id": "fedora-coreos",
            "flavor_id": "m1.small", "external_network_id": "public", "labels": {"user_data_delivery": "inline"}});
        given.ask(Method::POST, "/v1/clustertemplates", template, 201).await;
        given
    }

    async fn ask(&self, method: Method, path: &str, body: Value, status: u16) -> Value {
        let (had, said) = self.ask_as(&self.token, method, path, body).await;
        assert_eq!(had, status, "{path}: {said}");
        said
    }

    async fn ask_as(&self, token: &str, method: Method, path: &str, body: Value) -> (u16, Value) {
        let request = self.client.request(method, format!("{}{path}", self.url));
        let request = request.header("openstack-api-version", "container-infra latest");
        let answer = request.header("x-auth-token", token).json(&body).send().await.unwrap();
        let (status, text) = (answer.status().as_u16(), answer.text().await.unwrap());
        (status, serde_json::from_str(&text).unwrap_or(Value::Null))
    }

    /// Repeats a request as an administrator of the cloud until the response has this status.
    async fn until_answered(&self, method: Method, path: &str, status: u16) -> Value {
        let admin = token(&self.cloud, &self.client, ("admin", "admin")).await;
        let asking = async {
            loop {
                let (had, said) = self.ask_as(&admin, method.clone(), path, Value::Null).await;
                if had == status {
                    return said;
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), asking).await.unwrap()
    }

    /// Creates a flavor that is not public, as an administrator.
    async fn private_flavor(&self, name: &str) {
        let admin = token(&self.cloud, &self.client, ("admin", "admin")).await;
        let flavor = json!({"name": name, "vcpus": 1, "ram": 1024, "disk": 10, "os-flavor-access:is_public": false});
        let url = format!("{}/compute/v2.1/flavors", self.cloud.url());
        let made = self.client.post(url).header("x-auth-token", admin);
        let made = made.json(&json!({"flavor": flavor})).send().await.unwrap();
        assert_eq!(made.status(), 200);
    }

    /// The plan that clusterd returns to alice for a cluster of this flavor.
    async fn plan(&self, flavor: &str) -> Value {
        let cluster = json!({"name": "c", "cluster_template_id": "t", "flavor_id": flavor});
        self.ask(Method::POST, "/bedplate/v1/plan", cluster, 200).await
    }

    /// Gives clusterd's user its roles in alice's project, and waits until clusterd sees them.
    async fn let_in(&self) {
        self.cloud.add_user_with("clusterd", "clusterd-secret", "tenant-a", &ROLES);
        self.until_admitted(&json!({"name": "c", "cluster_template_id": "t"})).await;
    }

    /// Waits until clusterd has access to alice's project.
    async fn until_admitted(&self, cluster: &Value) {
        let looking = async {
            loop {
                let asked = self.client.post(format!("{}/bedplate/v1/plan", self.url));
                let asked = asked.header("x-auth-token", &self.token).json(cluster);
                if asked.send().await.unwrap().status() == 200 {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), looking).await.unwrap();
    }

    /// Waits until the project with this name has a network.
    async fn until_network(&self, project: &str) {
        let projects = self.cloud.objects(Kind::Project);
        let id = &projects.iter().find(|it| it.text("name") == project).unwrap().id;
        let looking = async {
            while self.cloud.count_of(Kind::Network, id) == 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), looking).await.unwrap();
    }
}

impl Drop for TestDaemon {
    fn drop(&mut self) {
        left::add_secrets(self.cloud.secrets());
        left::keep(&self.state.path().join("state"), "tenancy");
    }
}

/// A token of the user for this project.
async fn token(cloud: &Cloud, client: &Client, (user, project): (&str, &str)) -> String {
    let domain = json!({"id": "default"});
    let user = json!({"name": user, "domain": domain, "password": format!("{user}-secret")});
    let identity = json!({"methods": ["password"], "password": {"user": user}});
    let scope = json!({"project": {"name": project, "domain": domain}});
    let body = json!({"auth": {"identity": identity, "scope": scope}});
    let url = format!("{}/auth/tokens", cloud.auth_url());
    let answer = client.post(url).json(&body).send().await.unwrap();
    answer.headers()["x-subject-token"].to_str().unwrap().to_owned()
}

#[tokio::test]
async fn without_a_role_in_the_project_clusterd_refuses_and_changes_nothing_in_the_cloud() {
    let given = TestDaemon::start("").await;
    let cluster = json!({"name": "c", "cluster_template_id": "t"});
    for path in ["/bedplate/v1/plan", "/v1/clusters"] {
        let refused = given.ask(Method::POST, path, cluster.clone(), 403).await;
        let said = refused["errors"][0]["detail"].as_str().unwrap();
        let words = "clusterd's user clusterd lacks the role member in project tenant-a";
        assert!(said.starts_with(words), "{said}");
    }
    // Repeated requests do not make Keystone hash clusterd's password each time, as one login for each request would.
    let logins =
        || given.cloud.count(|it| it.method == "POST" && it.path.ends_with("/auth/tokens"));
    let before = logins();
    for _ in 0..20 {
        given.ask(Method::POST, "/v1/clusters", cluster.clone(), 403).await;
    }
    assert!(logins() - before < 20, "{} logins", logins() - before);
    // A role that may create nothing is not enough, and a role that was granted meanwhile takes effect soon.
    given.cloud.add_user_with("clusterd", "clusterd-secret", "tenant-a", &["reader"]);
    given.ask(Method::POST, "/v1/clusters", cluster.clone(), 403).await;
    let listed = given.ask(Method::GET, "/v1/clusters", Value::Null, 200).await;
    assert_eq!(listed["clusters"], json!([]));
    let is_change = |method: &str| ["POST", "PUT", "DELETE"].contains(&method);
    let changes =
        given.cloud.count(|it| is_change(&it.method) && !it.path.ends_with("/auth/tokens"));
    assert_eq!(changes, 0);

    given.let_in().await;
    given.ask(Method::POST, "/v1/clusters", cluster, 202).await;
    given.until_network("tenant-a").await;
}

#[tokio::test]
async fn an_administrator_can_forget_a_cluster_in_a_deleted_project() {
    let given = TestDaemon::start("").await;
    given.let_in().await;
    let cluster = json!({"name": "c", "cluster_template_id": "t"});
    given.ask(Method::POST, "/v1/clusters", cluster, 202).await;
    given.until_network("tenant-a").await;
    let path = "/bedplate/v1/clusters/c/ledger";
    // A cluster that is not being deleted, or that clusterd can delete itself, cannot be forgotten.
    given.ask(Method::DELETE, path, Value::Null, 403).await;
    let kept = given.until_answered(Method::DELETE, path, 409).await;
    assert!(kept.to_string().contains("the cluster is not being deleted"), "{kept}");

    // Keystone answers the same for a deleted project as for a project without a role.
    let session = |user: &str| {
        let config = CloudConfig::from_clouds_yaml(&given.cloud.clouds_yaml(), Some(user));
        Session::new(config.unwrap()).unwrap()
    };
    let (admin, clusterd) = (session("admin"), session("clusterd").identity().await.unwrap());
    let projects = given.cloud.objects(Kind::Project);
    let tenant = &projects.iter().find(|it| it.text("name") == "tenant-a").unwrap().id;
    for role in ROLES {
        let role = roles::find(&admin, role).await.unwrap().unwrap();
        roles::unassign(&admin, (&clusterd.user_id, tenant), &role.id).await.unwrap();
    }
    given.ask(Method::DELETE, "/v1/clusters/c", Value::Null, 204).await;
    let left = given.until_answered(Method::DELETE, path, 200).await;
    let left: Vec<&str> =
        left["ledger"].as_array().unwrap().iter().filter_map(|it| it["object"].as_str()).collect();
    assert!(left.contains(&"network"), "{left:?}");
    given.until_answered(Method::GET, "/v1/clusters/c", 404).await;
    // clusterd sent no request to the cloud.
    assert_eq!(given.cloud.count_of(Kind::Network, tenant), 1);
}

#[tokio::test]
async fn shared_tenancy_needs_no_role_in_other_projects() {
    let given = TestDaemon::start("tenancy = 'shared'\n").await;
    let cluster = json!({"name": "c", "cluster_template_id": "t"});
    given.ask(Method::POST, "/v1/clusters", cluster, 202).await;
    given.until_network("service").await;
}

#[tokio::test]
async fn flavors_and_quotas_are_those_of_the_project() {
    let given = TestDaemon::start("").await;
    given.let_in().await;
    given.cloud.set_quota("tenant-a", "instances", 1);
    let cluster = json!({"name": "c", "cluster_template_id": "t"});
    let plan = given.ask(Method::POST, "/bedplate/v1/plan", cluster.clone(), 200).await;
    assert_eq!(plan["shortages"][0]["resource"], "instances", "{plan:#}");
    given.cloud.set_quota("tenant-a", "instances", 10);
    given.cloud.set_quota("service", "instances", 0);
    let plan = given.ask(Method::POST, "/bedplate/v1/plan", cluster, 200).await;
    assert_eq!(plan["fits"], true, "{plan:#}");
}

#[tokio::test]
async fn a_flavor_that_the_project_cannot_see_is_refused() {
    let given = TestDaemon::start("").await;
    given.let_in().await;
    given.private_flavor("secret").await;
    assert_eq!(given.plan("m1.small").await["fits"], true);
    let plan = given.plan("secret").await;
    let why = plan["fits_reason"].as_str().unwrap();
    assert!(why.contains("flavor_id: the cloud has no \"secret\""), "{plan:#}");
}
