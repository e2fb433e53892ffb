//! Starts clusterd for a real cloud: its configuration, and the mirror from which cluster members fetch programs.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use compat::Service;

use crate::network::cache;

/// The address of this host beyond the cloud's external network. Machines reach this host there.
const HOST: &str = "198.18.0.1";
const MIRROR_PORT: u16 = 8000;

/// The version of Kubernetes in the mirror.
pub const VERSION: &str = "v1.20.2";

/// Starts a clusterd that makes clusters as this user of a clouds.yaml. `more` holds further tables of its configuration.
#[track_caller]
pub fn clusterd(clouds_yaml: &Path, user: &str, more: &str) -> Service {
    let clouds_yaml = clouds_yaml.display();
    Service::clusters_with(&format!(
        "[cloud]\nclouds_yaml = '{clouds_yaml}'\nname = '{user}'\n[conductor]\nlook_every = '10s'\n{more}"
    ))
}

/// Configuration for servers that run nothing: clusterd needs the addresses and checksums of programs, but nobody fetches them.
pub fn for_nobody() -> String {
    let sum = "0".repeat(64);
    let mut text = format!(
        "[nodes]\nlisten = '127.0.0.1:0'\nurl = 'https://clusterd.example:9512/'\n[kubernetes.versions.'{VERSION}']\n"
    );
    for program in ["kubeadm", "kubelet", "kubectl"] {
        let url = format!("https://mirror.example/{program}");
        let _ = writeln!(text, "{program} = {{ url = '{url}', sha256 = '{sum}' }}");
    }
    text
}

/// Configuration for machines made of namespaces: they reach clusterd and the mirror, run no systemd, and share the kernel of the host.
pub fn for_machines() -> String {
    let held = MirrorConfig::at(HOST);
    let mut text = format!(
        "[nodes]\nlisten = '{HOST}:9512'\nurl = 'https://{HOST}:9512/'\n\
         [kubernetes]\ncluster_dns = 'none'\ncgroup_driver = 'cgroupfs'\n\
         [kubernetes.kubelet]\nfailSwapOn = false\nimageGCHighThresholdPercent = 100\n\
         evictionHard = {{ 'memory.available' = '100Mi', 'nodefs.available' = '1%', 'imagefs.available' = '1%' }}\n\
         [kubernetes.kube_proxy.conntrack]\nmaxPerCore = 0\nmin = 0\ntcpEstablishedTimeout = '0s'\ntcpCloseWaitTimeout = '0s'\n\
         {}image_repository = 'bedplate.invalid'\netcd_tag = '{}'\n",
        held.programs(),
        MirrorConfig::file("ETCD_TAG").trim()
    );
    let every = held.archives(&["pause", "kube-proxy", "tools"]);
    let control_plane =
        held.archives(&["kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd"]);
    let _ = writeln!(text, "archives = {every}\ncontrol_plane_archives = {control_plane}");
    text
}

/// Configuration for virtual machines that reach this host at `host`. They run systemd and fetch programs, but no images, so they never
/// become nodes; clusterd must not replace them while they boot slowly.
pub fn for_virtual_machines(host: &str) -> String {
    let programs = MirrorConfig::at(host).programs();
    format!(
        "[repair]\nbecome_node_within = '1h'\n[nodes]\nlisten = '{host}:9512'\nurl = 'https://{host}:9512/'\n{programs}"
    )
}

/// Writes the configuration of the programs and images in the mirror.
struct MirrorConfig<'a> {
    host: &'a str,
    sums: String,
}

impl<'a> MirrorConfig<'a> {
    #[track_caller]
    fn at(host: &'a str) -> Self {
        MirrorConfig { host, sums: MirrorConfig::file("SHA256SUMS") }
    }

    #[track_caller]
    fn file(name: &str) -> String {
        fs::read_to_string(mirror().join(name))
            .expect("there is a mirror: `make test-kubernetes` makes it")
    }

    fn artifact(&self, file: &str) -> String {
        let mut lines = self.sums.lines().filter_map(|line| line.split_once("  "));
        let (sum, _) = lines.find(|(_, name)| *name == file).expect("the mirror has it");
        format!("{{ url = 'http://{}:{MIRROR_PORT}/{file}', sha256 = '{sum}' }}", self.host)
    }

    fn archives(&self, names: &[&str]) -> String {
        let archives: Vec<String> =
            names.iter().map(|name| self.artifact(&format!("{name}.tar"))).collect();
        format!("[{}]", archives.join(", "))
    }

    /// The table of programs for the one version of Kubernetes. More keys may follow it.
    fn programs(&self) -> String {
        let mut text = format!("[kubernetes.versions.'{VERSION}']\n");
        for program in ["kubeadm", "kubelet", "kubectl"] {
            let _ = writeln!(text, "{program} = {}", self.artifact(program));
        }
        let _ = writeln!(text, "cni_plugins = {}", self.artifact("cni-plugins.tgz"));
        text
    }
}

/// The folder of programs and images, made by `tests/real/kubernetes/mirror.sh`.
pub fn mirror() -> PathBuf {
    cache().join("kubernetes/mirror")
}

/// An HTTP server of the mirror. The server ends with the value.
#[derive(Debug)]
pub struct Mirror(Child);

impl Mirror {
    /// Serves the mirror at the address where machines of the whole cloud reach this host.
    #[track_caller]
    pub fn serve() -> Self {
        Mirror::at(HOST)
    }

    /// Serves the mirror at this address of the host.
    #[track_caller]
    pub fn at(host: &str) -> Self {
        let mut command = Command::new("python3");
        command.args(["-m", "http.server", "--bind", host, &MIRROR_PORT.to_string()]);
        command.arg("--directory").arg(mirror());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Mirror(command.spawn().expect("python3 can be started"))
    }
}

impl Drop for Mirror {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
