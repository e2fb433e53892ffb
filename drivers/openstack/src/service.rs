//! The services of a cloud: catalogue types, version paths, and microversion headers.

words::words! {
    /// A service of OpenStack, with its type in the catalogue according to the service types authority.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Service {
        /// Keystone: users, projects, tokens.
        Identity = "identity",
        /// Glance: images and their data.
        Image = "image",
        /// Nova: servers and compute hosts.
        Compute = "compute",
        /// Neutron: networks, ports, floating IPs.
        Network = "network",
        /// Octavia: load balancers and their parts.
        LoadBalancer = "load-balancer",
        /// Designate: zones and recordsets.
        Dns = "dns",
        /// Cinder: volumes and snapshots.
        BlockStorage = "block-storage",
        /// Placement: resources of compute hosts.
        Placement = "placement",
        /// Swift: containers of objects. Ceph's gateway has the same API.
        ObjectStore = "object-store",
        /// `baremetald`, or Ironic. This crate only finds its endpoint and has no calls for it.
        BareMetal = "baremetal",
        /// `clusterd`, or Magnum. This crate only finds its endpoint and has no calls for it.
        // The official type is longer, but Magnum's own client looks only for this alias.
        ContainerInfra = "container-infra",
    }
}

impl Service {
    /// The service's types in catalogues, the official one first. Only aliases for the same API and version are listed
    /// (service-types-authority: `aliases`).
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
            Service::ObjectStore => &["object-store"],
            Service::BareMetal => &["baremetal", "bare-metal"],
            Service::ContainerInfra => &[
                "container-infra",
                "container-infrastructure-management",
                "container-infrastructure",
            ],
        }
    }

    /// The path of the API version that we use, for endpoints without a version.
    pub(crate) const fn version_path(self) -> &'static [&'static str] {
        match self {
            Service::Identity | Service::BlockStorage => &["v3"],
            Service::Image | Service::Dns => &["v2"],
            Service::Compute => &["v2.1"],
            Service::Network => &["v2.0"],
            // Octavia's root is v2.0 or v2, followed by lbaas, the name of the Neutron project it came from.
            Service::LoadBalancer => &["v2", "lbaas"],
            Service::Placement => &[],
            Service::ObjectStore | Service::BareMetal | Service::ContainerInfra => &["v1"],
        }
    }

    /// The setting in clouds.yaml that replaces the catalogue's endpoint.
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
            Service::ObjectStore => "object_store_endpoint_override",
            Service::BareMetal => "baremetal_endpoint_override",
            Service::ContainerInfra => "container_infra_endpoint_override",
        }
    }

    /// The service's name in `OpenStack-API-Version`.
    pub(crate) const fn microversion_name(self) -> &'static str {
        match self {
            // Cinder uses the program's name (API guide, "Microversions").
            Service::BlockStorage => "volume",
            Service::Identity
            | Service::Image
            | Service::Compute
            | Service::Network
            | Service::LoadBalancer
            | Service::Dns
            | Service::Placement
            | Service::ObjectStore
            | Service::BareMetal
            | Service::ContainerInfra => self.as_str(),
        }
    }
}
