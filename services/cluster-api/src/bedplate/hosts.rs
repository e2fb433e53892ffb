//! `/bedplate/v1/hosts` and `/bedplate/v1/places`: the servers on a compute host, and the host of a server.

use std::collections::BTreeMap;

use axum::extract::State;
use axum::response::Response;
use cluster_conductor::{ComputeService, Host, Places, Role, Server, of, role, vm_of};
use cluster_core::{Cluster, Drain, HostName, Known, Member, NodeGroup, Quorum};
use cluster_store::Belongings;
use http::StatusCode;
use openstack_api::{ApiError, Caller, Handle, Role as Needed, Routes, Rule, Segment, Shape, json};
use serde::Serialize;

use super::drains;
use crate::app::App;
use crate::error::Error;

/// Permits administrators of the cloud, and services that manage its nodes.
pub(super) const RULE: Rule =
    Rule { cloud: Needed::Admin, services: true, owner: None, lessee: None };

/// Returns the routes of hosts and places.
pub(crate) fn routes() -> Routes<App> {
    let hosts = Shape::object([("hosts", Shape::list(listed()))]);
    let list = Handle::get("List compute hosts and their drains", list).ruled(RULE).tells(hosts);
    let show = Handle::get("Show the servers on a compute host", show).ruled(RULE).tells(shape());
    let places = Shape::object([("places", Shape::list(place()))]);
    let find =
        Handle::get("Find the hosts of a cluster, VM or server", find).ruled(RULE).tells(places);
    Routes::new("bedplate")
        .at("/bedplate/v1/hosts", [list.refuses([StatusCode::CONFLICT])])
        .at(
            "/bedplate/v1/hosts/{host}",
            [show.refuses([StatusCode::NOT_FOUND, StatusCode::CONFLICT])],
        )
        .at("/bedplate/v1/places/{thing}", [find.refuses([StatusCode::CONFLICT])])
}

/// The response schema of a host's compute service.
fn service() -> Shape {
    Shape::object([
        ("status", Shape::text()),
        ("state", Shape::text()),
        ("disabled_reason", Shape::text().or_null()),
    ])
}

/// The response schema of a host in a list. A host that the cloud does not know any more has no service, and is listed because of its
/// drain.
fn listed() -> Shape {
    Shape::object([
        ("host", Shape::text()),
        ("zone", Shape::text().or_null()),
        ("service", service().or_null()),
        ("drain", Shape::either(drains::shape(), Shape::null())),
    ])
}

/// The response schema of a host.
fn shape() -> Shape {
    let etcd = Shape::object([
        ("members", Shape::list(Shape::text())),
        ("needed", Shape::whole()),
        ("away", Shape::list(Shape::text())),
    ]);
    let machine = Shape::object([
        ("machine", Shape::text()),
        ("name", Shape::text()),
        ("role", Shape::text().or_null()),
        ("is_etcd_member", Shape::flag()),
        ("server_id", Shape::text()),
        ("status", Shape::text()),
    ]);
    let cluster = Shape::object([
        ("uuid", Shape::text()),
        ("name", Shape::text()),
        ("project_id", Shape::text()),
        ("etcd", etcd),
        ("machines", Shape::list(machine)),
    ]);
    Shape::object([
        ("host", Shape::text()),
        ("service", service()),
        ("clusters", Shape::list(cluster)),
        ("machines", Shape::list(owned())),
        ("foreign", Shape::whole()),
        ("drain", Shape::either(drains::shape(), Shape::null())),
    ])
}

/// The response schema of a VM on a host.
fn owned() -> Shape {
    Shape::object([
        ("uuid", Shape::text()),
        ("name", Shape::text()),
        ("project_id", Shape::text()),
        ("user_id", Shape::text()),
        ("server_id", Shape::text()),
        ("status", Shape::text()),
    ])
}

/// The response schema of a place.
fn place() -> Shape {
    let cluster = Shape::object([
        ("uuid", Shape::text()),
        ("name", Shape::text()),
        ("project_id", Shape::text()),
    ]);
    Shape::object([
        ("server_id", Shape::text()),
        ("name", Shape::text()),
        ("status", Shape::text()),
        ("host", Shape::text().or_null()),
        ("cluster", cluster.or_null()),
        ("machine", Shape::text().or_null()),
        ("role", Shape::text().or_null()),
        ("is_etcd_member", Shape::flag()),
        ("own", owned().or_null()),
    ])
}

#[derive(Serialize)]
struct ShownMachine<'a> {
    machine: String,
    name: &'a str,
    role: Option<&'static str>,
    is_etcd_member: bool,
    server_id: &'a str,
    status: &'a str,
}

#[derive(Serialize)]
struct ShownEtcd {
    members: Vec<String>,
    needed: usize,
    /// Members that are already away because of a drain.
    away: Vec<String>,
}

#[derive(Serialize)]
struct ShownCluster<'a> {
    uuid: String,
    name: &'a str,
    project_id: &'a str,
    etcd: ShownEtcd,
    machines: Vec<ShownMachine<'a>>,
}

#[derive(Serialize)]
struct ShownOwn<'a> {
    uuid: String,
    name: String,
    project_id: String,
    user_id: String,
    server_id: &'a str,
    status: &'a str,
}

fn word(role: Role) -> &'static str {
    match role {
        Role::ControlPlane => "control-plane",
        Role::Worker => "worker",
    }
}

fn is_etcd_member(ours: &Belongings, member: &Member) -> bool {
    of(ours, member).is_some_and(|(cluster, groups)| {
        Quorum::of(cluster, groups).members.contains(&member.machine)
    })
}

fn machine<'a>(ours: &Belongings, member: &Member, server: &'a Server) -> ShownMachine<'a> {
    ShownMachine {
        machine: member.machine.to_string(),
        name: &server.name,
        role: role(ours, member).map(word),
        is_etcd_member: is_etcd_member(ours, member),
        server_id: &server.id,
        status: server.status.as_str(),
    }
}

fn cluster<'a>(host: &'a Host, cluster: &'a Cluster, groups: &[NodeGroup]) -> ShownCluster<'a> {
    let quorum = Quorum::of(cluster, groups);
    let here = host.servers.iter().filter_map(|server| match host.ours.servers.get(&server.id) {
        Some(Known::Member(member)) if member.cluster == cluster.id => {
            Some(machine(&host.ours, member, server))
        }
        Some(Known::Member(_) | Known::Vm(_)) | None => None,
    });
    ShownCluster {
        uuid: cluster.id.to_string(),
        name: cluster.name.as_str(),
        project_id: &cluster.project,
        etcd: ShownEtcd {
            needed: quorum.needed(),
            members: quorum.members.iter().map(ToString::to_string).collect(),
            away: quorum.away.iter().map(ToString::to_string).collect(),
        },
        machines: here.collect(),
    }
}

fn own<'a>(ours: &Belongings, server: &'a Server) -> Option<ShownOwn<'a>> {
    let vm = vm_of(ours, ours.servers.get(&server.id)?)?;
    Some(ShownOwn {
        uuid: vm.id.to_string(),
        name: vm.name.to_string(),
        project_id: vm.project,
        user_id: vm.user,
        server_id: &server.id,
        status: server.status.as_str(),
    })
}

/// Parses the name of a host in a path. An invalid name is answered like a missing host.
pub(super) fn host_name(raw: &str) -> Result<HostName, ApiError> {
    raw.parse().map_err(|_| crate::app::missing("Host", raw))
}

/// A host's compute service in a response.
#[derive(Serialize)]
struct ShownService<'a> {
    status: &'a str,
    state: &'a str,
    disabled_reason: Option<&'a str>,
}

impl<'a> ShownService<'a> {
    fn of(service: &'a ComputeService) -> Self {
        ShownService {
            status: service.status.as_str(),
            state: service.state.as_str(),
            disabled_reason: service.disabled_reason.as_deref(),
        }
    }
}

/// `GET /bedplate/v1/hosts`: every compute host of the cloud, with its drain.
async fn list(_caller: Caller, State(app): State<App>) -> Result<Response, Error> {
    #[derive(Serialize)]
    struct Listed<'a> {
        host: &'a str,
        zone: Option<&'a str>,
        service: Option<ShownService<'a>>,
        drain: Option<drains::Shown<'a>>,
    }
    #[derive(Serialize)]
    struct Body<'a> {
        hosts: Vec<Listed<'a>>,
    }
    let services = app.conductor.hosts().await?;
    let drains = app.store.drains().await?;
    let mut of_hosts: BTreeMap<&str, &Drain> =
        drains.iter().map(|drain| (drain.host.as_str(), drain)).collect();
    let mut hosts: Vec<Listed<'_>> = services
        .iter()
        .map(|service| Listed {
            host: &service.host,
            zone: service.zone.as_deref(),
            service: Some(ShownService::of(service)),
            drain: of_hosts.remove(service.host.as_str()).map(drains::shown),
        })
        .collect();
    hosts.extend(of_hosts.into_iter().map(|(host, drain)| Listed {
        host,
        zone: None,
        service: None,
        drain: Some(drains::shown(drain)),
    }));
    Ok(json(StatusCode::OK, &Body { hosts }))
}

/// `GET /bedplate/v1/hosts/{host}`: the members and VMs on a host, and only the number of other servers.
async fn show(
    _caller: Caller,
    State(app): State<App>,
    Segment(name): Segment<String>,
) -> Result<Response, Error> {
    #[derive(Serialize)]
    struct Body<'a> {
        host: &'a str,
        service: ShownService<'a>,
        clusters: Vec<ShownCluster<'a>>,
        machines: Vec<ShownOwn<'a>>,
        foreign: usize,
        drain: Option<drains::Shown<'a>>,
    }
    let host = app.conductor.host(&host_name(&name)?).await?;
    let drain = app.store.find_drain(&host.name).await?;
    let body = Body {
        host: host.name.as_str(),
        service: ShownService::of(&host.service),
        clusters: host
            .ours
            .clusters
            .iter()
            .map(|(it, groups)| cluster(&host, it, groups))
            .collect(),
        machines: host.servers.iter().filter_map(|server| own(&host.ours, server)).collect(),
        foreign: host.foreign(),
        drain: drain.as_ref().map(drains::shown),
    };
    Ok(json(StatusCode::OK, &body))
}

/// `GET /bedplate/v1/places/{thing}`: the hosts of a cluster, a VM or a server, by id or name. Lists everything that has this name.
async fn find(
    _caller: Caller,
    State(app): State<App>,
    Segment(thing): Segment<String>,
) -> Result<Response, Error> {
    #[derive(Serialize)]
    struct Of<'a> {
        uuid: String,
        name: &'a str,
        project_id: &'a str,
    }
    #[derive(Serialize)]
    struct Place<'a> {
        server_id: &'a str,
        name: &'a str,
        status: &'a str,
        host: Option<&'a str>,
        cluster: Option<Of<'a>>,
        machine: Option<String>,
        role: Option<&'static str>,
        is_etcd_member: bool,
        own: Option<ShownOwn<'a>>,
    }
    #[derive(Serialize)]
    struct Body<'a> {
        places: Vec<Place<'a>>,
    }
    let Places { servers, ours } = app.conductor.places(&thing).await?;
    let places = servers.iter().map(|server| {
        let member = match ours.servers.get(&server.id) {
            Some(Known::Member(member)) => Some(member),
            Some(Known::Vm(_)) | None => None,
        };
        let cluster = member.and_then(|member| of(&ours, member));
        Place {
            server_id: &server.id,
            name: &server.name,
            status: server.status.as_str(),
            host: server.host.as_deref(),
            cluster: cluster.map(|(cluster, _)| Of {
                uuid: cluster.id.to_string(),
                name: cluster.name.as_str(),
                project_id: &cluster.project,
            }),
            machine: member.map(|member| member.machine.to_string()),
            role: member.and_then(|member| role(&ours, member)).map(word),
            is_etcd_member: member.is_some_and(|member| is_etcd_member(&ours, member)),
            own: own(&ours, server),
        }
    });
    let places = places.collect();
    Ok(json(StatusCode::OK, &Body { places }))
}
