//! The services of a cloud: what they are called, where their API begins, which header asks for a version.

use std::fmt;

/// A service of OpenStack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Service {
    /// Keystone.
    Identity,
    /// Glance.
    Image,
    /// Nova.
    Compute,
    /// Neutron.
    Network,
    /// Octavia.
    LoadBalancer,
    /// Designate.
    Dns,
    /// Cinder.
    BlockStorage,
    /// Placement.
    Placement,
    /// Bare metal: `baremetald`, or Ironic. Its calls are not here, only where it is.
    BareMetal,
    /// Container infrastructure: `clusterd`, or Magnum. Its calls are not here, only where it is.
    ContainerInfra,
}

impl Service {
    /// All of them.
    pub const ALL: [Service; 10] = [
        Service::Identity,
        Service::Image,
        Service::Compute,
        Service::Network,
        Service::LoadBalancer,
        Service::Dns,
        Service::BlockStorage,
        Service::Placement,
        Service::BareMetal,
        Service::ContainerInfra,
    ];

    /// Its type in the catalogue, as the service types authority has it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Service::Identity => "identity",
            Service::Image => "image",
            Service::Compute => "compute",
            Service::Network => "network",
            Service::LoadBalancer => "load-balancer",
            Service::Dns => "dns",
            Service::BlockStorage => "block-storage",
            Service::Placement => "placement",
            Service::BareMetal => "baremetal",
            // Its proper type is long, and Magnum's own client looks for this alias alone.
            Service::ContainerInfra => "container-infra",
        }
    }

    /// The types it goes by in catalogues, the proper one first. Only such aliases are here that name the same API
    /// and version (service-types-authority: `aliases`).
    pub(crate) const fn types(self) -> &'static [&'static str] {
        match self {
            Service::BlockStorage => &["block-storage", "volumev3", "block-store"],
            Service::Compute => &["compute", "computev21"],
            Service::Identity => &["identity", "identityv3"],
            Service::Image => &["image", "imagev2"],
            Service::Network => &["network"],
            Service::LoadBalancer => &["load-balancer"],
            Service::Dns => &["dns"],
            Service::Placement => &["placement"],
            Service::BareMetal => &["baremetal", "bare-metal"],
            Service::ContainerInfra => &[
                "container-infra",
                "container-infrastructure-management",
                "container-infrastructure",
            ],
        }
    }

    /// The path at which the version we speak begins, for endpoints that stop above it.
    pub(crate) const fn version_path(self) -> &'static [&'static str] {
        match self {
            Service::Identity | Service::BlockStorage => &["v3"],
            Service::Image | Service::Dns => &["v2"],
            Service::Compute => &["v2.1"],
            Service::Network => &["v2.0"],
            // Octavia's own root is v2.0 or v2, followed by the name of what it was split from.
            Service::LoadBalancer => &["v2", "lbaas"],
            Service::Placement => &[],
            Service::BareMetal | Service::ContainerInfra => &["v1"],
        }
    }

    /// What clouds.yaml calls an endpoint of ours that is used in place of the catalogue's.
    pub const fn override_setting(self) -> &'static str {
        match self {
            Service::Identity => "identity_endpoint_override",
            Service::Image => "image_endpoint_override",
            Service::Compute => "compute_endpoint_override",
            Service::Network => "network_endpoint_override",
            Service::LoadBalancer => "load_balancer_endpoint_override",
            Service::Dns => "dns_endpoint_override",
            Service::BlockStorage => "block_storage_endpoint_override",
            Service::Placement => "placement_endpoint_override",
            Service::BareMetal => "baremetal_endpoint_override",
            Service::ContainerInfra => "container_infra_endpoint_override",
        }
    }

    /// What `OpenStack-API-Version` calls it.
    pub(crate) const fn microversion_name(self) -> &'static str {
        match self {
            // Cinder kept the name of the program (API guide, "Microversions").
            Service::BlockStorage => "volume",
            Service::Identity
            | Service::Image
            | Service::Compute
            | Service::Network
            | Service::LoadBalancer
            | Service::Dns
            | Service::Placement
            | Service::BareMetal
            | Service::ContainerInfra => self.as_str(),
        }
    }
}

impl fmt::Display for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
