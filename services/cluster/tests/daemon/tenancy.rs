//! The project in which clusters are created, and the roles that clusterd needs there.
#![expect(clippy::unwrap_used, reason = "a failed step ends the test")]

use api_client::clusterd::{Cluster, Ledger, Plan};
use api_client::{Client, ClientError, Pages, Refusal, Service as Api};
use cluster::{Config, Service};
use contract::until;
use openstack::identity::roles;
use openstack::{CloudConfig, Session};
use openstack_emulator::{Cloud, Emulator, Kind, Settings};
use reqwest::StatusCode;
use secrecy::ExposeSecret;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

/// The roles that clusterd's user needs in the projects of its tenants.
const ROLES: [&str; 2] = ["member", "load-balancer_member"];

/// A clusterd that creates clusters in the cloud whose Keystone authenticates its callers.
struct TestDaemon {
    cloud: Cloud,
    alice: Client,
    admin: Client,
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
        let url: url::Url = format!("http://{}", service.listeners().api).parse().unwrap();
        let running = tokio::spawn(async move {
            service.run(CancellationToken::new()).await.unwrap();
        });
        let client = async |user: &str| {
            let session = session(&cloud, user);
            Client::by_keystone(session, Api::Clusterd, Some(url.clone())).await.unwrap()
        };
        let given = TestDaemon {
            alice: client("alice").await,
            admin: client("admin").await,
            cloud,
            _emulator: emulator,
            state,
            _running: AbortOnDropHandle::new(running),
        };
        let template = json!({"name": "t", "coe": "kubernetes", "image_id": "fedora-coreos",
            "flavor_id": "m1.small", "external_network_id": "public", "labels": {"user_data_delivery": "inline"}});
        given.alice.post::<Value>("/v1/clustertemplates", &template).await.unwrap();
        given
    }

    /// Has alice create a cluster.
    async fn create(&self, cluster: &Value) -> Result<(), ClientError> {
        self.alice.post::<Value>("/v1/clusters", cluster).await.map(drop)
    }

    /// Creates a flavor that is not public, as an administrator.
    async fn private_flavor(&self, name: &str) {
        let admin = session(&self.cloud, "admin");
        let flavor = json!({"name": name, "vcpus": 1, "ram": 1024, "disk": 10, "os-flavor-access:is_public": false});
        let made = admin.client().post(format!("{}/compute/v2.1/flavors", self.cloud.url()));
        let made = made.header("x-auth-token", admin.bearer().await.unwrap().expose_secret());
        let made = made.json(&json!({"flavor": flavor})).send().await.unwrap();
        assert_eq!(made.status(), 200);
    }

    /// Whether the ledger has both servers of a cluster, and the cloud answered all requests for objects.
    async fn has_both_servers(&self) -> bool {
        let ledger: Value = self.admin.get("/bedplate/v1/clusters/c/ledger").await.unwrap();
        let lines = ledger["ledger"].as_array().unwrap();
        let is_server = |line: &&Value| line["object"].as_str().unwrap().starts_with("server/");
        lines.iter().filter(is_server).count() == 2
            && lines.iter().all(|line| line["state"] == "present")
    }

    /// Deletes alice in Keystone, as an administrator.
    async fn dismiss_alice(&self) {
        let admin = session(&self.cloud, "admin");
        let users = self.cloud.objects(Kind::User);
        let alice = &users.iter().find(|it| it.text("name") == "alice").unwrap().id;
        let gone = admin.client().delete(format!("{}/users/{alice}", self.cloud.auth_url()));
        let gone = gone.header("x-auth-token", admin.bearer().await.unwrap().expose_secret());
        assert_eq!(gone.send().await.unwrap().status(), 204);
    }

    /// The plan that clusterd returns to alice for a cluster.
    async fn plan(&self, cluster: &Value) -> Result<Plan, ClientError> {
        self.alice.post("/bedplate/v1/plan", cluster).await
    }

    /// Gives clusterd's user its roles in alice's project, and waits until clusterd sees them.
    async fn let_in(&self) {
        self.cloud.add_user_with("clusterd", "clusterd-secret", "tenant-a", &ROLES);
        let cluster = json!({"name": "c", "cluster_template_id": "t"});
        until(async || self.plan(&cluster).await.ok()).await;
    }

    /// Waits until the project with this name has a network.
    async fn until_network(&self, project: &str) {
        let projects = self.cloud.objects(Kind::Project);
        let id = &projects.iter().find(|it| it.text("name") == project).unwrap().id;
        until(async || (self.cloud.count_of(Kind::Network, id) > 0).then_some(())).await;
    }
}

/// A session of this user of the cloud's clouds.yaml.
fn session(cloud: &Cloud, user: &str) -> Session {
    let config = CloudConfig::from_clouds_yaml(&cloud.clouds_yaml(), Some(user));
    Session::new(config.unwrap()).unwrap()
}

/// The refusal of a request, which has to have this status.
#[track_caller]
fn refusal<T: std::fmt::Debug>(answer: Result<T, ClientError>, status: StatusCode) -> Refusal {
    let Err(ClientError::Refused(refusal)) = answer else { panic!("{answer:?}") };
    assert_eq!(refusal.status, status, "{refusal}");
    *refusal
}

impl Drop for TestDaemon {
    fn drop(&mut self) {
        left::add_secrets(self.cloud.secrets());
        left::keep(&self.state.path().join("state"), "tenancy");
    }
}

#[tokio::test]
async fn without_a_role_in_the_project_clusterd_refuses_and_changes_nothing_in_the_cloud() {
    let given = TestDaemon::start("").await;
    let cluster = json!({"name": "c", "cluster_template_id": "t"});
    let is_refused = async || refusal(given.create(&cluster).await, StatusCode::FORBIDDEN);
    let plan = refusal(given.plan(&cluster).await, StatusCode::FORBIDDEN);
    for said in [plan.sentence(), is_refused().await.sentence()] {
        let words = "clusterd's user clusterd lacks the role member in project tenant-a";
        assert!(said.starts_with(words), "{said}");
    }
    // Repeated requests do not make Keystone hash clusterd's password each time, as one login for each request would.
    let logins =
        || given.cloud.count(|it| it.method == "POST" && it.path.ends_with("/auth/tokens"));
    let before = logins();
    for _ in 0..20 {
        is_refused().await;
    }
    assert!(logins() - before < 20, "{} logins", logins() - before);
    // A role that may create nothing is not enough, and a role that was granted meanwhile takes effect soon.
    given.cloud.add_user_with("clusterd", "clusterd-secret", "tenant-a", &["reader"]);
    is_refused().await;
    assert_eq!(Pages::<Cluster>::of(&given.alice, "/v1/clusters").all().await.unwrap(), []);
    let is_change = |method: &str| ["POST", "PUT", "DELETE"].contains(&method);
    let changes =
        given.cloud.count(|it| is_change(&it.method) && !it.path.ends_with("/auth/tokens"));
    assert_eq!(changes, 0);

    given.let_in().await;
    given.create(&cluster).await.unwrap();
    given.until_network("tenant-a").await;
}

#[tokio::test]
async fn an_administrator_can_forget_a_cluster_in_a_deleted_project() {
    let given = TestDaemon::start("").await;
    given.let_in().await;
    let cluster = json!({"name": "c", "cluster_template_id": "t"});
    given.create(&cluster).await.unwrap();
    given.until_network("tenant-a").await;
    let path = "/bedplate/v1/clusters/c/ledger";
    // A cluster that is not being deleted, or that clusterd can delete itself, cannot be forgotten.
    refusal(given.alice.delete::<Value>(path).await, StatusCode::FORBIDDEN);
    let kept = until(async || {
        let refused = given.admin.delete::<Value>(path).await.err()?;
        (refused.status() == Some(StatusCode::CONFLICT)).then_some(refused)
    });
    let kept = kept.await.to_string();
    assert!(kept.contains("the cluster is not being deleted"), "{kept}");

    // Keystone answers the same for a deleted project as for a project without a role.
    let admin = session(&given.cloud, "admin");
    let clusterd = session(&given.cloud, "clusterd").identity().await.unwrap();
    let projects = given.cloud.objects(Kind::Project);
    let tenant = &projects.iter().find(|it| it.text("name") == "tenant-a").unwrap().id;
    for role in ROLES {
        let role = roles::find(&admin, role).await.unwrap().unwrap();
        roles::unassign(&admin, (&clusterd.user_id, tenant), &role.id).await.unwrap();
    }
    given.alice.delete::<Value>("/v1/clusters/c").await.unwrap();
    let left = until(async || given.admin.delete::<Ledger>(path).await.ok()).await.ledger;
    assert!(left.iter().any(|it| it.object == "network"), "{left:?}");
    let found = async || given.admin.find::<Value>("/v1/clusters/c").await.unwrap();
    until(async || found().await.is_none().then_some(())).await;
    // clusterd sent no request to the cloud.
    assert_eq!(given.cloud.count_of(Kind::Network, tenant), 1);
}

#[tokio::test]
async fn a_cluster_can_be_deleted_after_its_creator_left() {
    let source = format!("{{ url = 'https://mirror.example/', sha256 = '{:064}' }}", 0);
    let programs = ["kubeadm", "kubelet", "kubectl"].map(|name| format!("{name} = {source}\n"));
    let versions = format!("[kubernetes.versions.'v1.34.1']\n{}", programs.concat());
    let given = TestDaemon::start(&versions).await;
    given.let_in().await;
    let labels = json!({"user_data_delivery": "inline"});
    let cluster = json!({"name": "c", "cluster_template_id": "t", "labels": labels});
    given.create(&cluster).await.unwrap();
    // The answer to a create is awaited for a minute after the deletion, so all objects are there before.
    until(async || given.has_both_servers().await.then_some(())).await;
    given.dismiss_alice().await;
    given.admin.delete::<Value>("/v1/clusters/c").await.unwrap();
    let found = async || given.admin.find::<Value>("/v1/clusters/c").await.unwrap();
    until(async || found().await.is_none().then_some(())).await;
    let projects = given.cloud.objects(Kind::Project);
    let tenant = &projects.iter().find(|it| it.text("name") == "tenant-a").unwrap().id;
    for kind in [Kind::Network, Kind::Server, Kind::LoadBalancer] {
        assert_eq!(given.cloud.count_of(kind, tenant), 0, "{kind:?}");
    }
}

#[tokio::test]
async fn shared_tenancy_needs_no_role_in_other_projects() {
    let given = TestDaemon::start("tenancy = 'shared'\n").await;
    let cluster = json!({"name": "c", "cluster_template_id": "t"});
    given.create(&cluster).await.unwrap();
    given.until_network("service").await;
}

#[tokio::test]
async fn flavors_and_quotas_are_those_of_the_project() {
    let given = TestDaemon::start("").await;
    given.let_in().await;
    given.cloud.set_quota("tenant-a", "instances", 1);
    let cluster = json!({"name": "c", "cluster_template_id": "t"});
    let shortages = given.plan(&cluster).await.unwrap().shortages.unwrap();
    assert_eq!(shortages[0].resource, "instances", "{shortages:?}");
    given.cloud.set_quota("tenant-a", "instances", 10);
    given.cloud.set_quota("service", "instances", 0);
    let plan = given.plan(&cluster).await.unwrap();
    assert_eq!(plan.fits, Some(true), "{plan:?}");
}

#[tokio::test]
async fn a_flavor_that_the_project_cannot_see_is_refused() {
    let given = TestDaemon::start("").await;
    given.let_in().await;
    given.private_flavor("secret").await;
    let cluster =
        |field: &str, flavor: &str| json!({"name": "c", "cluster_template_id": "t", field: flavor});
    let plan = given.plan(&cluster("flavor_id", "m1.large")).await.unwrap();
    assert_eq!(plan.fits, Some(true));
    for field in ["flavor_id", "master_flavor_id"] {
        let why = format!("{field}: the cloud has no \"secret\"");
        let refused = refusal(given.plan(&cluster(field, "secret")).await, StatusCode::BAD_REQUEST);
        assert!(refused.sentence().contains(&why), "{refused}");
        let refused =
            refusal(given.create(&cluster(field, "secret")).await, StatusCode::BAD_REQUEST);
        assert!(refused.sentence().contains(&why), "{refused}");
    }
}
