//! `/bedplate/v1/hosts` and `/bedplate/v1/places`: the servers on a compute host, and the host of a server.

use std::collections::BTreeMap;

use axum::extract::State;
use axum::response::Response;
use cluster_conductor::{
    ComputeService, Host, Role, Server, ServersWithHosts, cluster_of, role, vm_of,
};
use cluster_core::{Cluster, Drain, EtcdQuorum, HostName, Member, NodeGroup, OwnServer};
use cluster_store::ServerOwners;
use http::StatusCode;
use openstack_api::{
    ApiError, Caller, JsonShape, PathParam, Role as Needed, Route, Routes, Rule, json,
};
use serde::Serialize;

use super::drain_view;
use crate::app::App;
use crate::error::Error;

/// Permits administrators of the cloud, and services that manage its nodes.
pub(super) const RULE: Rule =
    Rule { cloud: Needed::Admin, services: true, owner: None, lessee: None };

/// Returns the routes of hosts and places.
pub(crate) fn routes() -> Routes<App> {
    let hosts = JsonShape::object([("hosts", JsonShape::list(listed()))]);
    let list =
        Route::get("List compute hosts and their drains", list).with_rule(RULE).returns(hosts);
    let show =
        Route::get("Show the servers on a compute host", show).with_rule(RULE).returns(shape());
    let places = JsonShape::object([("places", JsonShape::list(place()))]);
    let find = Route::get("Find the hosts of a cluster, VM or server", find)
        .with_rule(RULE)
        .returns(places);
    Routes::new("bedplate")
        .at("/bedplate/v1/hosts", [list.refuses([StatusCode::CONFLICT])])
        .at(
            "/bedplate/v1/hosts/{host}",
            [show.refuses([StatusCode::NOT_FOUND, StatusCode::CONFLICT])],
        )
        .at("/bedplate/v1/places/{thing}", [find.refuses([StatusCode::CONFLICT])])
}

/// The response schema of a host's compute service.
fn service() -> JsonShape {
    JsonShape::object([
        ("status", JsonShape::text()),
        ("state", JsonShape::text()),
        ("disabled_reason", JsonShape::text().or_null()),
    ])
}

/// The response schema of a host in a list. A host that the cloud does not know any more has no service, and is listed because of its
/// drain.
fn listed() -> JsonShape {
    JsonShape::object([
        ("host", JsonShape::text()),
        ("zone", JsonShape::text().or_null()),
        ("service", service().or_null()),
        ("drain", JsonShape::either(drain_view::shape(), JsonShape::null())),
    ])
}

/// The response schema of a host.
fn shape() -> JsonShape {
    let etcd = JsonShape::object([
        ("members", JsonShape::list(JsonShape::text())),
        ("needed", JsonShape::integer()),
        ("away", JsonShape::list(JsonShape::text())),
    ]);
    let machine = JsonShape::object([
        ("machine", JsonShape::text()),
        ("name", JsonShape::text()),
        ("role", JsonShape::text().or_null()),
        ("is_etcd_member", JsonShape::boolean()),
        ("server_id", JsonShape::text()),
        ("status", JsonShape::text()),
    ]);
    let cluster = JsonShape::object([
        ("uuid", JsonShape::text()),
        ("name", JsonShape::text()),
        ("project_id", JsonShape::text()),
        ("etcd", etcd),
        ("machines", JsonShape::list(machine)),
    ]);
    JsonShape::object([
        ("host", JsonShape::text()),
        ("service", service()),
        ("clusters", JsonShape::list(cluster)),
        ("machines", JsonShape::list(owned())),
        ("foreign", JsonShape::integer()),
        ("drain", JsonShape::either(drain_view::shape(), JsonShape::null())),
    ])
}

/// The response schema of a VM on a host.
fn owned() -> JsonShape {
    JsonShape::object([
        ("uuid", JsonShape::text()),
        ("name", JsonShape::text()),
        ("project_id", JsonShape::text()),
        ("user_id", JsonShape::text()),
        ("server_id", JsonShape::text()),
        ("status", JsonShape::text()),
    ])
}

/// The response schema of a place.
fn place() -> JsonShape {
    let cluster = JsonShape::object([
        ("uuid", JsonShape::text()),
        ("name", JsonShape::text()),
        ("project_id", JsonShape::text()),
    ]);
    JsonShape::object([
        ("server_id", JsonShape::text()),
        ("name", JsonShape::text()),
        ("status", JsonShape::text()),
        ("host", JsonShape::text().or_null()),
        ("cluster", cluster.or_null()),
        ("machine", JsonShape::text().or_null()),
        ("role", JsonShape::text().or_null()),
        ("is_etcd_member", JsonShape::boolean()),
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

fn is_etcd_member(ours: &ServerOwners, member: &Member) -> bool {
    cluster_of(ours, member).is_some_and(|(cluster, groups)| {
        EtcdQuorum::of(cluster, groups).members.contains(&member.machine)
    })
}

fn machine<'a>(ours: &ServerOwners, member: &Member, server: &'a Server) -> ShownMachine<'a> {
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
    let quorum = EtcdQuorum::of(cluster, groups);
    let here = host.servers.iter().filter_map(|server| match host.ours.servers.get(&server.id) {
        Some(OwnServer::Member(member)) if member.cluster == cluster.id => {
            Some(machine(&host.ours, member, server))
        }
        Some(OwnServer::Member(_) | OwnServer::Vm(_)) | None => None,
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

fn own<'a>(ours: &ServerOwners, server: &'a Server) -> Option<ShownOwn<'a>> {
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
        drain: Option<drain_view::Shown<'a>>,
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
            drain: of_hosts.remove(service.host.as_str()).map(drain_view::shown),
        })
        .collect();
    hosts.extend(of_hosts.into_iter().map(|(host, drain)| Listed {
        host,
        zone: None,
        service: None,
        drain: Some(drain_view::shown(drain)),
    }));
    Ok(json(StatusCode::OK, &Body { hosts }))
}

/// `GET /bedplate/v1/hosts/{host}`: the members and VMs on a host, and only the number of other servers.
async fn show(
    _caller: Caller,
    State(app): State<App>,
    PathParam(name): PathParam<String>,
) -> Result<Response, Error> {
    #[derive(Serialize)]
    struct Body<'a> {
        host: &'a str,
        service: ShownService<'a>,
        clusters: Vec<ShownCluster<'a>>,
        machines: Vec<ShownOwn<'a>>,
        foreign: usize,
        drain: Option<drain_view::Shown<'a>>,
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
        drain: drain.as_ref().map(drain_view::shown),
    };
    Ok(json(StatusCode::OK, &body))
}

/// `GET /bedplate/v1/places/{thing}`: the hosts of a cluster, a VM or a server, by id or name. Lists everything that has this name.
async fn find(
    _caller: Caller,
    State(app): State<App>,
    PathParam(thing): PathParam<String>,
) -> Result<Response, Error> {
    #[derive(Serialize)]
    struct ClusterRef<'a> {
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
        cluster: Option<ClusterRef<'a>>,
        machine: Option<String>,
        role: Option<&'static str>,
        is_etcd_member: bool,
        own: Option<ShownOwn<'a>>,
    }
    #[derive(Serialize)]
    struct Body<'a> {
        places: Vec<Place<'a>>,
    }
    let ServersWithHosts { servers, ours } = app.conductor.places(&thing).await?;
    let places = servers.iter().map(|server| {
        let member = match ours.servers.get(&server.id) {
            Some(OwnServer::Member(member)) => Some(member),
            Some(OwnServer::Vm(_)) | None => None,
        };
        let cluster = member.and_then(|member| cluster_of(&ours, member));
        Place {
            server_id: &server.id,
            name: &server.name,
            status: server.status.as_str(),
            host: server.host.as_deref(),
            cluster: cluster.map(|(cluster, _)| ClusterRef {
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
