//! Reads a server's role in a cluster from its files, by kubeadm's conventions.

use std::collections::BTreeMap;

use base64::Engine;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use x509_parser::pem::parse_x509_pem;

use super::authorities::PollSettings;
use super::backups::Backups;
use super::certificates::ReportSettings;
use crate::guest::{GuestMachine, files};
use crate::object::{Fields, ReadFields};
use crate::world::stamp;

/// The names of every API server.
#[rustfmt::skip]
const CALLED: [&str; 6] = [
    "127.0.0.1", "localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local",
];

/// The role of a server in a cluster.
#[derive(Clone)]
pub(super) struct Layout {
    /// The name of the Kubernetes node.
    pub(super) name: String,
    /// The SHA-256 of the public key of the cluster's CA, in hex, as `kubeadm` pins it.
    pub(super) pin: String,
    /// The CA certificate as PEM. Empty if the files do not contain it.
    pub(super) authority: String,
    /// The key of the CA. Only control-plane members have it.
    pub(super) authority_key: Option<String>,
    /// The names and addresses of the API server, for its certificate.
    pub(super) called: Vec<String>,
    /// The release, such as `v1.20.2`. `None` if the files do not tell it.
    pub(super) version: Option<String>,
    /// The registry of the control plane's images.
    pub(super) repository: String,
    /// The tag of etcd's image.
    pub(super) etcd_tag: String,
    /// The bootstrap token of a member that has no certificate yet.
    pub(super) token: Option<String>,
    /// The settings for polling CA rotations. `None` if the member does not poll.
    pub(super) asks: Option<PollSettings>,
    /// The settings for reporting certificates. `None` if the member does not report any.
    pub(super) reports: Option<ReportSettings>,
    /// The settings for backups of etcd. `None` if the member does not poll for them.
    pub(super) backups: Option<Backups>,
    /// kubeadm's configurations of `init` and of the cluster. Null if the files have none.
    pub(super) init: Value,
    pub(super) cluster: Value,
    labels: Fields,
    taints: Vec<Value>,
}

impl Layout {
    /// Reads the layout. `None` if the files belong to no cluster.
    pub(super) fn read(machine: &GuestMachine, config: &Value) -> Result<Option<Layout>, String> {
        let files = files(config);
        let ending = |end: &str| {
            files.iter().find(|(path, _)| path.ends_with(end)).map(|(_, text)| text.clone())
        };
        let documents = documents(&files);
        let authority = ending("/pki/ca.crt").or_else(|| in_kubeconfig(&documents));
        let pin = match &authority {
            Some(pem) => Some(pin(pem).ok_or("the cluster's CA is not a certificate")?),
            None => pinned(&documents),
        };
        let Some(pin) = pin else { return Ok(None) };
        let authority_key = ending("/pki/ca.key");
        let of = |kind: &str| documents.iter().find(|document| document["kind"] == kind);
        let registration = of("InitConfiguration").or_else(|| of("JoinConfiguration"));
        let registration = registration.map(|document| &document["nodeRegistration"]);
        let cluster = of("ClusterConfiguration");
        let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
        let named = text(registration.map(|registration| &registration["name"]));
        let name = named.or_else(|| ending("/etc/hostname"));
        let name = name.as_deref().unwrap_or(&machine.name).trim().to_ascii_lowercase();
        let mut called: Vec<String> = machine.addresses.clone();
        called.extend(CALLED.map(str::to_owned));
        called.push(name.clone());
        if let Some(cluster) = cluster {
            let endpoint = cluster.text("controlPlaneEndpoint").rsplit_once(':');
            called.extend(endpoint.map(|(host, _)| host.trim_matches(['[', ']']).to_owned()));
            called.extend(cluster["apiServer"].texts("certSANs").map(str::to_owned));
        }
        let version = text(cluster.map(|it| &it["kubernetesVersion"]))
            .map(|version| format!("v{}", version.trim_start_matches('v')))
            .or_else(|| kubelet(config));
        let mut labels = Map::new();
        let mut taints = Vec::new();
        if let Some(registration) = registration {
            labels = node_labels(&registration["kubeletExtraArgs"]);
            taints = registration.list("taints").to_vec();
        }
        if authority_key.is_some() {
            labels.insert("node-role.kubernetes.io/control-plane".into(), json!(""));
            if registration.is_none_or(|registration| registration["taints"].is_null()) {
                let key = "node-role.kubernetes.io/control-plane";
                taints = vec![json!({"key": key, "effect": "NoSchedule"})];
            }
        }
        let repository = text(cluster.map(|it| &it["imageRepository"]));
        let etcd_tag = text(cluster.map(|it| &it["etcd"]["local"]["imageTag"]));
        let discovery = of("JoinConfiguration").map(|join| &join["discovery"]);
        let token = text(discovery.map(|it| &it["tlsBootstrapToken"]))
            .or_else(|| text(discovery.map(|it| &it["bootstrapToken"]["token"])));
        Ok(Some(Layout {
            name,
            pin,
            authority: authority.unwrap_or_default(),
            authority_key,
            called,
            version,
            repository: repository.unwrap_or_else(|| "registry.k8s.io".to_owned()),
            etcd_tag: etcd_tag.unwrap_or_else(|| "3.5.0-0".to_owned()),
            token,
            asks: PollSettings::read(&files),
            reports: ReportSettings::read(&files),
            backups: Backups::read(&files, config),
            init: of("InitConfiguration").cloned().unwrap_or_default(),
            cluster: cluster.cloned().unwrap_or_default(),
            labels,
            taints,
        }))
    }

    /// The Kubernetes node of this member, in a cluster of this release.
    pub(super) fn node(&self, machine: &GuestMachine, release: &str) -> Value {
        let version = self.version.as_deref().unwrap_or(release);
        let mut labels = json!({
            "kubernetes.io/hostname": self.name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64", "topology.kubernetes.io/zone": machine.zone,
        });
        for (key, value) in &self.labels {
            labels[key] = value.clone();
        }
        let inside = |address| json!({"type": "InternalIP", "address": address});
        let mut addresses: Vec<Value> = machine.addresses.iter().map(inside).collect();
        addresses.push(json!({"type": "Hostname", "address": self.name}));
        json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": {"name": self.name, "labels": labels, "annotations": {}},
            "spec": {"providerID": format!("openstack:///{}", machine.id), "taints": self.taints},
            "status": {
                "addresses": addresses,
                "capacity": {"cpu": "2", "memory": "4Gi", "pods": "110"},
                "allocatable": {"cpu": "2", "memory": "4Gi", "pods": "110"},
                "conditions": [{"type": "Ready", "status": "False", "reason": "KubeletNotReady", "message": "container runtime network not ready", "lastHeartbeatTime": stamp(), "lastTransitionTime": stamp()}],
                "nodeInfo": {
                    "kubeletVersion": version, "kubeProxyVersion": version, "osImage": "Fedora CoreOS (emulated)", "kernelVersion": "6.12.0",
                    "containerRuntimeVersion": "containerd://1.7.0", "architecture": "amd64", "operatingSystem": "linux", "machineID": machine.id.replace('-', ""),
                    "systemUUID": machine.id, "bootID": machine.id,
                },
            },
        })
    }
}

/// The release of the kubelet that a config fetches, taken from the URL. `None` if the URL does not contain it.
fn kubelet(config: &Value) -> Option<String> {
    let mut files = config["storage"]["files"].as_array()?.iter();
    let kubelet =
        files.find(|file| file["path"].as_str().is_some_and(|it| it.ends_with("/kubelet")));
    let is_release = |part: &&str| {
        let numbers: Vec<&str> = part.strip_prefix('v').unwrap_or_default().split('.').collect();
        numbers.len() == 3 && numbers.iter().all(|it| it.parse::<u32>().is_ok())
    };
    kubelet?["contents"]["source"].as_str()?.split('/').find(is_release).map(str::to_owned)
}

/// The labels among a kubelet's arguments: a map up to kubeadm's v1beta3, a list of pairs from v1beta4.
fn node_labels(arguments: &Value) -> Fields {
    let pairs = arguments.as_array().into_iter().flatten();
    let listed =
        pairs.filter(|pair| pair["name"] == "node-labels").find_map(|pair| pair["value"].as_str());
    let text = arguments["node-labels"].as_str().or(listed).unwrap_or_default();
    text.split(',')
        .filter_map(|label| label.split_once('='))
        .map(|(key, value)| (key.to_owned(), json!(value)))
        .collect()
}

/// The CA in a kubeconfig.
fn in_kubeconfig(documents: &[Value]) -> Option<String> {
    let kubeconfigs = documents.iter().filter(|document| document["kind"] == "Config");
    let mut data = kubeconfigs.filter_map(|config| {
        config["clusters"][0]["cluster"]["certificate-authority-data"].as_str()
    });
    let bytes = base64::engine::general_purpose::STANDARD.decode(data.next()?.trim()).ok()?;
    String::from_utf8(bytes).ok()
}

/// The CA pin in a configuration of `kubeadm join`.
fn pinned(documents: &[Value]) -> Option<String> {
    let mut joins = documents.iter().filter(|document| document["kind"] == "JoinConfiguration");
    let hash =
        joins.find_map(|join| join["discovery"]["bootstrapToken"]["caCertHashes"][0].as_str());
    hash?.strip_prefix("sha256:").map(str::to_ascii_lowercase)
}

/// The SHA-256 of a certificate's public key.
pub(super) fn pin(pem: &str) -> Option<String> {
    let (_, pem) = parse_x509_pem(pem.as_bytes()).ok()?;
    let certificate = pem.parse_x509().ok()?;
    let digest = Sha256::digest(certificate.tbs_certificate.subject_pki.raw);
    Some(digest.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// All YAML documents with a kind.
fn documents(files: &BTreeMap<String, String>) -> Vec<Value> {
    let texts = files.values().filter(|text| text.contains("kind:") || text.contains("\"kind\""));
    let parts = texts.flat_map(|text| text.split("\n---"));
    let parsed = parts
        .filter_map(|part| serde_saphyr::from_str::<Value>(part.trim_start_matches("---")).ok());
    parsed.filter(|document| document["kind"].is_string()).collect()
}
