//! From what was asked of a cluster to its add-ons' settings.

use std::collections::BTreeSet;

use cluster_core::{Cluster, PodNetwork, VolumeDriver};

use crate::{
    Cloud, GpuVendor, ImageSource, KubeletCertificates, LoadBalancing, Settings, StorageClass,
    Volumes,
};

/// What a cluster's record does not tell.
#[derive(Clone, Debug)]
pub struct Surroundings {
    /// The cloud, and the cluster's credential for it; none, where there is none yet: then nothing that needs it is wanted.
    pub cloud: Option<Cloud>,
    /// The network that Services' floating addresses come from, by id.
    pub floating_network: Option<String>,
    /// The subnet of nodes, by id.
    pub subnet: Option<String>,
    /// Whose GPUs the flavors of its groups have.
    pub gpus: BTreeSet<GpuVendor>,
    /// Where images come from, if the cluster's labels do not say.
    pub images: ImageSource,
}

/// What add-ons `cluster` is to have: its template's drivers and its labels say it.
///
/// Volumes are wanted where the template's `volume_driver` is `cinder` and `cinder_csi_enabled` is not false, as Magnum has it.
pub fn settings(cluster: &Cluster, around: Surroundings) -> Settings {
    let blueprint = &cluster.blueprint;
    let labels = blueprint.labels.settings();
    let mut images = around.images;
    if let Some(registry) = &labels.registry {
        images.mirror = Some(registry.clone());
    }
    let tags = labels.image_tags.iter().map(|(image, tag)| ((*image).to_owned(), tag.clone()));
    images.tags.extend(tags);
    let with_cloud = around.cloud.is_some();
    let balancing = || LoadBalancing {
        floating_network: around.floating_network,
        subnet: around.subnet,
        provider: labels.provider.clone(),
        algorithm: labels.algorithm,
    };
    let volumes = || Volumes {
        classes: vec![StorageClass {
            name: "cinder".to_owned(),
            volume_type: None,
            is_default: true,
        }],
        ignore_zones: false,
        snapshots: false,
    };
    let wants_volumes = blueprint.volume_driver == Some(VolumeDriver::Cinder) && labels.cinder_csi;
    Settings {
        cluster: cluster.id.to_string(),
        kubernetes: cluster.kubernetes,
        images,
        pods: labels.pod_cidr,
        network: match labels.pod_network {
            PodNetwork::Driver => Some(blueprint.network_driver),
            PodNetwork::Routes => None,
        },
        cloud: around.cloud,
        cloud_controller: (with_cloud && labels.cloud_provider).then(balancing),
        volumes: (with_cloud && wants_volumes).then(volumes),
        gpus: if labels.gpu_plugin { around.gpus } else { BTreeSet::new() },
        metrics: labels.metrics_server.then_some(KubeletCertificates::SelfSigned),
    }
}
