//! systemd units. Each does nothing once its work is done, and may fail and be started again.

use crate::kubeadm;
use crate::pod_routes;
use crate::settings::{Approval, PodNetwork};
use crate::{Archives, Artifact, Cluster};

/// Where programs that are not the image's are, on Fedora CoreOS too.
pub(crate) const PROGRAMS: &str = "/usr/local/bin";
/// kubeadm's configuration on a control-plane machine.
pub(crate) const INIT: &str = "/etc/bedplate/init.yaml";
/// The same with etcd's first members.
pub(crate) const INIT_ETCD: &str = "/etc/bedplate/init-etcd.yaml";
/// kubeadm's configuration on a worker.
pub(crate) const JOIN: &str = "/etc/bedplate/join.yaml";
/// The same where it joins the control plane, as far as its API server's certificate is concerned.
pub(crate) const CERTIFICATES: &str = "/etc/bedplate/certificates.yaml";
/// What kubeadm is to change of etcd's static pod, in `PATCHES`.
pub(crate) const ETCD_PATCH: &str = "/etc/bedplate/patches/etcd.json";
const PATCHES: &str = "/etc/bedplate/patches";
/// Where what is fetched waits to be unpacked.
pub(crate) const FETCHED: &str = "/var/lib/bedplate/fetched";
/// What kubelets may see for pod routes.
pub(crate) const POD_ROUTES_ACCESS: &str = "/etc/bedplate/pod-routes-access.json";
/// Finds the machine's volumes.
pub(crate) const VOLUMES: &str = "/etc/bedplate/volumes";
/// The unit that does.
pub(crate) const VOLUMES_UNIT: &str = "bedplate-volumes.service";
/// Files that say what was done.
const DONE: &str = "/var/lib/bedplate/done";

/// What lets whoever has a token become a node (kubernetes, cmd/kubeadm/app/constants: NodeAutoApproveBootstrapClusterRoleBinding). What
/// lets nodes renew their own certificates stays.
const AUTOMATIC_APPROVAL: &str = "kubeadm:node-autoapprove-bootstrap";

/// A unit that runs commands once in a machine's life.
struct Once<'a> {
    name: &'a str,
    description: &'a str,
    after: &'a [&'a str],
    unless: String,
    commands: Vec<String>,
}

impl Once<'_> {
    fn text(&self) -> String {
        let Once { name: _, description, after, unless, commands } = self;
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
const CONTROL_PLANE: &str = "bedplate-control-plane.service";

/// Unpacks what was fetched: CNI plugins and images. None where nothing is.
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
    commands.extend(finish(&unless));
    commands.push(format!("/usr/bin/rm -rf {FETCHED}"));
    let description = "CNI plugins and images, as they were fetched";
    Some(
        Once { name: UNPACK, description, after: &["containerd.service"], unless, commands }
            .named(),
    )
}

/// Finds the volumes of these tags, at each boot.
pub(crate) fn volumes(tags: &str) -> (String, String) {
    let unless = "/run/bedplate/volumes/found".to_owned();
    let commands = vec![format!("/bin/bash {VOLUMES} {tags}"), format!("/usr/bin/touch {unless}")];
    let description = "The volumes of this machine";
    Once { name: VOLUMES_UNIT, description, after: &[], unless, commands }.named()
}

/// What every control-plane machine does by itself: nothing of it waits for another machine.
pub(crate) fn control_plane(cluster: &Cluster) -> (String, String) {
    let phase = |phase: &str| format!("{PROGRAMS}/kubeadm init phase {phase} --config={INIT}");
    let unless = format!("{DONE}/control-plane");
    let mut commands = vec![
        phase("certs all"),
        phase("kubeconfig all"),
        format!("{PROGRAMS}/kubeadm init phase etcd local --config={INIT_ETCD}"),
        phase("control-plane all"),
        phase("kubelet-start"),
    ];
    commands.extend(finish(&unless));
    let description = format!("Control plane of {}", cluster.name);
    let after = ["containerd.service", UNPACK];
    Once { name: CONTROL_PLANE, description: &description, after: &after, unless, commands }.named()
}

/// What one machine does for the cluster, as soon as the API answers.
pub(crate) fn once(cluster: &Cluster) -> (String, String) {
    let phase = |phase: &str| format!("{PROGRAMS}/kubeadm init phase {phase} --config={INIT}");
    let mut commands = vec![ready(), phase("upload-config all"), phase("bootstrap-token")];
    if cluster.approval == Approval::Elsewhere {
        commands.push(format!(
            "{PROGRAMS}/kubectl delete clusterrolebinding --ignore-not-found {AUTOMATIC_APPROVAL}"
        ));
    }
    commands.extend(kubeadm::addons(cluster).iter().map(|addon| phase(&format!("addon {addon}"))));
    if cluster.pod_network == PodNetwork::HostRoutes {
        commands.push(format!("{PROGRAMS}/kubectl apply -f {POD_ROUTES_ACCESS}"));
    }
    let unless = format!("{DONE}/once");
    commands.extend(finish(&unless));
    let description = format!("What is done once for {}", cluster.name);
    let after = [CONTROL_PLANE];
    let name = "bedplate-once.service";
    Once { name, description: &description, after: &after, unless, commands }.named()
}

/// Labels and taints a control-plane machine's node, as soon as there is one. What `upload-config kubelet` uploads is there already, or
/// the same: it also notes the runtime's socket at this machine's node, and `kubeadm upgrade` fails without.
pub(crate) fn mark() -> (String, String) {
    let phase = |phase: &str| format!("{PROGRAMS}/kubeadm init phase {phase} --config={INIT}");
    let unless = format!("{DONE}/mark");
    let mut commands = vec![
        ready(),
        phase("mark-control-plane"),
        phase("upload-config kubelet"),
        phase("kubelet-finalize all"),
    ];
    commands.extend(finish(&unless));
    let description = "Node of the control plane";
    Once { name: "bedplate-mark.service", description, after: &[CONTROL_PLANE], unless, commands }
        .named()
}

/// Makes a worker a node. Done when the kubelet has credentials of its own: from then on kubeadm would refuse.
pub(crate) fn join(cluster: &Cluster) -> (String, String) {
    let commands = vec![format!("{PROGRAMS}/kubeadm join --config={JOIN} --skip-phases=preflight")];
    let description = format!("Join {}", cluster.name);
    let after = ["containerd.service", UNPACK];
    let unless = "/etc/kubernetes/kubelet.conf".to_owned();
    Once {
        name: "bedplate-join.service",
        description: &description,
        after: &after,
        unless,
        commands,
    }
    .named()
}

/// Makes a machine one more of a control plane that is there already: first a node, as a worker becomes one, then a member of etcd. Two
/// units, because kubeadm would refuse to do the first part twice.
pub(crate) fn join_control_plane(cluster: &Cluster) -> [(String, String); 2] {
    const NODE: &str = "bedplate-join.service";
    let phase = |phase: &str| format!("{PROGRAMS}/kubeadm join phase {phase} --config={JOIN}");
    let description = format!("Join {}", cluster.name);
    // By what was uploaded when the cluster was founded, this machine's own addresses outside would not be in its certificate. What is
    // there is kept.
    let certificate =
        format!("{PROGRAMS}/kubeadm init phase certs apiserver --config={CERTIFICATES}");
    let commands = vec![certificate, phase("control-plane-prepare all"), phase("kubelet-start")];
    let unless = "/etc/kubernetes/kubelet.conf".to_owned();
    let after = ["containerd.service", UNPACK];
    let node = Once { name: NODE, description: &description, after: &after, unless, commands };

    let description = format!("Join the control plane of {}", cluster.name);
    let unless = format!("{DONE}/control-plane");
    let mut commands = vec![ready()];
    if cluster.version.traits().etcd_asks_for_disk() {
        let etcd = phase("control-plane-join etcd");
        commands.push(format!("{etcd} --experimental-patches={PATCHES}"));
        commands.push(phase("control-plane-join update-status"));
        commands.push(phase("control-plane-join mark-control-plane"));
    } else {
        commands.push(phase("control-plane-join all"));
    }
    commands.extend(finish(&unless));
    let member =
        Once { name: CONTROL_PLANE, description: &description, after: &[NODE], unless, commands };
    [node.named(), member.named()]
}

/// The kubelet, as upstream's packages run it. It cannot start before kubeadm has configured it, and is tried until then; an order
/// between the two would be a deadlock, for kubeadm starts it and waits.
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

/// How kubeadm wants the kubelet started (kubernetes, build/debs/10-kubeadm.conf), `KUBELET_EXTRA_ARGS` being the image's and an
/// administrator's.
pub(crate) const KUBELET_KUBEADM: &str = r#"[Service]
Environment="KUBELET_KUBECONFIG_ARGS=--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf --kubeconfig=/etc/kubernetes/kubelet.conf"
Environment="KUBELET_CONFIG_ARGS=--config=/var/lib/kubelet/config.yaml"
EnvironmentFile=-/var/lib/kubelet/kubeadm-flags.env
EnvironmentFile=-/etc/sysconfig/kubelet
ExecStart=
ExecStart=/usr/local/bin/kubelet $KUBELET_KUBECONFIG_ARGS $KUBELET_CONFIG_ARGS $KUBELET_KUBEADM_ARGS $KUBELET_EXTRA_ARGS
"#;

/// The unit of pod routes.
pub(crate) fn pod_routes(node: &crate::Name) -> (String, String) {
    ("bedplate-pod-routes.service".to_owned(), pod_routes::unit(node))
}

/// Where an image's archive is until it is imported.
pub(crate) fn image_path(artifact: &Artifact) -> String {
    format!("{FETCHED}/{}.tar", artifact.sha256)
}

/// The archives that a machine needs.
pub(crate) fn archives(of: &Archives, control_plane: bool) -> Vec<&Artifact> {
    let more = if control_plane { &of.control_plane[..] } else { &[] };
    of.every_machine.iter().chain(more).collect()
}

/// Fails until the API answers through its endpoint.
fn ready() -> String {
    format!("{PROGRAMS}/kubectl get --raw=/readyz --request-timeout=5s")
}

fn finish(path: &str) -> [String; 2] {
    [format!("/usr/bin/mkdir -p {DONE}"), format!("/usr/bin/touch {path}")]
}
