//! The Ignition config of one member: its files and its units.

use std::fmt;

use ignition::build::{config, directory, enabled, file, inline, remote, unit, with_dropin};
use ignition::{Config, File, Resource, Unit};
use secrecy::ExposeSecret;

use crate::settings::{PodNetwork, SettingsError};
use crate::{Artifact, ClusterSettings, Member, Name, Worker};
use crate::{add_ons, ca_rotation, containerd, kubeadm, pod_routes, units};

/// The Ignition config of a member. `Debug` prints only the member's name, because the config contains keys.
#[derive(Clone, PartialEq)]
pub struct NodeConfig {
    pub machine: Name,
    pub config: Config,
}

/// Why no config was made for a member.
#[derive(Debug, thiserror::Error)]
pub enum BootstrapError {
    /// The cluster's settings contradict each other.
    #[error("the cluster's settings are not valid")]
    Settings(#[from] SettingsError),
    #[error("{name} is not a control-plane member of the cluster")]
    NoSuchMachine { name: Name },
    /// The config is not valid Ignition. The cause is the config that was merged in, because the rest of the config is always valid.
    #[error("the config of {name} is not valid after merging the extra config: {mistakes}")]
    Invalid {
        name: Name,
        /// The mistakes, each with its JSON path.
        mistakes: String,
    },
}

/// Returns the config of one of the first control-plane members.
pub fn control_plane(cluster: &ClusterSettings, name: &Name) -> Result<NodeConfig, BootstrapError> {
    cluster.check()?;
    founding(cluster, name)
}

/// As [`control_plane`], for a member that starts from a backup with [`crate::starting_from_backup`]. In the middle of an upgrade a control
/// plane has one more member, so it may have any number.
pub fn restored_control_plane(
    cluster: &ClusterSettings,
    name: &Name,
) -> Result<NodeConfig, BootstrapError> {
    cluster.check_joining()?;
    founding(cluster, name)
}

fn founding(cluster: &ClusterSettings, name: &Name) -> Result<NodeConfig, BootstrapError> {
    let place = cluster.control_plane.iter().position(|it| it.name == *name);
    let place = place.ok_or_else(|| BootstrapError::NoSuchMachine { name: name.clone() })?;
    let machine = &cluster.control_plane[place];

    let mut files = common_files(cluster, machine, true);
    files.extend(pki_files(cluster));
    files.push(file(units::INIT, 0o600, inline(kubeadm::init(cluster, machine).as_bytes())));
    files.push(file(
        units::INIT_ETCD,
        0o600,
        inline(kubeadm::init_etcd(cluster, machine).as_bytes()),
    ));
    files.extend(etcd_patch(cluster));

    let mut own = vec![units::control_plane(cluster), units::label_control_plane_node()];
    if place == 0 {
        own.push(units::cluster_setup(cluster));
        if cluster.pod_network == PodNetwork::HostRoutes {
            let access = format!("{:#}\n", pod_routes::access());
            files.push(file(units::POD_ROUTES_ACCESS, 0o644, inline(access.as_bytes())));
        }
    }
    finish(cluster, machine, files, own, true)
}

/// Returns the config of a member that joins an existing control plane, as a replacement or in addition.
///
/// The caller has to remove a lost member from etcd first, and to make sure that the bootstrap token is still valid.
pub fn joining_control_plane(
    cluster: &ClusterSettings,
    machine: &Member,
) -> Result<NodeConfig, BootstrapError> {
    joining(cluster, machine, Vec::new(), Vec::new())
}

/// As [`joining_control_plane`], for a member with another version of Kubernetes than the control plane: the member also upgrades kubeadm's
/// add-ons once the whole control plane has its version.
pub fn upgrading_control_plane(
    cluster: &ClusterSettings,
    machine: &Member,
) -> Result<NodeConfig, BootstrapError> {
    let script = file(add_ons::SCRIPT, 0o644, inline(add_ons::SCRIPT_TEXT.as_bytes()));
    joining(cluster, machine, vec![script], vec![units::upgrade_add_ons(cluster)])
}

fn joining(
    cluster: &ClusterSettings,
    machine: &Member,
    more_files: Vec<File>,
    more_units: Vec<(String, String)>,
) -> Result<NodeConfig, BootstrapError> {
    cluster.check_joining()?;
    cluster.check_address(machine.address)?;
    let mut files = common_files(cluster, machine, true);
    files.extend(pki_files(cluster));
    let join = kubeadm::join_control_plane(cluster, machine);
    files.push(file(units::JOIN, 0o600, inline(join.as_bytes())));
    let certificates = kubeadm::certificates(cluster, machine);
    files.push(file(units::CERTIFICATES, 0o600, inline(certificates.as_bytes())));
    files.push(file(units::UPLOAD, 0o600, inline(kubeadm::upload(cluster, machine).as_bytes())));
    files.extend(etcd_patch(cluster));
    files.extend(more_files);
    let own = units::join_control_plane(cluster).into_iter().chain(more_units).collect();
    finish(cluster, machine, files, own, true)
}

/// The patch of etcd's static pod, if the version needs one.
fn etcd_patch(cluster: &ClusterSettings) -> Option<File> {
    let is_needed = cluster.version.minor_version().etcd_asks_for_disk();
    let patch = || file(units::ETCD_PATCH, 0o600, inline(kubeadm::ETCD_WITHOUT_DISK.as_bytes()));
    is_needed.then(patch)
}

/// Returns the config of a worker.
pub fn worker(cluster: &ClusterSettings, worker: &Worker) -> Result<NodeConfig, BootstrapError> {
    cluster.check_joining()?;
    cluster.check_address(worker.machine.address)?;
    worker.check()?;
    let mut files = common_files(cluster, &worker.machine, false);
    files.push(file(units::JOIN, 0o600, inline(kubeadm::join(cluster, worker).as_bytes())));
    finish(cluster, &worker.machine, files, vec![units::join(cluster)], false)
}

fn finish(
    cluster: &ClusterSettings,
    machine: &Member,
    files: Vec<File>,
    own: Vec<(String, String)>,
    is_control_plane: bool,
) -> Result<NodeConfig, BootstrapError> {
    let archives = units::archives(&cluster.source.images.archives, is_control_plane);
    let plugins = cluster.source.programs.cni_plugins.is_some();
    let mut all: Vec<Unit> = vec![enabled("containerd.service")];
    all.push(with_dropin(
        unit("kubelet.service", units::KUBELET),
        "10-kubeadm.conf",
        units::KUBELET_KUBEADM,
    ));
    let unpack = units::unpack(plugins, &archives);
    let routes =
        (cluster.pod_network == PodNetwork::HostRoutes).then(|| units::pod_routes(&machine.name));
    let made = unpack.into_iter().chain(own).chain(routes);
    all.extend(made.map(|(name, text)| unit(&name, &text)));

    // The kubelet logs an error as long as the manifest folder is missing.
    let folders = vec![directory("/etc/kubernetes/manifests", 0o700)];
    let mut made = config(folders, files, all);
    made.ignition.version = Some(ignition::SPEC.to_owned());
    if let Some(extra) = &cluster.extra {
        made = ignition::merge(&made, extra);
    }
    let mistakes = ignition::check(&made);
    if mistakes.is_empty() {
        Ok(NodeConfig { machine: machine.name.clone(), config: made })
    } else {
        let mistakes: Vec<String> = mistakes.iter().map(ToString::to_string).collect();
        let mistakes = mistakes.join("; ");
        Err(BootstrapError::Invalid { name: machine.name.clone(), mistakes })
    }
}

fn common_files(cluster: &ClusterSettings, machine: &Member, is_control_plane: bool) -> Vec<File> {
    let text = |path: &str, text: &str| file(path, 0o644, inline(text.as_bytes()));
    let programs = &cluster.source.programs;
    let mut files = vec![
        text("/etc/hostname", &format!("{}\n", machine.name)),
        text("/etc/modules-load.d/kubernetes.conf", "br_netfilter\noverlay\n"),
        text(
            "/etc/sysctl.d/90-kubernetes.conf",
            "net.ipv4.ip_forward = 1\nnet.ipv6.conf.all.forwarding = 1\nnet.bridge.bridge-nf-call-iptables = 1\n\
             net.bridge.bridge-nf-call-ip6tables = 1\n",
        ),
        text("/etc/containerd/config.toml", &containerd::config(cluster)),
        // Zincati would reboot the member to update its operating system, unless it asks clusterd (`src/os_updates.rs`).
        text("/etc/zincati/config.d/90-bedplate.toml", "[updates]\nenabled = false\n"),
    ];
    for (name, artifact) in [
        ("kubeadm", &programs.kubeadm),
        ("kubelet", &programs.kubelet),
        ("kubectl", &programs.kubectl),
    ] {
        files.push(file(&format!("{}/{name}", units::PROGRAMS), 0o755, fetched(artifact)));
    }
    if let Some(plugins) = &programs.cni_plugins {
        files.push(file(&format!("{}/cni-plugins.tgz", units::FETCHED), 0o600, fetched(plugins)));
    }
    for artifact in units::archives(&cluster.source.images.archives, is_control_plane) {
        files.push(file(&units::image_path(artifact), 0o600, fetched(artifact)));
    }
    if cluster.pod_network == PodNetwork::HostRoutes {
        files.push(text(pod_routes::SCRIPT, &pod_routes::script(cluster)));
    }
    files
}

/// The certificate authorities, under the file names that kubeadm expects.
fn pki_files(cluster: &ClusterSettings) -> Vec<File> {
    let pki = &cluster.pki;
    let public = |name: &str, pem: &str| {
        file(&format!("/etc/kubernetes/pki/{name}"), 0o644, inline(pem.as_bytes()))
    };
    let private = |name: &str, pem: &str| {
        file(&format!("/etc/kubernetes/pki/{name}"), 0o600, inline(pem.as_bytes()))
    };
    let authorities =
        [("ca", &pki.cluster), ("etcd/ca", &pki.etcd), ("front-proxy-ca", &pki.front_proxy)];
    let mut files: Vec<File> = authorities
        .into_iter()
        .flat_map(|(name, it)| {
            [
                public(&format!("{name}.crt"), &it.certificate),
                private(&format!("{name}.key"), it.key.expose_secret()),
            ]
        })
        .collect();
    files.push(file(ca_rotation::SIGNING, 0o644, inline(pki.cluster.certificate.as_bytes())));
    files.push(public("sa.pub", &pki.service_account.public));
    files.push(private("sa.key", pki.service_account.private.expose_secret()));
    files
}

fn fetched(artifact: &Artifact) -> Resource {
    remote(artifact.url.as_str(), artifact.sha256.as_str())
}

impl fmt::Debug for NodeConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NodeConfig({})", self.machine)
    }
}
