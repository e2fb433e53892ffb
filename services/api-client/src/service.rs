//! The services that a client can call.

/// A service of Bedplate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    /// The Bare Metal API of `baremetald`.
    Baremetald,
    /// The Container Infra API of `clusterd`.
    Clusterd,
}

impl Service {
    /// Returns the name of the service's program.
    pub const fn program(self) -> &'static str {
        match self {
            Service::Baremetald => "baremetald",
            Service::Clusterd => "clusterd",
        }
    }

    /// Returns the service's entry in a cloud's catalogue.
    pub const fn in_catalogues(self) -> openstack::Service {
        match self {
            Service::Baremetald => openstack::Service::BareMetal,
            Service::Clusterd => openstack::Service::ContainerInfra,
        }
    }

    /// The header that selects the microversion, and the value that a client sends by default.
    pub(crate) const fn microversion(self) -> (&'static str, &'static str) {
        match self {
            Service::Baremetald => ("X-OpenStack-Ironic-API-Version", "1.115"),
            Service::Clusterd => ("OpenStack-API-Version", "container-infra latest"),
        }
    }
}
