//! clusterd before a real OpenStack: its configuration, and the mirror that its machines fetch from.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use compat::Service;

use crate::network::cache;

/// The address of what lies beyond the cloud's external network: machines reach this host there.
const HOST: &str = "198.18.0.1";
const MIRROR_PORT: u16 = 8000;

/// The version of Kubernetes that the mirror has.
pub const VERSION: &str = "v1.20.2";

/// Starts a clusterd that makes clusters as this user of a clouds.yaml, with these tables in its configuration besides.
#[track_caller]
pub fn clusterd(clouds_yaml: &Path, user: &str, more: &str) -> Service {
    let clouds_yaml = clouds_yaml.display();
    Service::clusters_with(&format!(
        "[cloud]\nclouds_yaml = '{clouds_yaml}'\nname = '{user}'\n[conductor]\nlook_every = '5s'\n{more}"
    ))
}

/// For machines that never run: what they would ask for, and where.
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

/// For machines of namespaces: they reach clusterd and the mirror, have no systemd, and may have or lack what the host has or lacks.
pub fn for_machines() -> String {
    let folder = cache().join("kubernetes/mirror");
    let read = |name: &str| {
        fs::read_to_string(folder.join(name))
            .expect("there is a mirror: `make test-kubernetes` makes it")
    };
    let (sums, etcd) = (read("SHA256SUMS"), read("ETCD_TAG"));
    let artifact = |file: &str| {
        let mut lines = sums.lines().filter_map(|line| line.split_once("  "));
        let (sum, _) = lines.find(|(_, name)| *name == file).expect("the mirror has it");
        format!("{{ url = 'http://{HOST}:{MIRROR_PORT}/{file}', sha256 = '{sum}' }}")
    };
    let archives = |names: &[&str]| {
        let archives: Vec<String> =
            names.iter().map(|name| artifact(&format!("{name}.tar"))).collect();
        format!("[{}]", archives.join(", "))
    };
    let mut text = format!(
        "[nodes]\nlisten = '{HOST}:9512'\nurl = 'https://{HOST}:9512/'\n\
         [kubernetes]\ncluster_dns = 'none'\ncgroup_driver = 'cgroupfs'\n\
         [kubernetes.kubelet]\nfailSwapOn = false\nimageGCHighThresholdPercent = 100\n\
         evictionHard = {{ 'memory.available' = '100Mi', 'nodefs.available' = '1%', 'imagefs.available' = '1%' }}\n\
         [kubernetes.kube_proxy.conntrack]\nmaxPerCore = 0\nmin = 0\ntcpEstablishedTimeout = '0s'\ntcpCloseWaitTimeout = '0s'\n\
         [kubernetes.versions.'{VERSION}']\nimage_repository = 'bedplate.invalid'\netcd_tag = '{}'\n",
        etcd.trim()
    );
    for program in ["kubeadm", "kubelet", "kubectl"] {
        let _ = writeln!(text, "{program} = {}", artifact(program));
    }
    let every = archives(&["pause", "kube-proxy", "tools"]);
    let control_plane =
        archives(&["kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd"]);
    let plugins = artifact("cni-plugins.tgz");
    let _ = writeln!(text, "cni_plugins = {plugins}\narchives = {every}");
    let _ = writeln!(text, "control_plane_archives = {control_plane}");
    text
}

/// The mirror of programs and images, on the host, as long as the value lives.
#[derive(Debug)]
pub struct Mirror(Child);

impl Mirror {
    /// Serves it where machines find it.
    #[track_caller]
    pub fn serve() -> Self {
        let mut command = Command::new("python3");
        command.args(["-m", "http.server", "--bind", HOST, &MIRROR_PORT.to_string()]);
        command.arg("--directory").arg(cache().join("kubernetes/mirror"));
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
