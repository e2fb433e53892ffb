//! Compute hosts and the places of servers in responses.

use std::collections::BTreeMap;

use cluster_conductor::{
    ComputeService, Host, Role, Server, ServersWithHosts, cluster_of, role, vm_of,
};
use cluster_core::{Cluster, Drain, EtcdQuorum, Member, NodeGroup, OwnServer};
use cluster_store::ServerOwners;
use openstack_api::{JsonShape, shaped};
use serde::Serialize;

use super::super::drain_view;

/// The compute hosts of the cloud.
#[derive(Serialize)]
pub(super) struct HostList<'a> {
    hosts: Vec<ListedHost<'a>>,
}

shaped! {
    #[derive(Serialize)]
    pub(super) struct ListedHost<'a> {
        host: &'a str,
        zone: Option<&'a str>,
        service: Option<ShownService<'a>>,
        drain: Option<drain_view::Shown<'a>> = JsonShape::either(drain_view::Shown::shape(), JsonShape::null()),
    }
}

impl<'a> HostList<'a> {
    /// Every host with a compute service, and then the hosts of which only a drain is known.
    pub(super) fn new(services: &'a [ComputeService], drains: &'a [Drain]) -> Self {
        let mut of_hosts: BTreeMap<&str, &Drain> =
            drains.iter().map(|drain| (drain.host.as_str(), drain)).collect();
        let mut hosts: Vec<ListedHost<'_>> = services
            .iter()
            .map(|service| ListedHost {
                host: &service.host,
                zone: service.zone.as_deref(),
                service: Some(ShownService::of(service)),
                drain: of_hosts.remove(service.host.as_str()).map(drain_view::shown),
            })
            .collect();
        hosts.extend(of_hosts.into_iter().map(|(host, drain)| ListedHost {
            host,
            zone: None,
            service: None,
            drain: Some(drain_view::shown(drain)),
        }));
        HostList { hosts }
    }
}

shaped! {
    /// A host with the members and VMs on it, and the number of other servers.
    #[derive(Serialize)]
    pub(super) struct HostView<'a> {
        host: &'a str,
        service: ShownService<'a>,
        clusters: Vec<ShownCluster<'a>>,
        machines: Vec<ShownOwn<'a>>,
        foreign: usize,
        drain: Option<drain_view::Shown<'a>> = JsonShape::either(drain_view::Shown::shape(), JsonShape::null()),
    }
}

impl<'a> HostView<'a> {
    pub(super) fn new(host: &'a Host, drain: Option<&'a Drain>) -> Self {
        let clusters = host.ours.clusters.iter();
        HostView {
            host: host.name.as_str(),
            service: ShownService::of(&host.service),
            clusters: clusters.map(|(it, groups)| cluster(host, it, groups)).collect(),
            machines: host.servers.iter().filter_map(|server| own(&host.ours, server)).collect(),
            foreign: host.foreign(),
            drain: drain.map(drain_view::shown),
        }
    }
}

/// Servers with their hosts.
#[derive(Serialize)]
pub(super) struct PlaceList<'a> {
    places: Vec<Place<'a>>,
}

shaped! {
    #[derive(Serialize)]
    pub(super) struct Place<'a> {
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
}

shaped! {
    #[derive(Serialize)]
    struct ClusterRef<'a> {
        uuid: String,
        name: &'a str,
        project_id: &'a str,
    }
}

impl<'a> PlaceList<'a> {
    pub(super) fn new(ServersWithHosts { servers, ours }: &'a ServersWithHosts) -> Self {
        PlaceList { places: servers.iter().map(|server| Place::new(ours, server)).collect() }
    }
}

impl<'a> Place<'a> {
    fn new(ours: &'a ServerOwners, server: &'a Server) -> Self {
        let member = match ours.servers.get(&server.id) {
            Some(OwnServer::Member(member)) => Some(member),
            Some(OwnServer::Vm(_)) | None => None,
        };
        let cluster = member.and_then(|member| cluster_of(ours, member));
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
            role: member.and_then(|member| role(ours, member)).map(word),
            is_etcd_member: member.is_some_and(|member| is_etcd_member(ours, member)),
            own: own(ours, server),
        }
    }
}

shaped! {
    /// A host's compute service in a response.
    #[derive(Serialize)]
    struct ShownService<'a> {
        status: &'a str,
        state: &'a str,
        disabled_reason: Option<&'a str>,
    }
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

shaped! {
    #[derive(Serialize)]
    struct ShownMachine<'a> {
        machine: String,
        name: &'a str,
        role: Option<&'static str>,
        is_etcd_member: bool,
        server_id: &'a str,
        status: &'a str,
    }
}

shaped! {
    #[derive(Serialize)]
    struct ShownEtcd {
        members: Vec<String>,
        needed: usize,
        /// Members that are already away because of a drain.
        away: Vec<String>,
    }
}

shaped! {
    #[derive(Serialize)]
    struct ShownCluster<'a> {
        uuid: String,
        name: &'a str,
        project_id: &'a str,
        etcd: ShownEtcd,
        machines: Vec<ShownMachine<'a>>,
    }
}

shaped! {
    #[derive(Serialize)]
    struct ShownOwn<'a> {
        uuid: String,
        name: String,
        project_id: String,
        user_id: String,
        server_id: &'a str,
        status: &'a str,
    }
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
