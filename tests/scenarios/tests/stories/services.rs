//! baremetald and clusterd as processes beside an emulated cloud, in which clusterd's user is an administrator, and `bedplate`.

use std::net::TcpListener;
use std::path::PathBuf;
use std::process::Stdio;

use api_client::Service;
use lab::{Answer, Api};
use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::{Child, Command};
use url::Url;

use crate::own_vm::{ProgramOutput, until};
use crate::site::Site;

/// Nothing downloads or runs these programs: emulated servers become a cluster without them.
const PROGRAM: &str = "{ url = 'https://mirror.example/program', sha256 = '0000000000000000000000000000000000000000000000000000000000000000' }";

/// A cloud, and a clusterd whose user administers it.
pub(crate) struct Clusters {
    pub(crate) site: Site,
    pub(crate) url: String,
    _daemon: Child,
}

/// A cloud, and both services.
pub(crate) struct Services {
    pub(crate) clusters: Clusters,
    machines: String,
    _daemon: Child,
}

impl Clusters {
    pub(crate) async fn start() -> Clusters {
        Clusters::start_with("").await
    }

    /// Starts clusterd with `more` in its configuration.
    pub(crate) async fn start_with(more: &str) -> Clusters {
        let site = Site::start("clusterd", "service").await;
        let folder = &site.folder;
        // The address is fixed in advance, because servers get it in their configs before clusterd listens.
        let free = TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr());
        let free = free.expect("a port");
        let clusterd = format!(
            "state_dir = 'STATE'\n[api]\nlisten = '127.0.0.1:0'\n\
             [cloud]\nclouds_yaml = '{}/clouds.yaml'\nname = 'clusterd'\n[conductor]\nlook_every = '1s'\n\
             [machines]\nnetwork = 'lab'\nimages = [{{ name = 'cirros' }}]\n\
             [nodes]\nlisten = '{free}'\nurl = 'https://{free}/'\nsource_address = 'any'\n\
             [kubernetes.versions.'v1.34.1']\nkubeadm = {PROGRAM}\nkubelet = {PROGRAM}\nkubectl = {PROGRAM}\n",
            folder.path().display()
        );
        let (daemon, url) = daemon(folder, "clusterd", &(clusterd + more)).await;
        Clusters { site, url, _daemon: daemon }
    }

    /// Runs `bedplate …` with further arguments before those.
    async fn bedplate(&self, before: &[&str], arguments: &[&str]) -> ProgramOutput {
        let mut command = Command::new(compat::program("bedplate"));
        command.env_clear().args(["--clusters-url", &self.url]).args(before).args(arguments);
        let output = command.output().await.expect("bedplate starts");
        let text = |bytes| String::from_utf8(bytes).expect("text");
        ProgramOutput {
            done: output.status.success(),
            out: text(output.stdout),
            error: text(output.stderr),
        }
    }

    /// Requests a person's VM of this name, and waits until it is active.
    pub(crate) async fn vm(&self, name: &str) {
        let request = ["vm", "request", name, "--image", "cirros", "--flavor", "m1.nano", "--wait"];
        self.bedplate(&[], &request).await.done();
    }

    /// Sends a request to clusterd; returns the status and the text of the answer.
    pub(crate) async fn ask(&self, method: Method, path: &str, body: &Value) -> (u16, String) {
        reported(&api(Service::Clusterd, &self.url), method, path, body).await
    }
}

impl Services {
    pub(crate) async fn start() -> Services {
        Services::start_with(|_| String::new()).await
    }

    /// Starts the services with `more` in the configuration of each, by its name.
    pub(crate) async fn start_with(more: impl Fn(&str) -> String) -> Services {
        let clusters = Clusters::start_with(&more("clusterd")).await;
        let baremetald = format!(
            "state_dir = 'STATE'\n[api]\nlisten = '127.0.0.1:0'\n[clusters]\nurl = '{}'\n\
             [leases.nodes]\nshortest = '1s'\n[leases.schedule]\nundo_window = '1h'\n",
            clusters.url
        );
        let baremetald = baremetald + &more("baremetald");
        let (daemon, machines) = daemon(&clusters.site.folder, "baremetald", &baremetald).await;
        Services { clusters, machines, _daemon: daemon }
    }

    /// Runs `bedplate …`.
    pub(crate) async fn bedplate(&self, arguments: &[&str]) -> ProgramOutput {
        self.clusters.bedplate(&["--url", &self.machines], arguments).await
    }

    /// Sends a request to baremetald; returns the status and the text of the answer.
    pub(crate) async fn machine(&self, method: Method, path: &str, body: &Value) -> (u16, String) {
        reported(&api(Service::Baremetald, &self.machines), method, path, body).await
    }

    /// Sends a request to clusterd.
    pub(crate) async fn cluster(&self, method: Method, path: &str, body: &Value) -> (u16, String) {
        self.clusters.ask(method, path, body).await
    }

    /// Sends a request to clusterd; returns the answer.
    pub(crate) async fn ask_clusters(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Answer {
        api(Service::Clusterd, &self.clusters.url).send(method, path, body).await
    }

    /// Sets or clears the protection of a node.
    pub(crate) async fn protect(&self, node: &str, protected: bool) {
        let patch = json!([{"op": "replace", "path": "/protected", "value": protected}]);
        let (status, said) =
            self.machine(Method::PATCH, &format!("/v1/nodes/{node}"), &patch).await;
        assert_eq!(status, 200, "{said}");
    }

    /// Enrolls an installed node that is this compute host.
    pub(crate) async fn node(&self, name: &str, host: &str) {
        let body = json!({
            "name": name, "driver": "fake-hardware",
            "instance_info": {"hypervisor_hostname": host, "image_source": "http://images.example/disk.raw", "image_checksum": "0"},
        });
        let (status, said) = self.machine(Method::POST, "/v1/nodes", &body).await;
        assert_eq!(status, 201, "{said}");
        for (target, state) in [("manage", "manageable"), ("adopt", "active")] {
            let path = format!("/v1/nodes/{name}/states/provision");
            let (status, said) = self.machine(Method::PUT, &path, &json!({"target": target})).await;
            assert_eq!(status, 202, "{said}");
            until(state, async || {
                let path = format!("/v1/nodes/{name}?fields=provision_state");
                let (_, shown) = self.machine(Method::GET, &path, &Value::Null).await;
                shown.contains(&format!("\"{state}\"")).then_some(())
            })
            .await;
        }
    }
}

/// Sends a request, with `body` unless it is null; returns the status and the text of the answer.
async fn reported(api: &Api, method: Method, path: &str, body: &Value) -> (u16, String) {
    let Answer { status, body, .. } =
        api.send(method, path, Some(body).filter(|it| !it.is_null())).await;
    (status, if body.is_null() { String::new() } else { body.to_string() })
}

fn api(service: Service, url: &str) -> Api {
    Api::new(service, Url::parse(url).expect("an address makes a URL"))
}

/// Starts a service with this configuration, and waits until it listens.
async fn daemon(folder: &TempDir, name: &str, config: &str) -> (Child, String) {
    let state = folder.path().join(name);
    let file = folder.path().join(format!("{name}.toml"));
    let config = config.replace("STATE", &state.display().to_string());
    std::fs::write(&file, config).expect("a file");
    let child = Command::new(compat::program(name))
        .arg("--config")
        .arg(&file)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(std::fs::File::create(folder.path().join(format!("{name}.log"))).expect("a log"))
        .kill_on_drop(true)
        .spawn();
    let child = child.unwrap_or_else(|why| panic!("{name} does not start: {why}"));
    let listeners: PathBuf = state.join("listeners.json");
    until(name, async || listeners.is_file().then_some(())).await;
    let url = until(name, async || {
        let reported: Value = serde_json::from_slice(&std::fs::read(&listeners).ok()?).ok()?;
        Some(format!("http://{}", reported["api"].as_str()?))
    });
    (child, url.await)
}

/// Keeps the state and the output of a service for the search for leaked secrets.
fn keep(site: &Site, name: &str) {
    let folder = site.folder.path();
    left::keep(&folder.join(name), &format!("services-{name}"));
    let log = folder.join(format!("{name}.log"));
    let said = std::fs::read_to_string(log).unwrap_or_default();
    left::keep_text("children", said.as_bytes());
    if std::thread::panicking() {
        let lines: Vec<&str> = said.lines().collect();
        let last = &lines[lines.len().saturating_sub(40)..];
        eprintln!("{name}:\n{}", last.join("\n"));
    }
}

impl Drop for Clusters {
    fn drop(&mut self) {
        keep(&self.site, "clusterd");
    }
}

impl Drop for Services {
    fn drop(&mut self) {
        keep(&self.clusters.site, "baremetald");
    }
}
