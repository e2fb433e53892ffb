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
}

impl Service {
    /// All of them.
    pub const ALL: [Service; 8] = [
        Service::Identity,
        Service::Image,
        Service::Compute,
        Service::Network,
        Service::LoadBalancer,
        Service::Dns,
        Service::BlockStorage,
        Service::Placement,
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
            | Service::Placement => self.as_str(),
        }
    }
}

impl fmt::Display for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
