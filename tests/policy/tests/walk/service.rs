//! A service that believes the Keystone of an emulated cloud, and all who call it.

use std::path::Path;

use openstack_emulator::{Act, Cloud, Emulator, Rule, Settings};
use reqwest::{Client, Method, RequestBuilder};
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::people::{PROJECTS, Person, Standing, everybody};

/// A service, its cloud, and all who call it.
pub(crate) struct Service {
    pub(crate) people: Vec<Person>,
    /// The ids of [`PROJECTS`].
    pub(crate) projects: [String; 3],
    client: Client,
    url: String,
    emulator: Emulator,
    _state: tempfile::TempDir,
    _running: AbortOnDropHandle<()>,
}

/// An answer, whole.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) text: String,
}

impl Answer {
    /// The body as JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_default()
    }

    /// Fails unless the status is this.
    #[track_caller]
    pub(crate) fn has(self, status: u16) -> Answer {
        assert_eq!(self.status, status, "{}", self.text);
        self
    }
}

impl Service {
    pub(crate) async fn machines() -> Service {
        Service::start("", async |text| {
            let service = baremetal::Service::start(toml::from_str(&text).unwrap()).await.unwrap();
            let url = format!("http://{}", service.listeners().api);
            let running = tokio::spawn(async move {
                service.run(CancellationToken::new()).await.unwrap();
            });
            (url, AbortOnDropHandle::new(running))
        })
        .await
    }

    /// A clusterd without a cloud: it makes nothing.
    pub(crate) async fn clusters() -> Service {
        // Each step that makes something is tried with a cluster of its own.
        let mut service = Service::of_clusters("[quotas.project]\nclusters = 100000\n").await;
        // Clusters are lent to nobody.
        for person in &mut service.people {
            if let Standing::Lessee(role) = person.standing {
                person.standing = Standing::Stranger(role);
            }
        }
        service
    }

    /// A clusterd that makes clusters in the cloud whose Keystone it believes, as an administrator there.
    pub(crate) async fn clusters_in_a_cloud() -> Service {
        Service::of_clusters("[cloud]\nclouds_yaml = CLOUDS\nname = 'clusterd'\n").await
    }

    async fn of_clusters(rest: &str) -> Service {
        Service::start(rest, async |text| {
            let service = cluster::Service::start(toml::from_str(&text).unwrap()).await.unwrap();
            let url = format!("http://{}", service.listeners().api);
            let running = tokio::spawn(async move {
                service.run(CancellationToken::new()).await.unwrap();
            });
            (url, AbortOnDropHandle::new(running))
        })
        .await
    }

    /// `rest` is what its configuration says besides; CLOUDS is where the clouds.yaml is.
    async fn start(
        rest: &str,
        begin: impl AsyncFnOnce(String) -> (String, AbortOnDropHandle<()>),
    ) -> Service {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let emulator = Emulator::start(Settings::default()).await.unwrap();
        let client = Client::builder().no_proxy().build().unwrap();
        let people = everybody(&emulator.cloud, &client).await;
        let id = |project| emulator.cloud.add_user_with("x", "x", project, &[]).project_id;
        let projects = PROJECTS.map(id);
        let state = tempfile::tempdir().unwrap();
        let text = configuration(state.path(), &emulator.cloud, rest);
        let (url, running) = begin(text).await;
        Service { people, projects, client, url, emulator, _state: state, _running: running }
    }

    /// Asks as whoever has this token.
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

    /// Has somebody make something in the cloud itself; what is made is at this key of the answer.
    pub(crate) async fn make(&self, name: &str, path: &str, key: &str, body: &Value) -> Value {
        let person = self.people.iter().find(|it| it.name.starts_with(name)).unwrap();
        let request = self.client.post(format!("{}{path}", self.emulator.cloud.url())).json(body);
        let answer = sent(request.header("x-auth-token", person.token.as_deref().unwrap())).await;
        let body = answer.has(201).json();
        if key.is_empty() { body } else { body[key].clone() }
    }

    /// Has the cloud refuse what is asked below this path.
    pub(crate) fn stop_answering(&self, path: &str) {
        let act = Act::Answer { status: 500, retry_after: None, message: None };
        self.emulator.cloud.misbehave(Rule::new("GET", &format!("{path}**"), act));
    }

    /// Asks as the person of this standing.
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

async fn sent(request: RequestBuilder) -> Answer {
    let answer = request.send().await.unwrap();
    let status = answer.status().as_u16();
    Answer { status, text: answer.text().await.unwrap() }
}

fn configuration(state: &Path, cloud: &Cloud, rest: &str) -> String {
    let file = state.join("clouds.yaml");
    std::fs::write(&file, cloud.clouds_yaml()).unwrap();
    let (state, clouds) = (state.join("state"), format!("{file:?}"));
    let text = format!(
        "state_dir = {state:?}\n[api]\nlisten = '127.0.0.1:0'\nauth = 'keystone'\n\
         [api.keystone]\nclouds_yaml = CLOUDS\nname = 'clusterd'\n{rest}"
    );
    text.replace("CLOUDS", &clouds)
}
