//! The settings of a test cluster that uses only programs and images of the mirror.

use std::collections::BTreeMap;
use std::fs;
use std::net::IpAddr;

use cluster_bootstrap::{
    Approval, Archives, Artifact, BootstrapToken, CgroupDriver, ClusterDns, ClusterSettings,
    Endpoint, Images, KubernetesVersion, Member, Name, Overrides, Pki, PodNetwork, Programs,
    Sha256, Source, Worker,
};
use serde_json::json;

use crate::clusterd::{NEWER, VERSION, in_mirror};
use crate::network::{HOST, cache};

/// The settings of a cluster with this number of control-plane members.
pub fn settings(
    name: &str,
    control_planes: u8,
    pki: Pki,
    token: BootstrapToken,
) -> ClusterSettings {
    ClusterSettings {
        name: Name::try_from(name).expect("a name"),
        version: KubernetesVersion::try_from(VERSION).expect("a version"),
        pods: "10.244.0.0/16".parse().expect("a range"),
        services: "10.96.0.0/16".parse().expect("a range"),
        domain: "cluster.local".to_owned(),
        endpoint: Endpoint { host: HOST.to_owned(), port: 6443 },
        also_known_as: vec![format!("api.{name}.example")],
        control_plane: (1..=control_planes).map(control_plane).collect(),
        pod_network: PodNetwork::HostRoutes,
        dns: ClusterDns::Absent,
        source: source(VERSION),
        token,
        token_hours: 24,
        pki,
        // Machines made of namespaces run no systemd.
        cgroups: CgroupDriver::Cgroupfs,
        approval: Approval::Automatic,
        external_cloud_provider: false,
        overrides: overrides(),
        extra: None,
    }
}

/// Sets the version of machines that will join.
pub fn set_version(cluster: &mut ClusterSettings, version: &str) {
    cluster.version = KubernetesVersion::try_from(version).expect("a version");
    cluster.source = source(version);
}

/// The control-plane machine of this number, counted from 1.
pub fn control_plane(number: u8) -> Member {
    machine(&format!("cp-{number}"), 10 + number)
}

/// The worker of this number, counted from 1.
pub fn worker(number: u8) -> Worker {
    let machine = machine(&format!("worker-{number}"), 20 + number);
    let labels = BTreeMap::from([("example.org/rack".to_owned(), format!("r{number}"))]);
    Worker { machine, labels, taints: Vec::new() }
}

fn machine(name: &str, last: u8) -> Member {
    let address: IpAddr = format!("10.99.0.{last}").parse().expect("an address");
    Member { name: Name::try_from(name).expect("a name"), address }
}

/// Settings for machines that share the kernel of the host: the host may have swap and little disk, and machines may not set its connection
/// tracking.
fn overrides() -> Overrides {
    let object = |value: serde_json::Value| value.as_object().cloned().unwrap_or_default();
    Overrides {
        kubelet: object(json!({
            "failSwapOn": false,
            "evictionHard": {"memory.available": "100Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
            "imageGCHighThresholdPercent": 100,
        })),
        kube_proxy: object(json!({
            "conntrack": {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
        })),
        ..Overrides::default()
    }
}

/// The programs and images of a version. Each machine has kube-proxy of both versions, because it runs the one of the cluster.
fn source(version: &str) -> Source {
    let folder = cache().join("kubernetes/mirror");
    let sums = fs::read_to_string(folder.join("SHA256SUMS"))
        .expect("there is a mirror: nodes.sh deps makes it");
    let etcd =
        fs::read_to_string(folder.join("ETCD_TAG")).expect("the mirror tells etcd's version");
    let artifact = |file: &str| {
        let lines = sums.lines().filter_map(|line| line.split_once("  "));
        let sum = lines.filter(|(_, name)| *name == file).map(|(sum, _)| sum).next();
        let sum = sum.unwrap_or_else(|| panic!("the mirror has no {file}"));
        Artifact {
            url: format!("http://{HOST}:8000/{file}").parse().expect("a URL"),
            sha256: Sha256::try_from(sum).expect("a sum"),
        }
    };
    let own = |file: &str| artifact(&in_mirror(version, file));
    let images =
        |names: &[&str]| -> Vec<_> { names.iter().map(|it| own(&format!("{it}.tar"))).collect() };
    let proxies = [VERSION, NEWER].map(|it| artifact(&in_mirror(it, "kube-proxy.tar")));
    Source {
        programs: Programs {
            kubeadm: own("kubeadm"),
            kubelet: own("kubelet"),
            kubectl: own("kubectl"),
            cni_plugins: Some(artifact("cni-plugins.tgz")),
        },
        images: Images {
            repository: "bedplate.invalid".to_owned(),
            etcd_tag: Some(etcd.trim().to_owned()),
            archives: Archives {
                every_machine: [images(&["pause", "tools"]), proxies.to_vec()].concat(),
                control_plane: images(&[
                    "kube-apiserver",
                    "kube-controller-manager",
                    "kube-scheduler",
                    "etcd",
                ]),
            },
        },
    }
}
