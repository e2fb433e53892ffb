//! Derives the settings of add-ons from a cluster's record.

use std::collections::BTreeSet;

use cluster_core::{Cluster, PodNetwork, VolumeDriver};

use crate::{
    Cloud, GpuVendor, ImageSource, KubeletCertificates, LoadBalancing, Settings, StorageClass,
    Volumes,
};

/// The inputs of `settings` that a cluster's record does not contain.
#[derive(Clone, Debug)]
pub struct ClusterContext {
    /// The cloud and the cluster's credential for the cloud. With `None`, while the credential does not exist yet, no add-on that calls the
    /// cloud is asked for.
    pub cloud: Option<Cloud>,
    /// The id of the network from which Services get floating IPs.
    pub floating_network: Option<String>,
    /// The id of the nodes' subnet.
    pub subnet: Option<String>,
    /// The GPU vendors of the flavors of all node groups.
    pub gpus: BTreeSet<GpuVendor>,
    /// The source of images; the cluster's labels override the mirror and tags.
    pub images: ImageSource,
}

/// Returns the settings of the add-ons that the template and labels of `cluster` ask for.
///
/// As in Magnum, volumes need `volume_driver` `cinder` in the template, and the label `cinder_csi_enabled` must not be false.
pub fn settings(cluster: &Cluster, around: ClusterContext) -> Settings {
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use cluster_core::{ClusterParameters, Labels, NetworkDriver};
    use serde_json::json;

    use super::*;
    use crate::Credential;

    /// Compares the add-ons of a cluster with these labels, in a cloud and with NVIDIA GPUs, with `want`.
    #[track_caller]
    fn check(change: impl FnOnce(&mut ClusterParameters), labels: &[(&str, &str)], want: &[&str]) {
        let mut blueprint = ClusterParameters::new("fcos".to_owned());
        let labels = labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        blueprint.labels = Labels::try_from(labels.collect::<BTreeMap<_, _>>()).unwrap();
        change(&mut blueprint);
        let id = "7c9e6679-7425-40de-944b-e07fc1f90ae7";
        let cluster = json!({
            "id": id, "version": 1, "project": "p", "user": "u", "name": "blue", "template": id,
            "created_at": "2026-01-01T00:00:00Z", "asked_at": "2026-01-01T00:00:00Z",
            "blueprint": blueprint, "kubernetes": "v1.34.1", "desire": "exist", "credential": 1,
            "labels_compared": {"overridden": {}, "added": {}, "skipped": {}},
            "machine_addresses": {}, "nodes": [], "conditions": [],
        });
        let cluster: Cluster = serde_json::from_value(cluster).unwrap();
        let cloud = Cloud {
            auth_url: "https://keystone.example/v3".to_owned(),
            region: "RegionOne".to_owned(),
            credential: Credential { generation: 1, id: "c".to_owned(), secret: "s".into() },
            authorities: None,
        };
        let settings = settings(
            &cluster,
            ClusterContext {
                cloud: Some(cloud),
                floating_network: None,
                subnet: Some("subnet-1".to_owned()),
                gpus: BTreeSet::from([GpuVendor::Nvidia]),
                images: ImageSource::default(),
            },
        );
        let add_ons = crate::desired_add_ons(&settings).unwrap();
        let reported: Vec<String> =
            add_ons.iter().map(|it| format!("{} {}", it.name, it.version)).collect();
        assert_eq!(reported, want);
        let mirror = settings.images.mirror.unwrap_or_default();
        assert!(add_ons.iter().flat_map(|it| it.images()).all(|it| it.starts_with(&mirror)));
    }

    #[test]
    fn a_cluster_without_labels_gets_the_add_ons_that_magnum_installs() {
        let want = [
            "flannel v0.27.4",
            "openstack-cloud-controller-manager v1.34.1",
            "nvidia-device-plugin v0.17.4",
        ];
        check(|_| (), &[], &want);
    }

    #[test]
    fn the_template_and_its_labels_choose_the_add_ons() {
        check(
            |blueprint| {
                blueprint.volume_driver = Some(VolumeDriver::Cinder);
                // `pod_network=routes` leaves the network driver unused, so Calico is not refused.
                blueprint.network_driver = NetworkDriver::Calico;
            },
            &[
                ("pod_network", "routes"),
                ("cloud_provider_enabled", "false"),
                ("cinder_csi_plugin_tag", "v1.34.0"),
                ("gpu_plugin_enabled", "false"),
                ("metrics_server_enabled", "true"),
                ("container_infra_prefix", "mirror.example/k8s/"),
            ],
            &["cinder-csi v1.34.0", "metrics-server v0.8.1"],
        );
    }
}
