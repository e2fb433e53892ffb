//! systemd units of a member. Each unit does nothing once its work is done, and may fail and be started again.

use crate::add_ons;
use crate::kubeadm;
use crate::pod_routes;
use crate::settings::{Approval, PodNetwork};
use crate::{Archives, Artifact, ClusterSettings};

/// The folder of programs that are not part of the image. Fedora CoreOS permits writing to this folder.
pub(crate) const PROGRAMS: &str = "/usr/local/bin";
/// kubeadm's configuration on a control-plane member.
pub(crate) const INIT: &str = "/etc/bedplate/init.yaml";
/// The configuration in `INIT` with the first members of etcd.
pub(crate) const INIT_ETCD: &str = "/etc/bedplate/init-etcd.yaml";
/// kubeadm's configuration on a member that joins.
pub(crate) const JOIN: &str = "/etc/bedplate/join.yaml";
/// kubeadm's configuration for the API server's certificate on a member that joins the control plane.
pub(crate) const CERTIFICATES: &str = "/etc/bedplate/certificates.yaml";
/// kubeadm's configuration that a member uploads before it joins the control plane.
pub(crate) const UPLOAD: &str = "/etc/bedplate/upload.yaml";
/// A patch of etcd's static pod, in the folder `PATCHES`.
pub(crate) const ETCD_PATCH: &str = "/etc/bedplate/patches/etcd.json";
const PATCHES: &str = "/etc/bedplate/patches";
/// The folder in which downloads wait to be unpacked.
pub(crate) const FETCHED: &str = "/var/lib/bedplate/fetched";
/// The RBAC objects that permit kubelets to read all Kubernetes nodes, for pod routes.
pub(crate) const POD_ROUTES_ACCESS: &str = "/etc/bedplate/pod-routes-access.json";
/// The script that finds the member's volumes.
pub(crate) const VOLUMES: &str = "/etc/bedplate/volumes";
/// The unit that runs `VOLUMES`.
pub(crate) const VOLUMES_UNIT: &str = "bedplate-volumes.service";
/// A kubeconfig with all rights. kubeadm leaves it on the first member alone.
const SUPER_ADMIN: &str = "/etc/kubernetes/super-admin.conf";
/// The folder of marker files: a marker says that a unit finished its work.
const DONE: &str = "/var/lib/bedplate/done";

/// The binding that lets every holder of a token become a node (kubernetes, cmd/kubeadm/app/constants:
/// NodeAutoApproveBootstrapClusterRoleBinding). The binding that lets nodes renew their own certificates is kept.
const AUTOMATIC_APPROVAL: &str = "kubeadm:node-autoapprove-bootstrap";

/// A unit that runs its commands once in the life of a member.
struct OneTimeUnit<'a> {
    name: &'a str,
    description: &'a str,
    after: &'a [&'a str],
    unless: String,
    commands: Vec<String>,
}

impl OneTimeUnit<'_> {
    fn text(&self) -> String {
        let OneTimeUnit { name: _, description, after, unless, commands } = self;
        let after = after.join(" ");
        let commands: String = commands.iter().map(|it| format!("ExecStart={it}\n")).collect();
        format!(
            "[Unit]
Description={description}
ConditionPathExists=!{unless}
After=network-online.target {after}
Wants=network-online.target {after}
StartLimitIntervalSec=0

[Service]
Type=oneshot
RemainAfterExit=yes
Environment=KUBECONFIG=/etc/kubernetes/admin.conf PATH={PROGRAMS}:/usr/sbin:/usr/bin:/sbin:/bin
{commands}Restart=on-failure
RestartMode=direct
RestartSec=2
TimeoutStartSec=20min

[Install]
WantedBy=multi-user.target
"
        )
    }

    fn named(self) -> (String, String) {
        (self.name.to_owned(), self.text())
    }
}

const UNPACK: &str = "bedplate-unpack.service";
/// The unit that starts the control plane of one member.
pub(crate) const CONTROL_PLANE: &str = "bedplate-control-plane.service";
/// The unit that labels the Kubernetes node of a control-plane member.
pub(crate) const MARK: &str = "bedplate-mark.service";

/// Returns the unit that unpacks the downloaded CNI plugins and images; `None` if there is nothing to unpack.
pub(crate) fn unpack(plugins: bool, archives: &[&Artifact]) -> Option<(String, String)> {
    if !plugins && archives.is_empty() {
        return None;
    }
    let mut commands = Vec::new();
    if plugins {
        commands.push("/usr/bin/mkdir -p /opt/cni/bin".to_owned());
        commands.push(format!("/usr/bin/tar -xzf {FETCHED}/cni-plugins.tgz -C /opt/cni/bin"));
        commands.push("-/usr/sbin/restorecon -R /opt/cni".to_owned());
    }
    for artifact in archives {
        commands.push(format!("/usr/bin/ctr -n k8s.io images import {}", image_path(artifact)));
    }
    let unless = format!("{DONE}/unpack");
    commands.extend(mark_done(&unless));
    commands.push(format!("/usr/bin/rm -rf {FETCHED}"));
    let description = "Unpack CNI plugins and images";
    Some(
        OneTimeUnit { name: UNPACK, description, after: &["containerd.service"], unless, commands }
            .named(),
    )
}

/// Returns the unit that finds the volumes with these tags at each boot.
pub(crate) fn volumes(tags: &str) -> (String, String) {
    let unless = "/run/bedplate/volumes/found".to_owned();
    let commands = vec![format!("/bin/bash {VOLUMES} {tags}"), format!("/usr/bin/touch {unless}")];
    let description = "Find the volumes of this server";
    OneTimeUnit { name: VOLUMES_UNIT, description, after: &[], unless, commands }.named()
}

/// Returns the unit that starts the control plane of one member. None of its commands waits for another member.
pub(crate) fn control_plane(cluster: &ClusterSettings) -> (String, String) {
    let phase = |phase: &str| format!("{PROGRAMS}/kubeadm init phase {phase} --config={INIT}");
    let unless = format!("{DONE}/control-plane");
    let mut commands = vec![
        phase("certs all"),
        phase("kubeconfig all"),
        format!(
            "{PROGRAMS}/kubeadm init phase etcd local --config={INIT_ETCD}{}",
            patches(cluster)
        ),
        phase("control-plane all"),
        phase("kubelet-start"),
    ];
    commands.extend(mark_done(&unless));
    let description = format!("Control plane of {}", cluster.name);
    let after = ["containerd.service", UNPACK];
    OneTimeUnit { name: CONTROL_PLANE, description: &description, after: &after, unless, commands }
        .named()
}

/// The argument with which kubeadm applies [`ETCD_PATCH`]; empty if the version needs no patch.
fn patches(cluster: &ClusterSettings) -> String {
    match cluster.version.minor_version().etcd_asks_for_disk() {
        true => format!(" --experimental-patches={PATCHES}"),
        false => String::new(),
    }
}

/// Returns the unit of the first member that runs the steps that a cluster needs once, as soon as the API answers.
pub(crate) fn cluster_setup(cluster: &ClusterSettings) -> (String, String) {
    let phase = |phase: &str| format!("{PROGRAMS}/kubeadm init phase {phase} --config={INIT}");
    let mut commands = vec![ready(), phase("upload-config all"), phase("bootstrap-token")];
    if cluster.approval == Approval::External {
        commands.push(format!(
            "{PROGRAMS}/kubectl delete clusterrolebinding --ignore-not-found {AUTOMATIC_APPROVAL}"
        ));
    }
    commands.extend(kubeadm::addons(cluster).iter().map(|addon| phase(&format!("addon {addon}"))));
    if cluster.pod_network == PodNetwork::HostRoutes {
        commands.push(format!("{PROGRAMS}/kubectl apply -f {POD_ROUTES_ACCESS}"));
    }
    let unless = format!("{DONE}/once");
    commands.extend(mark_done(&unless));
    let description = format!("Steps that {} needs once", cluster.name);
    let after = [CONTROL_PLANE];
    let name = "bedplate-once.service";
    OneTimeUnit { name, description: &description, after: &after, unless, commands }.named()
}

/// Returns the unit that labels and taints the Kubernetes node of a control-plane member once the node exists.
///
/// `upload-config kubelet` changes nothing in the uploaded configuration here, but also writes the container runtime's socket into an
/// annotation of the node. `kubeadm upgrade` fails without the annotation.
pub(crate) fn label_control_plane_node() -> (String, String) {
    let phase = |phase: &str| format!("{PROGRAMS}/kubeadm init phase {phase} --config={INIT}");
    let unless = format!("{DONE}/mark");
    let mut commands = vec![
        ready(),
        phase("mark-control-plane"),
        phase("upload-config kubelet"),
        phase("kubelet-finalize all"),
    ];
    commands.extend(mark_done(&unless));
    let description = "Label the control-plane node";
    OneTimeUnit { name: MARK, description, after: &[CONTROL_PLANE], unless, commands }.named()
}

/// Returns the unit that joins a worker to the cluster. The unit counts as done once the kubelet has its own credentials, because kubeadm
/// refuses to join a second time.
pub(crate) fn join(cluster: &ClusterSettings) -> (String, String) {
    let commands = vec![format!("{PROGRAMS}/kubeadm join --config={JOIN} --skip-phases=preflight")];
    let description = format!("Join {}", cluster.name);
    let after = ["containerd.service", UNPACK];
    let unless = "/etc/kubernetes/kubelet.conf".to_owned();
    OneTimeUnit {
        name: "bedplate-join.service",
        description: &description,
        after: &after,
        unless,
        commands,
    }
    .named()
}

/// Returns the units that add a member to an existing control plane.
///
/// The first unit joins the Kubernetes node, as on a worker. The second unit joins etcd. Two units are needed, because kubeadm refuses to
/// join the node a second time.
///
/// kubeadm makes the member's static pods from the configuration in the cluster, so the member first uploads its own: after the upgrade of a
/// cluster that of the new version, in the format and under the names that its kubeadm reads.
pub(crate) fn join_control_plane(cluster: &ClusterSettings) -> [(String, String); 2] {
    const NODE: &str = "bedplate-join.service";
    let phase = |phase: &str| format!("{PROGRAMS}/kubeadm join phase {phase} --config={JOIN}");
    let description = format!("Join {}", cluster.name);
    // kubeadm would make the certificate from the configuration that was uploaded when the cluster was created, and this member's own
    // external addresses would be missing. kubeadm keeps a certificate that exists.
    let certificate =
        format!("{PROGRAMS}/kubeadm init phase certs apiserver --config={CERTIFICATES}");
    let mut commands = vec![certificate];
    commands.extend(upload(cluster));
    commands.extend([phase("control-plane-prepare all"), phase("kubelet-start")]);
    let unless = "/etc/kubernetes/kubelet.conf".to_owned();
    let after = ["containerd.service", UNPACK];
    let node =
        OneTimeUnit { name: NODE, description: &description, after: &after, unless, commands };

    let description = format!("Join the control plane of {}", cluster.name);
    let unless = format!("{DONE}/control-plane");
    let mut commands = vec![ready()];
    let version = cluster.version.minor_version();
    if version.joins_etcd_before_the_kubelet() {
        // The phase that joins etcd cannot be called by its name in every version.
        let done = "preflight,control-plane-prepare,kubelet-start";
        commands.push(format!("{PROGRAMS}/kubeadm join --config={JOIN} --skip-phases={done}"));
    } else if version.etcd_asks_for_disk() {
        commands.push(phase("control-plane-join etcd") + &patches(cluster));
        commands.push(phase("control-plane-join update-status"));
        commands.push(phase("control-plane-join mark-control-plane"));
    } else {
        commands.push(phase("control-plane-join all"));
    }
    commands.extend(mark_done(&unless));
    let member = OneTimeUnit {
        name: CONTROL_PLANE,
        description: &description,
        after: &[NODE],
        unless,
        commands,
    };
    [node.named(), member.named()]
}

/// Returns the unit that upgrades kubeadm's add-ons after the control plane.
pub(crate) fn upgrade_add_ons(cluster: &ClusterSettings) -> (String, String) {
    let names = kubeadm::addons(cluster).join(" ");
    let mut commands = vec![format!("/bin/bash {} {} {names}", add_ons::SCRIPT, cluster.version)];
    let unless = format!("{DONE}/add-ons");
    commands.extend(mark_done(&unless));
    let description = format!("Upgrade the add-ons of {} to {}", cluster.name, cluster.version);
    let after = [CONTROL_PLANE];
    let name = "bedplate-add-ons.service";
    OneTimeUnit { name, description: &description, after: &after, unless, commands }.named()
}

/// The commands that upload the configuration of a member that joins the control plane. They sign the credentials for the upload with the
/// cluster's own CA.
fn upload(cluster: &ClusterSettings) -> Vec<String> {
    let init = |phase: &str, config: &str| {
        format!("{PROGRAMS}/kubeadm init phase {phase} --config={config}")
    };
    let has_super_admin = cluster.version.minor_version().has_super_admin();
    let mut commands = vec![init("kubeconfig admin", CERTIFICATES)];
    commands.extend(has_super_admin.then(|| init("kubeconfig super-admin", CERTIFICATES)));
    commands.extend([ready(), init("upload-config all", UPLOAD)]);
    commands.extend(has_super_admin.then(|| format!("/usr/bin/rm -f {SUPER_ADMIN}")));
    commands
}

/// The kubelet, as upstream's packages run it.
///
/// The kubelet cannot start before kubeadm has configured it, so systemd retries until then. An `After=` between the two would be a
/// deadlock, because kubeadm starts the kubelet and waits for it.
pub(crate) const KUBELET: &str = "[Unit]
Description=kubelet
Documentation=https://kubernetes.io/docs/
Wants=network-online.target containerd.service
After=network-online.target containerd.service
StartLimitIntervalSec=0

[Service]
ExecStartPre=/usr/bin/test -f /var/lib/kubelet/config.yaml
ExecStart=/usr/local/bin/kubelet
Restart=always
RestartSec=1

[Install]
WantedBy=multi-user.target
";

/// The drop-in that kubeadm expects for the kubelet (kubernetes, build/debs/10-kubeadm.conf). The image and an administrator may set
/// `KUBELET_EXTRA_ARGS`.
pub(crate) const KUBELET_KUBEADM: &str = r#"[Service]
Environment="KUBELET_KUBECONFIG_ARGS=--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf --kubeconfig=/etc/kubernetes/kubelet.conf"
Environment="KUBELET_CONFIG_ARGS=--config=/var/lib/kubelet/config.yaml"
EnvironmentFile=-/var/lib/kubelet/kubeadm-flags.env
EnvironmentFile=-/etc/sysconfig/kubelet
ExecStart=
ExecStart=/usr/local/bin/kubelet $KUBELET_KUBECONFIG_ARGS $KUBELET_CONFIG_ARGS $KUBELET_KUBEADM_ARGS $KUBELET_EXTRA_ARGS
"#;

/// The unit that maintains pod routes.
pub(crate) fn pod_routes(node: &crate::Name) -> (String, String) {
    ("bedplate-pod-routes.service".to_owned(), pod_routes::unit(node))
}

/// The path of a downloaded image archive until it is imported.
pub(crate) fn image_path(artifact: &Artifact) -> String {
    format!("{FETCHED}/{}.tar", artifact.sha256)
}

/// The image archives that a member needs.
pub(crate) fn archives(of: &Archives, control_plane: bool) -> Vec<&Artifact> {
    let more = if control_plane { &of.control_plane[..] } else { &[] };
    of.every_machine.iter().chain(more).collect()
}

/// A command that fails until the cluster's API answers at its endpoint.
fn ready() -> String {
    format!("{PROGRAMS}/kubectl get --raw=/readyz --request-timeout=5s")
}

fn mark_done(path: &str) -> [String; 2] {
    [format!("/usr/bin/mkdir -p {DONE}"), format!("/usr/bin/touch {path}")]
}
