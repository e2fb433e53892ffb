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
/// The version of the mirror's second set of programs, for upgrades: the same source with another version stamp.
pub const NEWER: &str = "v1.20.3";

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

/// Configuration for machines made of namespaces: they reach clusterd and the mirror, run no systemd, and share the kernel of the host. Their
/// certificates live for 30 minutes.
pub fn for_machines() -> String {
    let held = MirrorConfig::at(HOST);
    format!(
        "[nodes]\nlisten = '{HOST}:9512'\nurl = 'https://{HOST}:9512/'\n\
         [kubernetes]\ncluster_dns = 'none'\ncgroup_driver = 'cgroupfs'\n\
         [kubernetes.kubelet]\nfailSwapOn = false\nimageGCHighThresholdPercent = 100\n\
         evictionHard = {{ 'memory.available' = '100Mi', 'nodefs.available' = '1%', 'imagefs.available' = '1%' }}\n\
         [kubernetes.kube_proxy.conntrack]\nmaxPerCore = 0\nmin = 0\ntcpEstablishedTimeout = '0s'\ntcpCloseWaitTimeout = '0s'\n\
         {}{}",
        held.version(VERSION, "kubeadm-short-lived"),
        held.version(NEWER, "kubeadm"),
    )
}

/// Configuration for virtual machines that reach this host at `host`. They run systemd and fetch programs, but no images, so they never
/// become nodes; clusterd must not replace them while they boot slowly.
pub fn for_virtual_machines(host: &str) -> String {
    let programs = MirrorConfig::at(host).programs(VERSION, "kubeadm");
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

    fn archives(&self, version: &str, images: &[&str]) -> String {
        let archive = |image: &&str| self.artifact(&in_mirror(version, &format!("{image}.tar")));
        let archives: Vec<String> = images.iter().map(archive).collect();
        format!("[{}]", archives.join(", "))
    }

    /// The table of a version with its programs and images, with this file as kubeadm.
    fn version(&self, version: &str, kubeadm: &str) -> String {
        let mut text = self.programs(version, kubeadm);
        let etcd = MirrorConfig::file("ETCD_TAG");
        let every = self.archives(version, &["pause", "kube-proxy", "tools"]);
        let control_plane = ["kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd"];
        let control_plane = self.archives(version, &control_plane);
        let _ =
            writeln!(text, "image_repository = 'bedplate.invalid'\netcd_tag = '{}'", etcd.trim());
        let _ = writeln!(text, "archives = {every}\ncontrol_plane_archives = {control_plane}");
        text
    }

    /// The table of a version with its programs, and this file as kubeadm. More keys may follow it.
    fn programs(&self, version: &str, kubeadm: &str) -> String {
        let mut text = format!("[kubernetes.versions.'{version}']\n");
        for (program, file) in
            [("kubeadm", kubeadm), ("kubelet", "kubelet"), ("kubectl", "kubectl")]
        {
            let _ = writeln!(text, "{program} = {}", self.artifact(&in_mirror(version, file)));
        }
        let _ = writeln!(text, "cni_plugins = {}", self.artifact("cni-plugins.tgz"));
        text
    }
}

/// The path of a file of a version within the mirror. Files that the versions share are at its top.
pub(crate) fn in_mirror(version: &str, file: &str) -> String {
    let is_shared = ["cni-plugins.tgz", "pause.tar", "tools.tar", "etcd.tar"].contains(&file);
    if version == VERSION || is_shared { file.to_owned() } else { format!("{version}/{file}") }
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
