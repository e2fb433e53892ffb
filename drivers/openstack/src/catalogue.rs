//! The service catalogue in a token, which has the URL of each service.

use serde::Deserialize;
use url::Url;

use crate::config::{CloudConfig, Interface};
use crate::error::{CloudError, Result};
use crate::service::Service;

/// The services of a cloud with their endpoints.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(transparent)]
pub(crate) struct Catalogue {
    entries: Vec<Entry>,
}

#[derive(Clone, Debug, Deserialize)]
struct Entry {
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(default)]
    endpoints: Vec<Endpoint>,
}

#[derive(Clone, Debug, Deserialize)]
struct Endpoint {
    #[serde(default)]
    interface: String,
    #[serde(default)]
    region: Option<String>,
    #[serde(default)]
    region_id: Option<String>,
    #[serde(default)]
    url: String,
}

impl Catalogue {
    /// Returns the base URL of `service`, including the API version that we use.
    pub(crate) fn endpoint(
        &self,
        service: Service,
        config: &CloudConfig,
        project: Option<&str>,
    ) -> Result<Url> {
        let own = config.endpoints.get(&service).cloned();
        let found = own.or_else(|| self.find(service, config.region.as_deref(), config.interface));
        let url = found.ok_or_else(|| CloudError::NoEndpoint {
            service,
            region: config.region.clone().unwrap_or_else(|| "any".to_owned()),
            interface: config.interface,
        })?;
        Ok(versioned(url, service, project))
    }

    fn find(&self, service: Service, region: Option<&str>, interface: Interface) -> Option<Url> {
        let of_type = |kind: &&str| {
            let entries = self.entries.iter().filter(move |entry| entry.kind == **kind);
            entries.flat_map(|entry| &entry.endpoints).find(|it| it.fits(region, interface))
        };
        let endpoint = service.types().iter().find_map(of_type)?;
        let url: Url = endpoint.url.parse().ok()?;
        (matches!(url.scheme(), "http" | "https") && url.has_host()).then_some(url)
    }
}

impl Endpoint {
    fn fits(&self, region: Option<&str>, interface: Interface) -> bool {
        let here = |region: &str| {
            [&self.region_id, &self.region].into_iter().flatten().any(|own| own == region)
        };
        self.interface == interface.as_str() && region.is_none_or(here)
    }
}

/// Appends the path of the API version that we use, unless the URL has one: catalogues have both forms.
pub(crate) fn versioned(mut url: Url, service: Service, project: Option<&str>) -> Url {
    let segments: Vec<String> = url
        .path_segments()
        .map(|all| all.filter(|it| !it.is_empty()).map(str::to_owned).collect())
        .unwrap_or_default();
    let is_version = |segment: &String| {
        let digits = segment.strip_prefix('v').unwrap_or_default();
        digits.starts_with(|c: char| c.is_ascii_digit())
            && digits.chars().all(|c| c.is_ascii_digit() || c == '.')
    };
    let version = segments.iter().rposition(is_version);
    let mut path = segments.clone();
    match (service, version) {
        // A project id after the version is part of the endpoint (Nova's legacy form, Cinder's form), and so is Swift's account.
        (
            Service::Compute
            | Service::Network
            | Service::Image
            | Service::Dns
            | Service::ObjectStore,
            Some(_),
        ) => {}
        (Service::BlockStorage, Some(at)) if at + 1 < segments.len() => {}
        (_, at) => {
            path.truncate(at.unwrap_or(path.len()));
            path.extend(service.version_path().iter().map(|&it| it.to_owned()));
            // Before microversion 3.67, Cinder requires the project in the path.
            if service == Service::BlockStorage {
                path.extend(project.map(str::to_owned));
            }
        }
    }
    url.set_path(&path.join("/"));
    url.set_query(None);
    url.set_fragment(None);
    url
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn endpoints_get_the_version_they_lack() {
        for (service, given, want) in [
            (Service::Identity, "http://h:5000", "http://h:5000/v3"),
            (Service::Identity, "https://h/identity/v2.0/", "https://h/identity/v3"),
            (Service::Image, "http://h:9292", "http://h:9292/v2"),
            (Service::Image, "http://h/image/v2/", "http://h/image/v2"),
            (Service::Compute, "http://h:8774/v2.1", "http://h:8774/v2.1"),
            (Service::Compute, "http://h:8774/v2/p", "http://h:8774/v2/p"),
            (Service::Compute, "http://h/compute", "http://h/compute/v2.1"),
            (Service::Network, "http://h:9696", "http://h:9696/v2.0"),
            (Service::LoadBalancer, "http://h:9876", "http://h:9876/v2/lbaas"),
            (Service::LoadBalancer, "http://h/lb/v2.0", "http://h/lb/v2/lbaas"),
            (Service::Dns, "http://h:9001/", "http://h:9001/v2"),
            (Service::BlockStorage, "http://h:8776", "http://h:8776/v3/p"),
            (Service::BlockStorage, "http://h:8776/v3", "http://h:8776/v3/p"),
            (Service::BlockStorage, "http://h:8776/v3/q", "http://h:8776/v3/q"),
            (Service::Placement, "http://h/placement", "http://h/placement"),
            (Service::ObjectStore, "http://h:8080/v1/AUTH_p", "http://h:8080/v1/AUTH_p"),
            (Service::ObjectStore, "http://h/swift", "http://h/swift/v1"),
            (Service::BareMetal, "https://h:6385", "https://h:6385/v1"),
            (Service::ContainerInfra, "https://h/coe/v1/", "https://h/coe/v1"),
        ] {
            let url = versioned(given.parse().unwrap(), service, Some("p"));
            assert_eq!(url.as_str().trim_end_matches('/'), want, "{service}");
        }
    }

    #[test]
    fn a_service_is_found_by_alias_region_and_interface() {
        let endpoint = |interface, region, url| json!({"interface": interface, "region_id": region, "url": url});
        let catalogue: Catalogue = serde_json::from_value(json!([
            {"type": "volumev2", "endpoints": [endpoint("public", "north", "http://old")]},
            {"type": "volumev3", "name": "cinder", "endpoints": [
                endpoint("public", "south", "http://south"),
                endpoint("internal", "north", "http://internal"),
                endpoint("public", "north", "http://north"),
            ]},
            {"endpoints": []},
        ]))
        .unwrap();
        let find = |region| catalogue.find(Service::BlockStorage, region, Interface::Public);
        assert_eq!(find(Some("north")).unwrap().as_str(), "http://north/");
        assert_eq!(find(None).unwrap().as_str(), "http://south/");
        assert_eq!(find(Some("west")), None);
        assert_eq!(catalogue.find(Service::Dns, None, Interface::Public), None);
    }
}
