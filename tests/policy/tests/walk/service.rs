//! A service that authenticates with the Keystone of a cloud, and its callers.

use std::path::{Path, PathBuf};

use openstack::CloudConfig;
use openstack_emulator::{Act, Emulator, Kind, Rule, Settings};
use reqwest::{Client, Method, RequestBuilder};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::keystone::{Keystone, RoleScope};
use crate::people::{Relation, TestCaller, everybody};

/// The cloud whose Keystone the service uses.
pub(crate) enum Cloud {
    Emulated(Emulator),
    /// The cloud of a clouds.yaml that contains an `admin`, for example a real cloud.
    Given(PathBuf),
}

/// A service with its cloud and its callers.
pub(crate) struct Service {
    pub(crate) people: Vec<TestCaller>,
    /// The ids of [`PROJECTS`].
    pub(crate) projects: [String; 3],
    client: Client,
    url: String,
    cloud: Cloud,
    keystone: Keystone,
    state: tempfile::TempDir,
    _running: AbortOnDropHandle<()>,
}

pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) text: String,
}

impl Answer {
    /// The body as JSON; null if it is not JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_default()
    }

    #[track_caller]
    pub(crate) fn has(self, status: u16) -> Answer {
        assert_eq!(self.status, status, "{}", self.text);
        self
    }
}

impl Cloud {
    pub(crate) async fn emulated() -> Cloud {
        Cloud::Emulated(Emulator::start(Settings::default()).await.unwrap())
    }

    /// The cloud that the environment names. If it names none, reports the test as skipped and returns `None`.
    pub(crate) fn given() -> Option<Cloud> {
        let path = std::env::var_os("BEDPLATE_TEST_OPENSTACK");
        if path.is_none() {
            peers::skip(
                "policy by a given Keystone",
                "BEDPLATE_TEST_OPENSTACK names no clouds.yaml",
            );
        }
        path.map(|path| Cloud::Given(path.into()))
    }

    fn emulator(&self) -> &Emulator {
        match self {
            Cloud::Emulated(emulator) => emulator,
            Cloud::Given(_) => panic!("this story is for an emulated cloud"),
        }
    }

    /// The path of the cloud's clouds.yaml.
    fn file(&self, folder: &Path) -> PathBuf {
        match self {
            Cloud::Given(path) => path.clone(),
            Cloud::Emulated(emulator) => {
                written(folder, "clouds.yaml", &emulator.cloud.clouds_yaml())
            }
        }
    }
}

impl Service {
    /// Starts baremetald, with agents on the listener of its API.
    pub(crate) async fn machines(cloud: Cloud) -> Service {
        Service::machines_with(cloud, "[agents]\non_api_listener = true\n").await
    }

    /// Starts baremetald with these additional tables in its configuration.
    pub(crate) async fn machines_with(cloud: Cloud, rest: &str) -> Service {
        Service::start(cloud, rest, async |text| {
            let service = baremetal::Service::start(toml::from_str(&text).unwrap()).await.unwrap();
            let url = format!("http://{}", service.listeners().api);
            let running = tokio::spawn(async move {
                service.run(CancellationToken::new()).await.unwrap();
            });
            (url, AbortOnDropHandle::new(running))
        })
        .await
    }

    /// Starts a clusterd that creates no clusters.
    pub(crate) async fn clusters(cloud: Cloud) -> Service {
        // The quota is large, because each step that makes something uses a cluster of its own.
        let mut service =
            Service::of_clusters(cloud, "[quotas.project]\nclusters = 100000\n").await;
        // Clusters have no lessees.
        for person in &mut service.people {
            if let Relation::Lessee(role) = person.standing {
                person.standing = Relation::Stranger(role);
            }
        }
        service
    }

    /// Starts two clusterds that create clusters in the emulated cloud: one as an administrator in its own project, and one in the projects
    /// of its tenants, where it has the role member.
    pub(crate) async fn clusters_in_clouds() -> [Service; 2] {
        let rest = "[cloud]\nclouds_yaml = CLOUDS\nname = 'clusterd'\n";
        let shared = format!("{rest}tenancy = 'shared'\n");
        let shared = Service::of_clusters(Cloud::emulated().await, &shared).await;
        let own = Service::of_clusters(Cloud::emulated().await, rest).await;
        let users = own.cloud.emulator().cloud.objects(Kind::User);
        let user = users.iter().find(|it| it.text("name") == "clusterd").unwrap();
        for project in &own.projects {
            own.keystone.grant(RoleScope::Project(project), &user.id, "member").await;
        }
        [shared, own]
    }

    async fn of_clusters(cloud: Cloud, rest: &str) -> Service {
        Service::start(cloud, rest, async |text| {
            let service = cluster::Service::start(toml::from_str(&text).unwrap()).await.unwrap();
            let url = format!("http://{}", service.listeners().api);
            let running = tokio::spawn(async move {
                service.run(CancellationToken::new()).await.unwrap();
            });
            (url, AbortOnDropHandle::new(running))
        })
        .await
    }

    /// Starts a service with the additional configuration `rest`, in which CLOUDS stands for the path of the clouds.yaml.
    async fn start(
        cloud: Cloud,
        rest: &str,
        begin: impl AsyncFnOnce(String) -> (String, AbortOnDropHandle<()>),
    ) -> Service {
        let _ = rustls::crypto::ring::default_provider().install_default();
        left::keep_logs();
        let client = Client::builder().no_proxy().build().unwrap();
        let state = tempfile::tempdir().unwrap();
        let clouds = cloud.file(state.path());
        let admin = CloudConfig::read(&clouds, Some("admin")).unwrap();
        let mut keystone = Keystone::of(admin, &client).await;
        let services = keystone.project("services").await;
        let (projects, people) = everybody(&mut keystone, &services).await;
        // The role `service` is enough to validate tokens.
        let validator = keystone.user("validator").await;
        keystone.grant(RoleScope::Project(&services), &validator, "service").await;
        let auth = json!({
            "auth_url": keystone.url(), "user_id": validator, "password": keystone.password(), "project_id": services,
        });
        let account = json!({"clouds": {"validator": {"auth": auth}}}).to_string();
        let account = written(state.path(), "keystone.yaml", &account);
        let text = format!(
            "state_dir = {:?}\n[api]\nlisten = '127.0.0.1:0'\nauth = 'keystone'\n\
             [api.keystone]\nclouds_yaml = {account:?}\n{}",
            state.path().join("state"),
            rest.replace("CLOUDS", &format!("{clouds:?}"))
        );
        let (url, running) = begin(text).await;
        Service { people, projects, client, url, cloud, keystone, state, _running: running }
    }

    pub(crate) async fn store(&self) -> cluster_store::Store {
        let file = self.state.path().join("state/clusterd.db");
        cluster_store::Store::open(&format!("sqlite://{}", file.display())).await.unwrap()
    }

    /// Keystone's id of a caller.
    pub(crate) fn user_id(&self, name: &str) -> &str {
        &self.people.iter().find(|it| it.name == name).unwrap().id
    }

    /// Deletes from the cloud the users and projects created for this test.
    pub(crate) async fn end(mut self) {
        self.keystone.clear().await;
    }

    /// Sends a request with this token.
    pub(crate) async fn ask(
        &self,
        token: Option<&str>,
        method: &str,
        path: &str,
        body: &Value,
    ) -> Answer {
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        let request = self.client.request(method, format!("{}{path}", self.url));
        let request = token.into_iter().fold(request, |it, token| it.header("x-auth-token", token));
        let request = request.header("x-openstack-ironic-api-version", "1.115");
        let request = request.header("openstack-api-version", "container-infra latest");
        let request = if body.is_null() { request } else { request.json(body) };
        sent(request).await
    }

    /// Sends a request to the cloud itself, as this caller.
    pub(crate) async fn ask_cloud(
        &self,
        name: &str,
        method: &str,
        path: &str,
        body: &Value,
    ) -> Answer {
        let person = self.people.iter().find(|it| it.name.starts_with(name)).unwrap();
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        let url = format!("{}{path}", self.cloud.emulator().cloud.url());
        let request = self.client.request(method, url);
        let request = request.header("x-auth-token", person.token.as_deref().unwrap());
        sent(if body.is_null() { request } else { request.json(body) }).await
    }

    /// Creates an object in the cloud itself, as this caller; returns the part of the answer under `key`.
    pub(crate) async fn make(&self, name: &str, path: &str, key: &str, body: &Value) -> Value {
        let body = self.ask_cloud(name, "POST", path, body).await.has(201).json();
        if key.is_empty() { body } else { body[key].clone() }
    }

    /// Makes the cloud refuse all GET requests below this path.
    pub(crate) fn stop_answering(&self, path: &str) {
        let act = Act::Answer { status: 500, retry_after: None, message: None };
        self.cloud.emulator().cloud.misbehave(Rule::new("GET", &format!("{path}**"), act));
    }

    /// Sends a request as the first caller whose name starts with `name`.
    pub(crate) async fn ask_as(
        &self,
        name: &str,
        method: &str,
        path: &str,
        body: &Value,
    ) -> Answer {
        let person = self.people.iter().find(|it| it.name.starts_with(name)).unwrap();
        self.ask(person.token.as_deref(), method, path, body).await
    }
}

impl Drop for Service {
    /// Keeps the stored state for the search for leaked secrets.
    fn drop(&mut self) {
        if let Cloud::Emulated(emulator) = &self.cloud {
            left::add_secrets(emulator.cloud.secrets());
        }
        left::keep(&self.state.path().join("state"), "policy");
    }
}

async fn sent(request: RequestBuilder) -> Answer {
    let answer = request.send().await.unwrap();
    let status = answer.status().as_u16();
    Answer { status, text: answer.text().await.unwrap() }
}

fn written(folder: &Path, name: &str, text: &str) -> PathBuf {
    let file = folder.join(name);
    std::fs::write(&file, text).unwrap();
    file
}
