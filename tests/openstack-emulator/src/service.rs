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
    ObjectStore,
}

/// A service: its first path segment, its name and types in the catalog, the part of the catalog URL after the prefix, the major version in
/// paths, and the microversions (major, first, last).
struct Row {
    service: Service,
    prefix: &'static str,
    name: &'static str,
    types: &'static [&'static str],
    below: &'static str,
    major: &'static str,
    microversions: Option<(u32, u32, u32)>,
}

#[rustfmt::skip]
const ROWS: [Row; 9] = [
    Row { service: Service::Identity, prefix: "identity", name: "keystone", types: &["identity"], below: "/v3", major: "v3", microversions: None },
    Row { service: Service::Image, prefix: "image", name: "glance", types: &["image"], below: "", major: "v2", microversions: None },
    Row { service: Service::Compute, prefix: "compute", name: "nova", types: &["compute"], below: "/v2.1", major: "v2.1", microversions: Some((2, 1, 96)) },
    Row { service: Service::Placement, prefix: "placement", name: "placement", types: &["placement"], below: "", major: "", microversions: Some((1, 0, 39)) },
    Row { service: Service::Network, prefix: "network", name: "neutron", types: &["network"], below: "", major: "v2.0", microversions: None },
    Row { service: Service::LoadBalancer, prefix: "load-balancer", name: "octavia", types: &["load-balancer"], below: "", major: "v2", microversions: None },
    Row { service: Service::Dns, prefix: "dns", name: "designate", types: &["dns"], below: "", major: "v2", microversions: None },
    Row { service: Service::Volume, prefix: "volume", name: "cinder", types: &["block-storage", "volumev3"], below: "/v3/%(project_id)s", major: "v3", microversions: Some((3, 0, 71)) },
    Row { service: Service::ObjectStore, prefix: "object-store", name: "swift", types: &["object-store"], below: "/v1/AUTH_%(project_id)s", major: "v1", microversions: None },
];

impl Service {
    /// All services, in the order of the catalog.
    pub(crate) fn all() -> impl Iterator<Item = Service> {
        ROWS.iter().map(|row| row.service)
    }

    fn row(self) -> &'static Row {
        &ROWS[self as usize]
    }

    /// The first path segment of the service.
    pub fn prefix(self) -> &'static str {
        self.row().prefix
    }

    /// The service types in the catalog.
    pub(crate) fn types(self) -> &'static [&'static str] {
        self.row().types
    }

    /// The service name in the catalog.
    pub(crate) fn name(self) -> &'static str {
        self.row().name
    }

    /// The part of the catalog URL after the prefix.
    pub(crate) fn below(self) -> &'static str {
        self.row().below
    }

    /// The major version in paths. Empty for Placement.
    pub(crate) fn major(self) -> &'static str {
        self.row().major
    }

    /// The first and last microversion. `None` for services without microversions.
    pub(crate) fn microversions(self) -> Option<(u32, u32, u32)> {
        self.row().microversions
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
            // Swift has no such document.
            Service::ObjectStore => (412, json!("Bad URL")),
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
            Service::Image
            | Service::Placement
            | Service::LoadBalancer
            | Service::Dns
            | Service::ObjectStore => self.versions(base).1,
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

#[cfg(test)]
mod tests {
    use super::{ROWS, Service};

    #[test]
    fn each_service_has_its_own_row() {
        assert!(Service::all().zip(&ROWS).all(|(service, row)| service.name() == row.name));
    }
}
