//! Settings and add-ons for the tests.

use std::collections::BTreeSet;

use cluster_addons::{
    AddOn, Cloud, Credential, GpuVendor, ImageSource, KubeletCertificates, LoadBalancing, Settings,
    StorageClass, Volumes, desired_add_ons,
};
use cluster_core::{Algorithm, KubernetesVersion, NetworkDriver, Provider};

/// A secret that must appear only in objects of the kind `Secret`.
pub(crate) const SECRET: &str = "aVeryLongSecretThatNobodyMaySee";

/// All supported minor versions.
pub(crate) fn minors() -> impl Iterator<Item = u16> {
    KubernetesVersion::OLDEST..=KubernetesVersion::NEWEST
}

/// Settings with every add-on that Kubernetes 1.`minor` supports.
pub(crate) fn everything(minor: u16) -> Settings {
    let class = |name: &str, volume_type: Option<&str>| StorageClass {
        name: name.to_owned(),
        volume_type: volume_type.map(str::to_owned),
        is_default: volume_type.is_none(),
    };
    Settings {
        cluster: "7c9e6679-7425-40de-944b-e07fc1f90ae7".to_owned(),
        kubernetes: KubernetesVersion { minor, patch: 1 },
        images: ImageSource::default(),
        pods: "10.100.0.0/16".parse().expect("it is a range"),
        network: Some(NetworkDriver::Flannel),
        cloud: Some(cloud(1)),
        cloud_controller: Some(LoadBalancing {
            floating_network: Some("9f1d1f0e-public".to_owned()),
            subnet: Some("0b6d1c2a-nodes".to_owned()),
            provider: Some(Provider::Amphora),
            algorithm: Algorithm::RoundRobin,
        }),
        volumes: Some(Volumes {
            classes: vec![class("cinder", None), class("cinder-fast", Some("NVMe: \"fast\""))],
            ignore_zones: true,
            snapshots: true,
        }),
        gpus: BTreeSet::from([GpuVendor::Nvidia, GpuVendor::Amd]),
        metrics: (minor > 20).then_some(KubeletCertificates::SelfSigned),
    }
}

pub(crate) fn cloud(generation: u32) -> Cloud {
    Cloud {
        auth_url: "https://keystone.example:5000/v3".to_owned(),
        region: "RegionOne".to_owned(),
        credential: Credential {
            generation,
            id: format!("credential-{generation}"),
            secret: SECRET.to_owned().into(),
        },
        authorities: Some("-----BEGIN CERTIFICATE-----\n".to_owned()),
    }
}

/// All add-ons, for every version.
pub(crate) fn all() -> impl Iterator<Item = Vec<AddOn>> {
    minors().map(|minor| desired_add_ons(&everything(minor)).expect("everything goes together"))
}

#[track_caller]
pub(crate) fn named<'a>(add_ons: &'a [AddOn], name: &str) -> &'a AddOn {
    add_ons.iter().find(|it| it.name == name).expect("there is that add-on")
}
