//! The desired entries of a service in the catalogue, and the changes that lead to them.

use openstack::identity::endpoints::Endpoint;
use openstack::identity::services::RegisteredService;
use openstack::{Interface, Service};
use url::Url;

/// The desired entry of a service.
#[derive(Debug)]
pub(super) struct DesiredEndpoints {
    pub(super) kind: &'static str,
    /// The name of a new entry.
    pub(super) name: &'static str,
    pub(super) description: &'static str,
    endpoints: [(Interface, String); 3],
}

/// The existing entries of a service type.
#[derive(Debug, Default)]
pub(super) struct CatalogueEntries {
    pub(super) services: Vec<RegisteredService>,
    pub(super) endpoints: Vec<Endpoint>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum CatalogueChange {
    /// Creates the service.
    Add,
    /// Enables a disabled service.
    Show {
        service: String,
    },
    AddEndpoint {
        interface: Interface,
        url: String,
    },
    Move {
        endpoint: String,
        interface: Interface,
        from: String,
        to: String,
    },
    /// Enables a disabled endpoint.
    ShowEndpoint {
        endpoint: String,
        interface: Interface,
        url: String,
    },
}

/// Why nothing is changed.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum CannotRegister {
    /// The catalogue has several services of the type, and clients may find any of them.
    #[error(
        "the catalogue has several services of type {kind}: {ids}. Hint: remove the wrong ones with openstack service delete ID"
    )]
    Several { kind: &'static str, ids: String },
    /// The service belongs to another program, such as Ironic or Magnum.
    #[error(
        "the catalogue already has a service of type {kind} with the name {name:?}. Hint: to use it for this service, rename it with openstack service set --name {kind} {id}"
    )]
    Foreign { kind: &'static str, name: String, id: String },
}

impl DesiredEndpoints {
    pub(super) fn new(
        service: Service,
        description: &'static str,
        [public, internal, admin]: [&Url; 3],
    ) -> Self {
        let endpoint = |interface, url: &Url| (interface, root(service, url));
        DesiredEndpoints {
            kind: service.as_str(),
            name: name(service),
            description,
            endpoints: [
                endpoint(Interface::Public, public),
                endpoint(Interface::Internal, internal),
                endpoint(Interface::Admin, admin),
            ],
        }
    }

    /// Whether an entry is one of this service's: with its type as its name, or with the name and the description of a new entry.
    fn is_own(&self, one: &RegisteredService) -> bool {
        let is_new = one.name == self.name && one.description == self.description;
        one.name == self.kind || is_new
    }
}

/// The name that clients expect: some of Magnum's find the service by its name.
fn name(service: Service) -> &'static str {
    if service == Service::ContainerInfra { "magnum" } else { service.as_str() }
}

/// The URL in the form that clients expect in the catalogue: Magnum's clients need the version in it, and Ironic's look for the version.
fn root(service: Service, url: &Url) -> String {
    let url = url.as_str().trim_end_matches('/');
    if service == Service::ContainerInfra && !url.ends_with("/v1") {
        return format!("{url}/v1");
    }
    url.to_owned()
}

/// Plans the changes that lead from the existing entries to the desired ones; none if they are equal.
///
/// Every endpoint of an interface in the region gets the same URL, because a client may choose any of them.
pub(super) fn plan(
    wanted: &DesiredEndpoints,
    seen: &CatalogueEntries,
    region: &str,
) -> Result<Vec<CatalogueChange>, CannotRegister> {
    let kind = wanted.kind;
    let mut steps = Vec::new();
    match seen.services.as_slice() {
        [] => steps.push(CatalogueChange::Add),
        [only] if !wanted.is_own(only) => {
            return Err(CannotRegister::Foreign {
                kind,
                name: only.name.clone(),
                id: only.id.clone(),
            });
        }
        [only] if !only.enabled => steps.push(CatalogueChange::Show { service: only.id.clone() }),
        [_] => {}
        several => {
            let ids: Vec<&str> = several.iter().map(|service| service.id.as_str()).collect();
            return Err(CannotRegister::Several { kind, ids: ids.join(", ") });
        }
    }
    for (interface, url) in &wanted.endpoints {
        let here = |one: &&Endpoint| {
            one.interface == interface.as_str() && one.region_id.as_deref() == Some(region)
        };
        let there: Vec<&Endpoint> = seen.endpoints.iter().filter(here).collect();
        if there.is_empty() {
            steps.push(CatalogueChange::AddEndpoint { interface: *interface, url: url.clone() });
        }
        steps.extend(there.into_iter().filter_map(|one| endpoint_change(one, *interface, url)));
    }
    Ok(steps)
}

/// The change of an endpoint; `None` if it is right.
fn endpoint_change(one: &Endpoint, interface: Interface, url: &str) -> Option<CatalogueChange> {
    let endpoint = one.id.clone();
    match (one.url == url, one.enabled) {
        (true, true) => None,
        (true, false) => {
            Some(CatalogueChange::ShowEndpoint { endpoint, interface, url: url.to_owned() })
        }
        (false, _) => Some(CatalogueChange::Move {
            endpoint,
            interface,
            from: one.url.clone(),
            to: url.to_owned(),
        }),
    }
}

impl CatalogueChange {
    /// Describes the change, or what it would be.
    pub(super) fn said(&self, dry_run: bool) -> String {
        let is = if dry_run { "would be" } else { "was" };
        match self {
            CatalogueChange::Add => format!("the service {is} added"),
            CatalogueChange::Show { .. } => format!("the service {is} enabled"),
            CatalogueChange::AddEndpoint { interface, url } => {
                format!("the {interface} endpoint {is} added: {url}")
            }
            CatalogueChange::Move { interface, from, to, .. } => {
                format!("the {interface} endpoint {is} changed from {from} to {to}")
            }
            CatalogueChange::ShowEndpoint { interface, url, .. } => {
                format!("the {interface} endpoint {is} enabled: {url}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(url: &str) -> DesiredEndpoints {
        let url = url.parse().unwrap();
        DesiredEndpoints::new(Service::ContainerInfra, "ours", [&url, &url, &url])
    }

    fn service(name: &str, enabled: bool) -> RegisteredService {
        let (id, kind, name) = ("s".to_owned(), "container-infra".to_owned(), name.to_owned());
        RegisteredService { id, kind, name, description: "theirs".to_owned(), enabled }
    }

    fn endpoint(interface: &str, region: &str, url: &str, enabled: bool) -> Endpoint {
        Endpoint {
            id: format!("{interface}-{region}"),
            service_id: "s".to_owned(),
            interface: interface.to_owned(),
            region_id: Some(region.to_owned()),
            url: url.to_owned(),
            enabled,
        }
    }

    fn said(seen: &CatalogueEntries) -> Vec<String> {
        let steps = plan(&wanted("https://h:9511/"), seen, "north").unwrap();
        steps.iter().map(|step| step.said(false)).collect()
    }

    #[test]
    fn an_empty_catalogue_gets_a_service_and_its_endpoints() {
        assert_eq!(
            said(&CatalogueEntries::default()),
            [
                "the service was added",
                "the public endpoint was added: https://h:9511/v1",
                "the internal endpoint was added: https://h:9511/v1",
                "the admin endpoint was added: https://h:9511/v1",
            ]
        );
    }

    #[test]
    fn only_differences_are_changed_and_only_in_the_region() {
        let good = "https://h:9511/v1";
        let seen = CatalogueEntries {
            services: vec![service("container-infra", false)],
            endpoints: vec![
                endpoint("public", "north", good, true),
                endpoint("public", "south", "https://south", true),
                endpoint("internal", "north", good, false),
                endpoint("admin", "north", "https://old", false),
            ],
        };
        assert_eq!(
            said(&seen),
            [
                "the service was enabled",
                "the internal endpoint was enabled: https://h:9511/v1",
                "the admin endpoint was changed from https://old to https://h:9511/v1",
            ]
        );
    }

    #[test]
    fn a_service_of_another_program_is_not_changed() {
        let plan = |services| {
            let seen = CatalogueEntries { services, endpoints: Vec::new() };
            plan(&wanted("https://h"), &seen, "north").unwrap_err().to_string()
        };
        let printed = plan(vec![service("magnum", true)]);
        assert!(
            printed.contains(r#"the name "magnum""#)
                && printed.contains("--name container-infra s"),
            "{printed}"
        );
        let printed = plan(vec![service("container-infra", true), service("magnum", true)]);
        assert!(printed.contains("several services of type container-infra: s, s"), "{printed}");
    }

    #[test]
    fn a_service_with_the_name_of_magnum_is_ours_by_its_description() {
        let own = RegisteredService { description: "ours".to_owned(), ..service("magnum", false) };
        let seen = CatalogueEntries { services: vec![own], endpoints: Vec::new() };
        assert_eq!(said(&seen)[0], "the service was enabled");
    }

    #[test]
    fn the_url_for_magnum_clients_has_the_version() {
        for (service, given, want) in [
            (Service::ContainerInfra, "https://h/coe/", "https://h/coe/v1"),
            (Service::ContainerInfra, "https://h/v1", "https://h/v1"),
            (Service::BareMetal, "https://h:6385/", "https://h:6385"),
        ] {
            assert_eq!(root(service, &given.parse().unwrap()), want);
        }
    }
}
