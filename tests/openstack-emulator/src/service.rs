//! The services with their paths, catalog entries and versions.

use serde_json::{Value, json};

/// One of the OpenStack services.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Service {
    Identity,
    Image,
    Compute,
    Placement,
    Network,
    LoadBalancer,
    Dns,
    Volume,
}

/// All services, in the order of the catalog.
pub(crate) const SERVICES: [Service; 8] = [
    Service::Identity,
    Service::Image,
    Service::Compute,
    Service::Placement,
    Service::Network,
    Service::LoadBalancer,
    Service::Dns,
    Service::Volume,
];

impl Service {
    /// The first path segment of the service.
    pub fn prefix(self) -> &'static str {
        match self {
            Service::Identity => "identity",
            Service::Image => "image",
            Service::Compute => "compute",
            Service::Placement => "placement",
            Service::Network => "network",
            Service::LoadBalancer => "load-balancer",
            Service::Dns => "dns",
            Service::Volume => "volume",
        }
    }

    /// The service types in the catalog.
    pub(crate) fn types(self) -> &'static [&'static str] {
        match self {
            Service::Identity => &["identity"],
            Service::Image => &["image"],
            Service::Compute => &["compute"],
            Service::Placement => &["placement"],
            Service::Network => &["network"],
            Service::LoadBalancer => &["load-balancer"],
            Service::Dns => &["dns"],
            Service::Volume => &["block-storage", "volumev3"],
        }
    }

    /// The service name in the catalog.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Service::Identity => "keystone",
            Service::Image => "glance",
            Service::Compute => "nova",
            Service::Placement => "placement",
            Service::Network => "neutron",
            Service::LoadBalancer => "octavia",
            Service::Dns => "designate",
            Service::Volume => "cinder",
        }
    }

    /// The part of the catalog URL after the prefix.
    pub(crate) fn below(self, project: &str) -> String {
        match self {
            Service::Identity => "/v3".into(),
            Service::Compute => "/v2.1".into(),
            Service::Volume => format!("/v3/{project}"),
            Service::Image
            | Service::Placement
            | Service::Network
            | Service::LoadBalancer
            | Service::Dns => String::new(),
        }
    }

    /// The major version in paths. Empty for Placement.
    pub(crate) fn major(self) -> &'static str {
        match self {
            Service::Identity | Service::Volume => "v3",
            Service::Compute => "v2.1",
            Service::Network => "v2.0",
            Service::Image | Service::LoadBalancer | Service::Dns => "v2",
            Service::Placement => "",
        }
    }

    /// The first and last microversion. `None` for services without microversions.
    pub(crate) fn microversions(self) -> Option<(u32, u32, u32)> {
        match self {
            Service::Compute => Some((2, 1, 96)),
            Service::Volume => Some((3, 0, 71)),
            Service::Placement => Some((1, 0, 39)),
            Service::Identity
            | Service::Image
            | Service::Network
            | Service::LoadBalancer
            | Service::Dns => None,
        }
    }

    /// The document that lists the versions, and its status.
    pub(crate) fn versions(self, base: &str) -> (u16, Value) {
        let root = format!("{base}/{}", self.prefix());
        let version = |id: &str, status: &str, path: &str| json!({"id": id, "status": status, "links": [{"rel": "self", "href": format!("{root}/{path}")}]});
        match self {
            Service::Identity => (300, json!({"versions": {"values": [identity(&root)]}})),
            Service::Image => {
                let versions = (0..=16).rev().filter(|minor| *minor != 8).map(|minor| {
                    let status = if minor == 16 { "CURRENT" } else { "SUPPORTED" };
                    version(&format!("v2.{minor}"), status, "v2/")
                });
                (300, json!({"versions": versions.collect::<Vec<_>>()}))
            }
            Service::Compute | Service::Volume => (
                if self == Service::Volume { 300 } else { 200 },
                json!({"versions": [self.micro(&root)]}),
            ),
            Service::Placement => (200, json!({"versions": [self.micro(&root)]})),
            Service::Network => (200, json!({"versions": [version("v2.0", "CURRENT", "v2.0/")]})),
            Service::LoadBalancer => {
                let all = (0..=27).map(|minor| {
                    let status = if minor == 27 { "CURRENT" } else { "SUPPORTED" };
                    version(&format!("v2.{minor}"), status, "v2")
                });
                (200, json!({"versions": all.collect::<Vec<_>>()}))
            }
            Service::Dns => {
                let all = [("v2", "SUPPORTED"), ("v2.0", "SUPPORTED"), ("v2.1", "CURRENT")];
                let all = all.map(|(id, status)| version(id, status, "v2"));
                (200, json!({"versions": all}))
            }
        }
    }

    /// The document of the only version.
    pub(crate) fn version(self, base: &str) -> Value {
        let root = format!("{base}/{}", self.prefix());
        match self {
            Service::Identity => json!({"version": identity(&root)}),
            Service::Compute => json!({"version": self.micro(&root)}),
            Service::Volume => json!({"versions": [self.micro(&root)]}),
            Service::Network => json!({"resources": []}),
            Service::Image | Service::Placement | Service::LoadBalancer | Service::Dns => {
                self.versions(base).1
            }
        }
    }

    fn micro(self, root: &str) -> Value {
        let (major, first, last) = self.microversions().unwrap_or_default();
        let slash = if self.major().is_empty() { "" } else { "/" };
        let href = format!("{root}/{}{slash}", self.major());
        let mut version = json!({
            "id": format!("v{major}.{}", if self == Service::Compute { 1 } else { 0 }),
            "status": "CURRENT",
            "version": format!("{major}.{last}"),
            "max_version": format!("{major}.{last}"),
            "min_version": format!("{major}.{first}"),
            "updated": "2013-07-23T11:33:21Z",
            "links": [{"rel": "self", "href": href}],
        });
        if self == Service::Placement
            && let Some(version) = version.as_object_mut()
        {
            version.remove("version");
            version.remove("updated");
            version.insert("links".into(), json!([{"rel": "self", "href": ""}]));
        }
        version
    }
}

fn identity(root: &str) -> Value {
    json!({
        "id": "v3.14", "status": "stable", "updated": "2020-04-07T00:00:00Z",
        "links": [{"rel": "self", "href": format!("{root}/v3/")}],
        "media-types": [{"base": "application/json", "type": "application/vnd.openstack.identity-v3+json"}],
    })
}
