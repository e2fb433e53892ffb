//! kubeadm's configuration files, in the API version that each kubeadm release reads.
//!
//! The files are written as JSON, which is valid YAML, so that YAML never reads a text as a number or a boolean.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::ca_rotation::SIGNING;
use crate::containerd::pause_image;
use crate::settings::{CgroupDriver, ClusterDns};
use crate::version::KubeadmApi;
use crate::{ClusterSettings, Member, Worker};

const RUNTIME: &str = "unix:///run/containerd/containerd.sock";

/// A patch of etcd's static pod that removes the request for disk space.
pub(crate) const ETCD_WITHOUT_DISK: &str = r#"{"spec":{"containers":[{"name":"etcd","resources":{"requests":{"ephemeral-storage":null}}}]}}
"#;

/// The configuration of `kubeadm init phase` on a control-plane member. `upload-config` stores this configuration in the cluster for
/// upgrades and workers.
pub(crate) fn init(cluster: &ClusterSettings, machine: &Member) -> String {
    let documents = [
        init_configuration(cluster, machine),
        cluster_configuration(cluster, &[]),
        kubelet_configuration(cluster),
        kube_proxy_configuration(cluster),
    ];
    joined(&documents)
}

/// The configuration of `init phase etcd`: the configuration of [`init`] with the first members of etcd. The uploaded configuration leaves
/// the members out, because a replaced member would make the list wrong.
pub(crate) fn init_etcd(cluster: &ClusterSettings, machine: &Member) -> String {
    let members = [
        ("initial-cluster", cluster.etcd_members()),
        ("initial-cluster-state", "new".to_owned()),
        ("initial-cluster-token", cluster.name.to_string()),
    ];
    joined(&[init_configuration(cluster, machine), cluster_configuration(cluster, &members)])
}

/// The configuration of `kubeadm join` on a worker.
pub(crate) fn join(cluster: &ClusterSettings, worker: &Worker) -> String {
    let labels: Vec<String> =
        worker.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let mut registration = registration(cluster, &worker.machine, &labels.join(","));
    let taint =
        |it: &crate::Taint| json!({"key": it.key, "value": it.value, "effect": it.effect.as_str()});
    registration["taints"] = worker.taints.iter().map(taint).collect();
    joined(&[join_configuration(cluster, registration)])
}

/// The configuration of `kubeadm join` on a member that joins an existing control plane.
pub(crate) fn join_control_plane(cluster: &ClusterSettings, machine: &Member) -> String {
    let mut join = join_configuration(cluster, registration(cluster, machine, ""));
    join["controlPlane"] = json!({"localAPIEndpoint": local_endpoint(cluster, machine)});
    joined(&[join])
}

/// The configuration of `kubeadm init phase certs apiserver` on a member that joins the control plane: the addresses and names in its
/// certificate.
pub(crate) fn certificates(cluster: &ClusterSettings, machine: &Member) -> String {
    joined(&[init_configuration(cluster, machine), cluster_configuration(cluster, &[])])
}

/// The configuration that a member uploads before it joins the control plane.
///
/// The upload also records the address and the container runtime of the member that the configuration names (up to 1.21 in the list of API
/// servers, later in an annotation of the Kubernetes node). The joining member has neither yet, so the configuration names another member.
pub(crate) fn upload(cluster: &ClusterSettings, machine: &Member) -> String {
    let other = cluster.control_plane.iter().find(|it| it.name != machine.name);
    init(cluster, other.unwrap_or(machine))
}

fn join_configuration(cluster: &ClusterSettings, registration: Value) -> Value {
    json!({
        "apiVersion": api(cluster).as_str(),
        "kind": "JoinConfiguration",
        "discovery": {"bootstrapToken": {
            "apiServerEndpoint": cluster.endpoint.authority(),
            "token": cluster.token.expose(),
            "caCertHashes": [format!("sha256:{}", cluster.pki.cluster.public_key_sha256)],
        }},
        "nodeRegistration": registration,
    })
}

fn local_endpoint(cluster: &ClusterSettings, machine: &Member) -> Value {
    json!({"advertiseAddress": machine.address, "bindPort": cluster.endpoint.port})
}

fn init_configuration(cluster: &ClusterSettings, machine: &Member) -> Value {
    json!({
        "apiVersion": api(cluster).as_str(),
        "kind": "InitConfiguration",
        "bootstrapTokens": [{
            "token": cluster.token.expose(),
            "ttl": format!("{}h0m0s", cluster.token_hours),
            "usages": ["signing", "authentication"],
            "groups": ["system:bootstrappers:kubeadm:default-node-token"],
        }],
        "localAPIEndpoint": local_endpoint(cluster, machine),
        "nodeRegistration": registration(cluster, machine, ""),
    })
}

fn cluster_configuration(cluster: &ClusterSettings, etcd: &[(&str, String)]) -> Value {
    let overrides = &cluster.overrides;
    let mut manager = vec![("cluster-signing-cert-file", SIGNING.to_owned())];
    manager.retain(|(name, _)| !overrides.controller_manager.contains_key(*name));
    manager.extend(pairs(&overrides.controller_manager));
    if cluster.external_cloud_provider {
        manager.push(("cloud-provider", "external".to_owned()));
    }
    let mut local = json!({"dataDir": "/var/lib/etcd"});
    if let Some(tag) = &cluster.source.images.etcd_tag {
        local["imageTag"] = json!(tag);
    }
    if !etcd.is_empty() {
        local["extraArgs"] = arguments(cluster, etcd.iter().cloned());
    }
    let host = &cluster.endpoint.host;
    let others = cluster.also_known_as.iter().filter(|it| *it != host);
    let names: Vec<&String> = [host].into_iter().chain(others).collect();
    json!({
        "apiVersion": api(cluster).as_str(),
        "kind": "ClusterConfiguration",
        "clusterName": cluster.name.as_str(),
        "kubernetesVersion": cluster.version.to_string(),
        "controlPlaneEndpoint": cluster.endpoint.authority(),
        "imageRepository": cluster.source.images.repository,
        "networking": {
            "podSubnet": cluster.pods.to_string(),
            "serviceSubnet": cluster.services.to_string(),
            "dnsDomain": cluster.domain,
        },
        "apiServer": {"certSANs": names, "extraArgs": arguments(cluster, pairs(&overrides.api_server))},
        "controllerManager": {"extraArgs": arguments(cluster, manager.into_iter())},
        "scheduler": {"extraArgs": arguments(cluster, pairs(&overrides.scheduler))},
        "etcd": {"local": local},
    })
}

fn kubelet_configuration(cluster: &ClusterSettings) -> Value {
    let driver = match cluster.cgroups {
        CgroupDriver::Systemd => "systemd",
        CgroupDriver::Cgroupfs => "cgroupfs",
    };
    let configuration = json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "cgroupDriver": driver,
        "rotateCertificates": true,
    });
    replaced(configuration, &cluster.overrides.kubelet)
}

fn kube_proxy_configuration(cluster: &ClusterSettings) -> Value {
    let configuration = json!({
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "iptables",
    });
    replaced(configuration, &cluster.overrides.kube_proxy)
}

fn registration(cluster: &ClusterSettings, machine: &Member, labels: &str) -> Value {
    let mut extra = vec![("node-ip", machine.address.to_string())];
    if cluster.external_cloud_provider {
        extra.push(("cloud-provider", "external".to_owned()));
    }
    if !labels.is_empty() {
        extra.push(("node-labels", labels.to_owned()));
    }
    if !cluster.version.minor_version().knows_pinned_images() {
        extra.push(("pod-infra-container-image", pause_image(cluster)));
    }
    let asked = &cluster.overrides.kubelet_arguments;
    extra.retain(|(name, _)| !asked.contains_key(*name));
    extra.extend(pairs(asked));
    json!({
        "name": machine.name.as_str(),
        "criSocket": RUNTIME,
        "kubeletExtraArgs": arguments(cluster, extra.into_iter()),
    })
}

fn pairs(of: &BTreeMap<String, String>) -> impl Iterator<Item = (&str, String)> {
    of.iter().map(|(name, value)| (name.as_str(), value.clone()))
}

/// Command-line arguments in the form of the API version: a map up to v1beta3, a list of pairs from v1beta4.
fn arguments<'a>(
    cluster: &ClusterSettings,
    pairs: impl Iterator<Item = (&'a str, String)>,
) -> Value {
    match api(cluster) {
        KubeadmApi::V1Beta2 | KubeadmApi::V1Beta3 => {
            Value::Object(pairs.map(|(name, value)| (name.to_owned(), json!(value))).collect())
        }
        KubeadmApi::V1Beta4 => {
            pairs.map(|(name, value)| json!({"name": name, "value": value})).collect()
        }
    }
}

fn api(cluster: &ClusterSettings) -> KubeadmApi {
    cluster.version.minor_version().api
}

fn replaced(mut configuration: Value, overrides: &Map<String, Value>) -> Value {
    for (field, value) in overrides {
        configuration[field] = value.clone();
    }
    configuration
}

fn joined(documents: &[Value]) -> String {
    let text = |it: &Value| format!("{it:#}\n");
    documents.iter().map(text).collect::<Vec<_>>().join("---\n")
}

/// The add-on phases of kubeadm that this cluster runs.
pub(crate) fn addons(cluster: &ClusterSettings) -> &'static [&'static str] {
    match cluster.dns {
        ClusterDns::CoreDns => &["kube-proxy", "coredns"],
        ClusterDns::Absent => &["kube-proxy"],
    }
}
