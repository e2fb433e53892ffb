//! The version of each add-on for each minor version of Kubernetes.

use cluster_core::KubernetesVersion;

use crate::image::Image;

/// The add-on versions for one minor version of Kubernetes.
pub(crate) struct AddOnVersions {
    minor: u16,
    /// The release of cloud-provider-openstack for this minor version: the cloud controller manager and Cinder's CSI driver.
    cloud_provider: &'static str,
    attacher: &'static str,
    provisioner: &'static str,
    resizer: &'static str,
    snapshotter: &'static str,
    liveness_probe: &'static str,
    registrar: &'static str,
    metrics_server: &'static str,
}

// The entry for metrics-server in the first row is never used (`AddOnError::MetricsTooEarly`).
// Sources: kubernetes/cloud-provider-openstack, manifests/ of the last release for each minor version; kubernetes-sigs/metrics-server,
// README.md: compatibility. There is no cloud-provider-openstack for 1.37 yet; a cloud controller manager may be one minor version older than the
// API server (kubernetes.io/releases/version-skew-policy).
#[rustfmt::skip]
const MINORS: &[AddOnVersions] = &[
    AddOnVersions { minor: 20, cloud_provider: "v1.20.0", attacher: "v2.2.1", provisioner: "v1.6.1", resizer: "v0.5.1", snapshotter: "v2.1.3", liveness_probe: "v2.1.0", registrar: "v1.3.0", metrics_server: "v0.5.2" },
    AddOnVersions { minor: 21, cloud_provider: "v1.21.0", attacher: "v3.1.0", provisioner: "v2.1.1", resizer: "v1.1.0", snapshotter: "v2.1.3", liveness_probe: "v2.1.0", registrar: "v1.3.0", metrics_server: "v0.5.2" },
    AddOnVersions { minor: 22, cloud_provider: "v1.22.0", attacher: "v3.1.0", provisioner: "v2.2.0", resizer: "v1.1.0", snapshotter: "v4.0.0", liveness_probe: "v2.2.0", registrar: "v2.1.0", metrics_server: "v0.5.2" },
    AddOnVersions { minor: 23, cloud_provider: "v1.23.0", attacher: "v3.3.0", provisioner: "v3.0.0", resizer: "v1.3.0", snapshotter: "v4.2.1", liveness_probe: "v2.5.0", registrar: "v2.4.0", metrics_server: "v0.5.2" },
    AddOnVersions { minor: 24, cloud_provider: "v1.24.6", attacher: "v3.4.0", provisioner: "v3.1.0", resizer: "v1.4.0", snapshotter: "v5.0.1", liveness_probe: "v2.6.0", registrar: "v2.5.0", metrics_server: "v0.5.2" },
    AddOnVersions { minor: 25, cloud_provider: "v1.25.6", attacher: "v3.4.0", provisioner: "v3.1.0", resizer: "v1.4.0", snapshotter: "v6.0.1", liveness_probe: "v2.7.0", registrar: "v2.5.1", metrics_server: "v0.6.4" },
    AddOnVersions { minor: 26, cloud_provider: "v1.26.4", attacher: "v4.0.0", provisioner: "v3.3.0", resizer: "v1.4.0", snapshotter: "v6.1.0", liveness_probe: "v2.8.0", registrar: "v2.6.2", metrics_server: "v0.6.4" },
    AddOnVersions { minor: 27, cloud_provider: "v1.27.3", attacher: "v4.2.0", provisioner: "v3.4.1", resizer: "v1.7.0", snapshotter: "v6.2.1", liveness_probe: "v2.9.0", registrar: "v2.6.3", metrics_server: "v0.7.2" },
    AddOnVersions { minor: 28, cloud_provider: "v1.28.3", attacher: "v4.2.0", provisioner: "v3.4.1", resizer: "v1.8.0", snapshotter: "v6.2.1", liveness_probe: "v2.9.0", registrar: "v2.6.3", metrics_server: "v0.7.2" },
    AddOnVersions { minor: 29, cloud_provider: "v1.29.1", attacher: "v4.4.2", provisioner: "v3.6.2", resizer: "v1.9.2", snapshotter: "v6.3.2", liveness_probe: "v2.11.0", registrar: "v2.9.2", metrics_server: "v0.7.2" },
    AddOnVersions { minor: 30, cloud_provider: "v1.30.3", attacher: "v4.4.2", provisioner: "v3.6.2", resizer: "v1.9.2", snapshotter: "v6.3.2", liveness_probe: "v2.11.0", registrar: "v2.9.2", metrics_server: "v0.7.2" },
    AddOnVersions { minor: 31, cloud_provider: "v1.31.4", attacher: "v4.4.2", provisioner: "v3.6.2", resizer: "v1.9.2", snapshotter: "v6.3.2", liveness_probe: "v2.11.0", registrar: "v2.9.2", metrics_server: "v0.8.1" },
    AddOnVersions { minor: 32, cloud_provider: "v1.32.1", attacher: "v4.7.0", provisioner: "v5.1.0", resizer: "v1.12.0", snapshotter: "v8.1.0", liveness_probe: "v2.14.0", registrar: "v2.12.0", metrics_server: "v0.8.1" },
    AddOnVersions { minor: 33, cloud_provider: "v1.33.1", attacher: "v4.7.0", provisioner: "v5.1.0", resizer: "v1.12.0", snapshotter: "v8.1.0", liveness_probe: "v2.14.0", registrar: "v2.12.0", metrics_server: "v0.8.1" },
    AddOnVersions { minor: 34, cloud_provider: "v1.34.1", attacher: "v4.10.0", provisioner: "v5.3.0", resizer: "v1.14.0", snapshotter: "v8.3.0", liveness_probe: "v2.17.0", registrar: "v2.15.0", metrics_server: "v0.8.1" },
    AddOnVersions { minor: 35, cloud_provider: "v1.35.0", attacher: "v4.10.0", provisioner: "v5.3.0", resizer: "v1.14.0", snapshotter: "v8.4.0", liveness_probe: "v2.17.0", registrar: "v2.15.0", metrics_server: "v0.8.1" },
    AddOnVersions { minor: 36, cloud_provider: "v1.36.0", attacher: "v4.10.0", provisioner: "v5.3.0", resizer: "v1.14.0", snapshotter: "v8.4.0", liveness_probe: "v2.17.0", registrar: "v2.15.0", metrics_server: "v0.8.1" },
    AddOnVersions { minor: 37, cloud_provider: "v1.36.0", attacher: "v4.10.0", provisioner: "v5.3.0", resizer: "v1.14.0", snapshotter: "v8.4.0", liveness_probe: "v2.17.0", registrar: "v2.15.0", metrics_server: "v0.8.1" },
];

/// The registry of Kubernetes' storage group.
const STORAGE: &str = "registry.k8s.io/sig-storage";

impl AddOnVersions {
    /// Returns the row for `version`. A version outside of the table gets the nearest row.
    pub(crate) fn of(version: KubernetesVersion) -> &'static AddOnVersions {
        let first = MINORS[0].minor;
        let last = MINORS.len() - 1;
        &MINORS[usize::from(version.minor.saturating_sub(first)).min(last)]
    }

    pub(crate) fn cloud_controller(&self) -> Image {
        let registry = self.cloud_provider_registry();
        Image::new(registry, "openstack-cloud-controller-manager", self.cloud_provider)
    }

    pub(crate) fn cinder_csi(&self) -> Image {
        Image::new(self.cloud_provider_registry(), "cinder-csi-plugin", self.cloud_provider)
    }

    fn cloud_provider_registry(&self) -> &'static str {
        if self.minor < 25 { "docker.io/k8scloudprovider" } else { "registry.k8s.io/provider-os" }
    }

    pub(crate) fn attacher(&self) -> Image {
        Image::new(STORAGE, "csi-attacher", self.attacher)
    }

    pub(crate) fn provisioner(&self) -> Image {
        Image::new(STORAGE, "csi-provisioner", self.provisioner)
    }

    pub(crate) fn resizer(&self) -> Image {
        Image::new(STORAGE, "csi-resizer", self.resizer)
    }

    pub(crate) fn snapshotter(&self) -> Image {
        Image::new(STORAGE, "csi-snapshotter", self.snapshotter)
    }

    pub(crate) fn liveness_probe(&self) -> Image {
        Image::new(STORAGE, "livenessprobe", self.liveness_probe)
    }

    pub(crate) fn registrar(&self) -> Image {
        Image::new(STORAGE, "csi-node-driver-registrar", self.registrar)
    }

    pub(crate) fn metrics_server(&self) -> Image {
        Image::new("registry.k8s.io/metrics-server", "metrics-server", self.metrics_server)
    }

    /// Whether Cinder's driver needs its node's name as an argument: up to 1.21 the argument is required, later drivers ignore it.
    pub(crate) fn names_its_node(&self) -> bool {
        self.minor <= 21
    }

    /// Whether the driver on a node attaches and mounts without calling the cloud (cmd/cinder-csi-plugin: from 1.32 only the controller
    /// makes a client). Nodes then do not need the credential.
    pub(crate) fn nodes_need_no_cloud(&self) -> bool {
        self.minor >= 32
    }

    /// Arguments that csi-provisioner knows from 2.2 on: a default file system, and metadata that names the claim of a volume.
    pub(crate) fn provisioner_arguments(&self) -> &'static [&'static str] {
        if self.minor <= 21 { &[] } else { &["--default-fstype=ext4", "--extra-create-metadata"] }
    }

    /// The timeout argument of csi-resizer, which was renamed in 1.0.
    pub(crate) fn resizer_timeout(&self) -> &'static str {
        if self.minor <= 20 { "--csiTimeout=3m" } else { "--timeout=3m" }
    }

    /// The kubelet resource that metrics-server reads: `nodes/stats` before 0.6, `nodes/metrics` since.
    pub(crate) fn kubelet_resource(&self) -> &'static str {
        if self.minor <= 24 { "nodes/stats" } else { "nodes/metrics" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_every_version_that_clusters_can_have() {
        let minors: Vec<u16> = MINORS.iter().map(|it| it.minor).collect();
        let known = KubernetesVersion::OLDEST..=KubernetesVersion::NEWEST;
        assert_eq!(minors, known.collect::<Vec<_>>());
    }

    #[test]
    fn every_version_has_its_own_row() {
        for minor in KubernetesVersion::OLDEST..=KubernetesVersion::NEWEST {
            let found = AddOnVersions::of(KubernetesVersion { minor, patch: 0 });
            assert_eq!(found.minor, minor);
            let release = if minor == 37 { 36 } else { minor };
            assert!(found.cloud_provider.starts_with(&format!("v1.{release}.")));
        }
    }

    #[test]
    fn a_version_outside_of_the_table_gets_the_nearest_row() {
        for (minor, nearest) in [(0, 20), (19, 20), (38, 37), (u16::MAX, 37)] {
            assert_eq!(AddOnVersions::of(KubernetesVersion { minor, patch: 0 }).minor, nearest);
        }
    }

    #[test]
    fn each_program_gets_the_arguments_that_its_release_knows() {
        let row = |minor| AddOnVersions::of(KubernetesVersion { minor, patch: 0 });
        // The last minor version with the first value, and the first with the second.
        assert_eq!(
            ["--csiTimeout=3m", "--timeout=3m"],
            [20, 21].map(|it| row(it).resizer_timeout())
        );
        assert_eq!([true, false], [21, 22].map(|it| row(it).names_its_node()));
        assert_eq!([0, 2], [21, 22].map(|it| row(it).provisioner_arguments().len()));
        assert_eq!(["nodes/stats", "nodes/metrics"], [24, 25].map(|it| row(it).kubelet_resource()));
        assert_eq!([false, true], [31, 32].map(|it| row(it).nodes_need_no_cloud()));
        let registries = [24, 25].map(|it| row(it).cloud_provider_registry());
        assert_eq!(registries, ["docker.io/k8scloudprovider", "registry.k8s.io/provider-os"]);
    }
}
