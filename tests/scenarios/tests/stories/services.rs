//! baremetald and clusterd as processes beside an emulated cloud, in which clusterd's user is an administrator, and `bedplate`.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::process::Stdio;

use api_client::{Service, baremetald};
use cluster::Listeners;
use lab::Api;
use openstack::compute::services;
use reqwest::Method;
use serde_json::json;
use tempfile::TempDir;
use tokio::process::{Child, Command};
use url::Url;

use crate::own_vm::{ProgramOutput, until};
use crate::site::Site;

/// The files that several clusterd have in common.
pub(crate) const KEYS: [&str; 2] = ["seal.keys", "nodes.authority"];

/// Nothing downloads or runs these programs: emulated servers become a cluster without them.
pub(crate) const PROGRAM: &str = "{ url = 'https://mirror.example/program', sha256 = '0000000000000000000000000000000000000000000000000000000000000000' }";

/// A cloud, and a clusterd whose user administers it.
pub(crate) struct Clusters {
    pub(crate) site: Site,
    pub(crate) api: Api,
    _daemon: Child,
}

/// A cloud, and both services.
pub(crate) struct Services {
    pub(crate) clusters: Clusters,
    /// The client of baremetald.
    pub(crate) machines: Api,
    _daemon: Child,
}

impl Clusters {
    pub(crate) async fn start() -> Clusters {
        Clusters::start_with("").await
    }

    pub(crate) async fn start_with(more: &str) -> Clusters {
        Clusters::start_in(openstack_emulator::Settings::default(), more).await
    }

    /// Starts in a cloud with these settings.
    pub(crate) async fn start_in(cloud: openstack_emulator::Settings, more: &str) -> Clusters {
        let site = Site::start_with("clusterd", cloud).await;
        let folder = &site.folder;
        // The address is fixed in advance, because servers get it in their configs before clusterd listens.
        let free = TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr());
        let free = free.expect("a port");
        let config = configuration(folder, "clusterd", FREE, (free, free)) + more;
        let (daemon, api) = daemon(folder, Service::Clusterd, &config).await;
        Clusters { site, api, _daemon: daemon }
    }

    /// Runs `bedplate …` with further arguments before those.
    pub(crate) async fn bedplate(&self, before: &[&str], arguments: &[&str]) -> ProgramOutput {
        let url = ["--clusters-url", self.api.url().as_str()];
        bedplate(&[&url[..], before, arguments].concat()).await
    }

    /// Requests a person's VM of this name, and waits until it is active.
    pub(crate) async fn vm(&self, name: &str) {
        let request = ["vm", "request", name, "--image", "cirros", "--flavor", "m1.nano", "--wait"];
        self.bedplate(&[], &request).await.done();
    }

    /// Disables all hosts except this one, so that they take no servers.
    pub(crate) async fn disable_other_hosts(&self, host: &str) {
        let session = &self.site.user.session;
        let all = services::list_compute(session).await.expect("the compute services");
        for service in all.iter().filter(|service| service.host != host) {
            let disabled = services::disable(session, &service.id, "an operator's own").await;
            disabled.expect("a disabled service");
        }
    }
}

/// Any free port.
const FREE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// The configuration of a clusterd with this address of its API. It listens for members at the first of the other addresses, and members reach
/// it at the second.
pub(crate) fn configuration(
    folder: &TempDir,
    hostname: &str,
    api: SocketAddr,
    (listen, reached): (SocketAddr, SocketAddr),
) -> String {
    format!(
        "state_dir = 'STATE'\n[api]\nlisten = '{api}'\n\
         [cloud]\nclouds_yaml = '{}/clouds.yaml'\nname = 'clusterd'\n\
         [conductor]\nhostname = '{hostname}'\nlook_every = '1s'\n\
         [machines]\nnetwork = 'lab'\nimages = [{{ name = 'cirros' }}]\n\
         [nodes]\nlisten = '{listen}'\nurl = 'https://{reached}/'\nsource_address = 'any'\n\
         [kubernetes.versions.'v1.34.1']\nkubeadm = {PROGRAM}\nkubelet = {PROGRAM}\nkubectl = {PROGRAM}\n",
        folder.path().display()
    )
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
            clusters.api.url()
        );
        let (folder, baremetald) = (&clusters.site.folder, baremetald + &more("baremetald"));
        let (daemon, machines) = daemon(folder, Service::Baremetald, &baremetald).await;
        Services { clusters, machines, _daemon: daemon }
    }

    pub(crate) async fn bedplate(&self, arguments: &[&str]) -> ProgramOutput {
        let url = ["--url", self.machines.url().as_str()];
        self.clusters.bedplate(&url, arguments).await
    }

    pub(crate) async fn node(&self, name: &str) -> baremetald::Node {
        self.machines.get(&format!("/v1/nodes/{name}")).await
    }

    /// Sets or clears the protection of a node.
    pub(crate) async fn protect(&self, node: &str, protected: bool) {
        let patch = json!([{"op": "replace", "path": "/protected", "value": protected}]);
        let path = format!("/v1/nodes/{node}");
        self.machines.send(Method::PATCH, &path, Some(&patch)).await.expect("the protection");
    }

    /// Enrolls an installed node that is this compute host.
    pub(crate) async fn enroll(&self, name: &str, host: &str) {
        let body = json!({
            "name": name, "driver": "fake-hardware",
            "instance_info": {"hypervisor_hostname": host, "image_source": "http://images.example/disk.raw", "image_checksum": "0"},
        });
        self.machines.create("/v1/nodes", &body).await;
        for (target, state) in [("manage", "manageable"), ("adopt", "active")] {
            let path = format!("/v1/nodes/{name}/states/provision");
            let body = json!({"target": target});
            self.machines.send(Method::PUT, &path, Some(&body)).await.expect(target);
            let reached = |it: &baremetald::Node| (it.state() == state).then_some(());
            self.machines.until(&format!("/v1/nodes/{name}"), state, reached).await;
        }
    }
}

/// Runs `bedplate` with these arguments and no environment.
pub(crate) async fn bedplate(arguments: &[&str]) -> ProgramOutput {
    let mut command = Command::new(compat::program("bedplate"));
    let output = command.env_clear().args(arguments).output().await.expect("bedplate starts");
    left::keep_text("bedplate", &[output.stdout.as_slice(), &output.stderr].concat());
    let text = |bytes| String::from_utf8(bytes).expect("text");
    ProgramOutput {
        done: output.status.success(),
        out: text(output.stdout),
        error: text(output.stderr),
    }
}

/// Starts a service with this configuration, and waits until it listens.
pub(crate) async fn daemon(folder: &TempDir, service: Service, config: &str) -> (Child, Api) {
    let name = service.program();
    let state = folder.path().join(name);
    let listeners = state.join("listeners.json");
    // An earlier life of the service may have left the file.
    let _ = std::fs::remove_file(&listeners);
    let file = folder.path().join(format!("{name}.toml"));
    let config = config.replace("STATE", &state.display().to_string());
    std::fs::write(&file, config).expect("a file");
    let log = folder.path().join(format!("{name}.log"));
    let log = std::fs::File::options().create(true).append(true).open(log).expect("a log");
    let child = Command::new(compat::program(service.program()))
        .arg("--config")
        .arg(&file)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        .kill_on_drop(true)
        .spawn();
    let child = child.unwrap_or_else(|why| panic!("{name} does not start: {why}"));
    let listeners: Listeners =
        until(name, async || serde_json::from_slice(&std::fs::read(&listeners).ok()?).ok()).await;
    let url = Url::parse(&format!("http://{}", listeners.api)).expect("an address makes a URL");
    (child, Api::new(service, url))
}

/// Sends a signal to a service: `KILL`, `TERM`, `STOP` or `CONT`.
pub(crate) async fn signal(service: &Child, name: &str) {
    let pid = service.id().expect("the service runs").to_string();
    let sent = Command::new("kill").arg(format!("-{name}")).arg(pid).status().await;
    assert!(sent.expect("kill runs").success(), "no process gets {name}");
}

/// Keeps the state and the output of a service for the search for leaked secrets.
pub(crate) fn keep(site: &Site, name: &str) {
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
