//! The cloud's compute hosts, as administrators see them: the servers on a host, and the hosts of a cluster or VM.

use std::collections::BTreeSet;

use cluster_core::{
    Cluster, ComputeServiceState, GroupRole, HostName, HostObservation, Ident, Member, NodeGroup,
    OwnServer, ServerCondition, ServerOnHost, ServerOwner, Vm, tag, vm_tag,
};
use cluster_store::{Scope, ServerOwners, StoreError, VmScope};
use jiff::Timestamp;
use openstack::compute::hosts;
use openstack::compute::servers::{self, Server, ServerStatus};
use openstack::compute::services::{self, ComputeService, Status};
use openstack::{CloudError, Session};

use crate::Conductor;
use crate::context::ConductorContext;

/// The start of the reason with which clusterd disables a compute service. A service that was disabled with another reason belongs to an
/// operator.
pub(crate) const OUR_REASON: &str = "bedplate: drained";
/// How many clusters and VMs with the same name are looked up.
const MAX_LOOKUPS: usize = 100;

/// Why nothing can be said about a host.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    #[error("clusterd has no cloud configured, so it knows no hosts")]
    NoCloud,
    /// The text is Nova's own.
    #[error("Host {0} could not be found.")]
    NoHost(HostName),
    /// clusterd's user is not an administrator of the cloud.
    #[error(
        "clusterd's user may not see the cloud's hosts: let an administrator of the cloud grant it the role admin in its project"
    )]
    NotAdmin(#[source] CloudError),
    #[error("cannot read the hosts from the cloud")]
    Cloud(#[source] CloudError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<CloudError> for HostError {
    fn from(error: CloudError) -> Self {
        let is_refused = matches!(error, CloudError::Forbidden(_));
        if is_refused { HostError::NotAdmin(error) } else { HostError::Cloud(error) }
    }
}

/// A compute host with its servers.
#[derive(Clone, Debug)]
pub struct Host {
    /// The name that servers have as their host.
    pub name: HostName,
    pub service: ComputeService,
    /// The servers on the host, of all projects.
    pub servers: Vec<Server>,
    /// The cluster members and VMs among the servers.
    pub ours: ServerOwners,
}

/// Servers with their hosts.
#[derive(Clone, Debug, Default)]
pub struct ServersWithHosts {
    pub servers: Vec<Server>,
    /// The cluster members and VMs among the servers.
    pub ours: ServerOwners,
}

impl Conductor {
    /// Returns the host of this name, or the host of the hypervisor of this name, with its servers. Takes one or two calls for the host,
    /// one for its servers, and one query of the store.
    ///
    /// # Errors
    ///
    /// When there is no such host, or the cloud does not answer.
    pub async fn host(&self, name: &HostName) -> Result<Host, HostError> {
        self.context.host(name).await
    }

    /// Returns the compute services of all hosts, sorted by host. Takes one call.
    ///
    /// # Errors
    ///
    /// When the cloud does not answer.
    pub async fn hosts(&self) -> Result<Vec<ComputeService>, HostError> {
        Ok(services::list_compute(self.context.administrator()?).await?)
    }

    /// Returns the servers of a cluster or a VM, by its id or name, or a server by its id or name.
    ///
    /// # Errors
    ///
    /// When the cloud does not answer.
    pub async fn places(&self, thing: &str) -> Result<ServersWithHosts, HostError> {
        self.context.places(thing).await
    }
}

impl ConductorContext {
    /// Returns the session of the administrator, who may see hosts.
    pub(crate) fn administrator(&self) -> Result<&Session, HostError> {
        Ok(self.cloud.as_ref().ok_or(HostError::NoCloud)?.own())
    }

    pub(crate) async fn host(&self, name: &HostName) -> Result<Host, HostError> {
        let session = self.administrator()?;
        let missing = || HostError::NoHost(name.clone());
        let service = match services::find_compute(session, name.as_str()).await? {
            Some(service) => service,
            None => {
                let host = hosts::host_of_hypervisor(session, name.as_str()).await?;
                let host = host.ok_or_else(missing)?;
                services::find_compute(session, &host).await?.ok_or_else(missing)?
            }
        };
        let servers = hosts::servers(session, &service.host).await?;
        let name = service.host.parse().map_err(|_| missing())?;
        let ours = self.store.server_owners(&ids(&servers)).await?;
        Ok(Host { name, service, servers, ours })
    }

    async fn places(&self, thing: &str) -> Result<ServersWithHosts, HostError> {
        let session = self.administrator()?;
        let mut servers: Vec<Server> = Vec::new();
        if let Ok(ident) = thing.parse::<Ident>() {
            let clusters = self.store.find_clusters(&ident, &Scope::All).await?;
            let vms = self.store.find_vms(&ident, &VmScope::All).await?;
            let tags =
                clusters.iter().map(|it| tag(it.id)).chain(vms.iter().map(|it| vm_tag(it.id)));
            for tag in tags.take(MAX_LOOKUPS) {
                servers.extend(hosts::tagged(session, &tag).await?);
            }
            if servers.is_empty() {
                servers = match ident {
                    Ident::Id(id) => {
                        servers::show(session, &id.to_string()).await?.into_iter().collect()
                    }
                    Ident::Name(_) => hosts::named(session, thing).await?,
                };
            }
        }
        let ours = self.store.server_owners(&ids(&servers)).await?;
        Ok(ServersWithHosts { servers, ours })
    }
}

fn ids(servers: &[Server]) -> Vec<String> {
    servers.iter().map(|server| server.id.clone()).collect()
}

impl Host {
    /// Returns the members of clusters on the host.
    pub fn members(&self) -> BTreeSet<Member> {
        let member = |known: &OwnServer| match known {
            OwnServer::Member(member) => Some(member.clone()),
            OwnServer::Vm(_) => None,
        };
        self.ours.servers.values().filter_map(member).collect()
    }

    /// Returns how many servers on the host do not belong to clusterd.
    pub fn foreign(&self) -> usize {
        self.servers.iter().filter(|server| !self.ours.servers.contains_key(&server.id)).count()
    }

    /// Returns the observation of the host for a drain.
    pub(crate) fn seen(&self, at: Timestamp) -> HostObservation {
        let is_ours = |reason: &String| reason.starts_with(OUR_REASON);
        let service = match (&self.service.status, &self.service.disabled_reason) {
            (Status::Enabled, _) => ComputeServiceState::Enabled,
            (Status::Disabled | Status::Other(_), Some(reason)) if is_ours(reason) => {
                ComputeServiceState::DisabledByUs
            }
            (Status::Disabled | Status::Other(_), _) => ComputeServiceState::DisabledByOthers,
        };
        let servers = self.servers.iter().map(|server| ServerOnHost {
            id: server.id.clone(),
            name: server.name.clone(),
            carried: carried(server, &self.ours),
            condition: condition(server),
        });
        HostObservation {
            at,
            service,
            service_id: self.service.id.clone(),
            members: self.members(),
            servers: servers.collect(),
        }
    }
}

fn carried(server: &Server, ours: &ServerOwners) -> ServerOwner {
    match ours.servers.get(&server.id) {
        None => ServerOwner::Foreign,
        Some(what) => {
            let is_worker = match what {
                OwnServer::Member(member) => role(ours, member) == Some(Role::Worker),
                OwnServer::Vm(_) => false,
            };
            ServerOwner::Ours { what: what.clone(), is_worker }
        }
    }
}

/// The role of a cluster member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Control plane; also a member of etcd once it is a Kubernetes node.
    ControlPlane,
    Worker,
}

/// Returns the role of a member, if the member still belongs to its cluster.
pub fn role(ours: &ServerOwners, member: &Member) -> Option<Role> {
    let (_, groups) = cluster_of(ours, member)?;
    let group = groups.iter().find(|group| group.name == member.machine.group)?;
    Some(match group.role {
        GroupRole::Master => Role::ControlPlane,
        GroupRole::Worker(_) => Role::Worker,
    })
}

/// Returns the cluster of a member, with its node groups.
pub fn cluster_of<'b>(
    ours: &'b ServerOwners,
    member: &Member,
) -> Option<(&'b Cluster, &'b [NodeGroup])> {
    let found = ours.clusters.iter().find(|(cluster, _)| cluster.id == member.cluster);
    found.map(|(cluster, groups)| (cluster, groups.as_slice()))
}

/// Returns the VM that a server is.
pub fn vm_of(ours: &ServerOwners, known: &OwnServer) -> Option<Vm> {
    match known {
        OwnServer::Vm(id) => ours.vms.iter().find(|vm| vm.id == *id).cloned(),
        OwnServer::Member(_) => None,
    }
}

/// Returns the state of a server for a drain (Compute API guide, "Live migration": servers that are ACTIVE or PAUSED can migrate).
fn condition(server: &Server) -> ServerCondition {
    match (&server.status, server.task_state.as_deref()) {
        (ServerStatus::Migrating, _) | (_, Some("migrating")) => ServerCondition::Moves,
        (ServerStatus::Error, _) => failed("it is in ERROR"),
        (_, Some(_)) => ServerCondition::Busy,
        (ServerStatus::Active | ServerStatus::Paused, None) => ServerCondition::Runs,
        (
            ServerStatus::Shutoff
            | ServerStatus::Suspended
            | ServerStatus::ShelvedOffloaded
            | ServerStatus::SoftDeleted
            | ServerStatus::Deleted,
            None,
        ) => ServerCondition::Off,
        (ServerStatus::VerifyResize, None) => {
            failed("its new size must be confirmed or reverted first")
        }
        (ServerStatus::Unknown, None) => failed("Nova does not know its state"),
        (
            ServerStatus::Build
            | ServerStatus::Reboot
            | ServerStatus::HardReboot
            | ServerStatus::Resize
            | ServerStatus::RevertResize
            | ServerStatus::Rebuild
            | ServerStatus::Other(_),
            None,
        ) => ServerCondition::Busy,
    }
}

fn failed(why: &str) -> ServerCondition {
    ServerCondition::Failed(why.to_owned())
}
