//! `[kubernetes]`: the programs and images of each version, and settings of Kubernetes components.

use std::collections::BTreeMap;

use cluster_addons::ImageSource;
use cluster_bootstrap::{
    Approval, Archives, Artifact, CgroupDriver, ClusterDns, Images, Overrides, Programs, Sha256,
    Source,
};
use cluster_conductor::KubernetesSettings;
use serde::Deserialize;
use serde_json::{Map, Value};
use url::Url;

/// The section `[kubernetes]`, parsed.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, try_from = "RawKubernetes")]
pub struct KubernetesConfig(pub KubernetesSettings);

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RawKubernetes {
    versions: BTreeMap<String, RawVersion>,
    cluster_dns: RawDns,
    cgroup_driver: RawCgroups,
    node_approval: RawApproval,
    /// Fields that replace those of `KubeletConfiguration`.
    kubelet: Map<String, Value>,
    /// Fields that replace those of `KubeProxyConfiguration`.
    kube_proxy: Map<String, Value>,
    add_on_images: RawImages,
}

/// The source of add-on images, if they do not come from their makers' registries.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RawImages {
    /// The registry and path that replace the registries of all images.
    mirror: Option<String>,
    /// Tags by image name.
    tags: BTreeMap<String, String>,
    /// Digests by image name and tag.
    digests: BTreeMap<String, String>,
}

impl Default for RawKubernetes {
    fn default() -> Self {
        RawKubernetes {
            versions: BTreeMap::new(),
            cluster_dns: RawDns::Coredns,
            cgroup_driver: RawCgroups::Systemd,
            node_approval: RawApproval::Clusterd,
            kubelet: Map::new(),
            kube_proxy: Map::new(),
            add_on_images: RawImages::default(),
        }
    }
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum RawDns {
    Coredns,
    None,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum RawCgroups {
    Systemd,
    Cgroupfs,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum RawApproval {
    Kubeadm,
    Clusterd,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawVersion {
    kubeadm: RawArtifact,
    kubelet: RawArtifact,
    kubectl: RawArtifact,
    cni_plugins: Option<RawArtifact>,
    #[serde(default = "upstream")]
    image_repository: String,
    etcd_tag: Option<String>,
    #[serde(default)]
    archives: Vec<RawArtifact>,
    #[serde(default)]
    control_plane_archives: Vec<RawArtifact>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawArtifact {
    url: Url,
    sha256: String,
}

fn upstream() -> String {
    "registry.k8s.io".to_owned()
}

impl TryFrom<RawKubernetes> for KubernetesConfig {
    type Error = String;

    fn try_from(raw: RawKubernetes) -> Result<Self, String> {
        let mut versions = BTreeMap::new();
        for (name, version) in raw.versions {
            let key = name.parse().map_err(|why| format!("versions: {why}"))?;
            let source = source(version).map_err(|why| format!("versions.\"{name}\".{why}"))?;
            versions.insert(key, source);
        }
        Ok(KubernetesConfig(KubernetesSettings {
            versions,
            dns: match raw.cluster_dns {
                RawDns::Coredns => ClusterDns::CoreDns,
                RawDns::None => ClusterDns::Absent,
            },
            cgroups: match raw.cgroup_driver {
                RawCgroups::Systemd => CgroupDriver::Systemd,
                RawCgroups::Cgroupfs => CgroupDriver::Cgroupfs,
            },
            approval: match raw.node_approval {
                RawApproval::Kubeadm => Approval::Automatic,
                RawApproval::Clusterd => Approval::External,
            },
            overrides: Overrides {
                kubelet: raw.kubelet,
                kube_proxy: raw.kube_proxy,
                ..Overrides::default()
            },
            images: ImageSource {
                mirror: raw.add_on_images.mirror,
                tags: raw.add_on_images.tags,
                digests: raw.add_on_images.digests,
            },
        }))
    }
}

fn source(raw: RawVersion) -> Result<Source, String> {
    let legal = |c: char| c.is_ascii_alphanumeric() || "-._:/[]".contains(c);
    if raw.image_repository.is_empty() || !raw.image_repository.chars().all(legal) {
        return Err("image_repository: must be a registry such as registry.k8s.io".to_owned());
    }
    Ok(Source {
        programs: Programs {
            kubeadm: artifact("kubeadm", raw.kubeadm)?,
            kubelet: artifact("kubelet", raw.kubelet)?,
            kubectl: artifact("kubectl", raw.kubectl)?,
            cni_plugins: raw.cni_plugins.map(|it| artifact("cni_plugins", it)).transpose()?,
        },
        images: Images {
            repository: raw.image_repository,
            etcd_tag: raw.etcd_tag,
            archives: Archives {
                every_machine: artifacts("archives", raw.archives)?,
                control_plane: artifacts("control_plane_archives", raw.control_plane_archives)?,
            },
        },
    })
}

fn artifacts(name: &str, raw: Vec<RawArtifact>) -> Result<Vec<Artifact>, String> {
    raw.into_iter().map(|it| artifact(name, it)).collect()
}

fn artifact(name: &str, raw: RawArtifact) -> Result<Artifact, String> {
    if !matches!(raw.url.scheme(), "http" | "https") {
        return Err(format!("{name}.url: must begin with http:// or https://"));
    }
    let sha256 = Sha256::try_from(raw.sha256.as_str());
    let sha256 = sha256.map_err(|why| format!("{name}.sha256: {why}"))?;
    Ok(Artifact { url: raw.url, sha256 })
}
