//! Translates objects of OpenStack services into observed objects.

use cluster_core::{CloudObject, CloudObjectDetails, CloudObjectState, ServerDetails, ServerState};
use openstack::block_storage::volumes::{self, Volume, VolumeStatus};
use openstack::compute::server_groups::{self, ServerGroup};
use openstack::compute::servers::{self, Server, ServerStatus};
use openstack::dns::DnsStatus;
use openstack::dns::recordsets::Recordset;
use openstack::identity::application_credentials::ApplicationCredential;
use openstack::load_balancer::ProvisioningStatus;
use openstack::load_balancer::load_balancers::{self, LoadBalancer};
use openstack::network::floating_ips::{self, FloatingIp};
use openstack::network::networks::{self, Network};
use openstack::network::ports::{self, Port};
use openstack::network::routers::{self, Router};
use openstack::network::security_groups::{self, SecurityGroup};
use openstack::network::subnets::{self, Subnet};
use openstack::{CloudError, Session};

/// An object as the list of a service shows it.
pub(crate) trait Listed: Sized {
    fn id(&self) -> &str;
    /// The text in which clusterd writes the object's name: the name, or the description where names do not exist.
    fn name(&self) -> &str;
    /// Translates the object. Properties that change, such as rules or members, are not included.
    fn found(&self) -> CloudObject;
    /// Fetches the object with this id. Lists of a service may lag behind, this call does not.
    async fn show(session: &Session, id: &str) -> Result<Option<Self>, CloudError>;
}

/// Translates an application credential, which has no state but existence.
pub(crate) fn credential(of: &ApplicationCredential) -> CloudObject {
    ready(&of.id)
}

/// Translates a volume that Kubernetes created. clusterd only deletes such volumes, so a failed volume counts as ready.
pub(crate) fn volume(of: &Volume) -> CloudObject {
    let state = match &of.status {
        VolumeStatus::Deleting => CloudObjectState::Deleting,
        VolumeStatus::Detaching | VolumeStatus::Attaching => CloudObjectState::Working,
        VolumeStatus::Creating
        | VolumeStatus::Available
        | VolumeStatus::Reserved
        | VolumeStatus::InUse
        | VolumeStatus::Downloading
        | VolumeStatus::Error
        | VolumeStatus::ErrorDeleting
        | VolumeStatus::Other(_) => CloudObjectState::Ready,
    };
    CloudObject { state, ..ready(&of.id) }
}

fn ready(id: &str) -> CloudObject {
    CloudObject {
        id: id.to_owned(),
        state: CloudObjectState::Ready,
        address: None,
        facts: CloudObjectDetails::None,
    }
}

/// Translates a status of Neutron. An unused port is `DOWN`, which is normal.
fn of_network(status: &str) -> CloudObjectState {
    match status {
        "ERROR" => CloudObjectState::Failed("Neutron reports ERROR".to_owned()),
        _ => CloudObjectState::Ready,
    }
}

/// Implements `Listed` for a type, with the field of the name, the function that fetches by id, and the function that translates.
macro_rules! listed {
    ($($type:ty: $name:ident, $asked:path, $found:path;)*) => {$(
        impl Listed for $type {
            fn id(&self) -> &str {
                &self.id
            }
            fn name(&self) -> &str {
                &self.$name
            }
            fn found(&self) -> CloudObject {
                $found(self)
            }
            async fn show(session: &Session, id: &str) -> Result<Option<Self>, CloudError> {
                $asked(session, id).await
            }
        }
    )*};
}

listed! {
    Network: name, networks::show, network;
    Subnet: name, subnets::show, subnet;
    Router: name, routers::show, router;
    SecurityGroup: name, security_groups::show, security_group;
    ServerGroup: name, server_groups::show, server_group;
    Port: name, ports::show, port;
    FloatingIp: description, floating_ips::show, floating_ip;
    Server: name, servers::show, server;
    Volume: name, volumes::show, root_volume;
    LoadBalancer: name, balancer_that_is_there, balancer;
}

fn network(of: &Network) -> CloudObject {
    CloudObject { state: of_network(&of.status), ..ready(&of.id) }
}

fn subnet(of: &Subnet) -> CloudObject {
    ready(&of.id)
}

fn router(of: &Router) -> CloudObject {
    let gateway = of.gateway.as_ref();
    let address = gateway.and_then(|it| it.addresses.first()).map(|it| it.ip_address);
    CloudObject { state: of_network(&of.status), address, ..ready(&of.id) }
}

fn security_group(of: &SecurityGroup) -> CloudObject {
    ready(&of.id)
}

fn server_group(of: &ServerGroup) -> CloudObject {
    ready(&of.id)
}

fn port(of: &Port) -> CloudObject {
    let address = of.fixed_ips.first().map(|fixed| fixed.ip_address);
    CloudObject { state: of_network(&of.status), address, ..ready(&of.id) }
}

fn floating_ip(of: &FloatingIp) -> CloudObject {
    let state = match of.port_id {
        // A floating IP without a port is of no use: it is deleted, and another one created.
        None => CloudObjectState::Failed("lost its port".to_owned()),
        Some(_) => of_network(&of.status),
    };
    CloudObject { state, address: Some(of.address), ..ready(&of.id) }
}

fn server(of: &Server) -> CloudObject {
    let is_leaving = of.task_state.as_deref() == Some("deleting");
    let state = match &of.status {
        ServerStatus::Deleted | ServerStatus::SoftDeleted => CloudObjectState::Deleting,
        _ if is_leaving => CloudObjectState::Deleting,
        ServerStatus::Error => {
            let fault = of.fault.as_ref().map(|fault| fault.message.clone());
            CloudObjectState::Failed(fault.unwrap_or_else(|| "Nova reports ERROR".to_owned()))
        }
        ServerStatus::Build => CloudObjectState::Working,
        // The server exists. The state of its Kubernetes node tells whether it works.
        ServerStatus::Active
        | ServerStatus::Shutoff
        | ServerStatus::Reboot
        | ServerStatus::HardReboot
        | ServerStatus::Resize
        | ServerStatus::VerifyResize
        | ServerStatus::RevertResize
        | ServerStatus::Migrating
        | ServerStatus::Rebuild
        | ServerStatus::Paused
        | ServerStatus::Suspended
        | ServerStatus::ShelvedOffloaded
        | ServerStatus::Unknown
        | ServerStatus::Other(_) => CloudObjectState::Ready,
    };
    CloudObject { state, facts: CloudObjectDetails::Server(server_facts(of)), ..ready(&of.id) }
}

/// Translates the state of a server for VMs.
fn server_facts(of: &Server) -> ServerDetails {
    let is_leaving = of.task_state.as_deref() == Some("deleting");
    let is = match &of.status {
        ServerStatus::Deleted | ServerStatus::SoftDeleted => ServerState::Leaving,
        _ if is_leaving => ServerState::Leaving,
        ServerStatus::Build => ServerState::Building,
        ServerStatus::Active => ServerState::On,
        ServerStatus::Shutoff => ServerState::Off,
        ServerStatus::VerifyResize => ServerState::Resized,
        ServerStatus::Reboot
        | ServerStatus::HardReboot
        | ServerStatus::Resize
        | ServerStatus::RevertResize
        | ServerStatus::Migrating
        | ServerStatus::Rebuild => ServerState::Changing,
        ServerStatus::Error => {
            let fault = of.fault.as_ref().map(|fault| fault.message.clone());
            ServerState::Failed(fault.unwrap_or_else(|| "Nova reports ERROR".to_owned()))
        }
        ServerStatus::Paused
        | ServerStatus::Suspended
        | ServerStatus::ShelvedOffloaded
        | ServerStatus::Unknown
        | ServerStatus::Other(_) => ServerState::Other(of.status.as_str().to_owned()),
    };
    let flavor = of.flavor.original_name.clone();
    ServerDetails { is, is_busy: of.task_state.is_some(), flavor }
}

/// Translates the volume that a VM boots from.
fn root_volume(of: &Volume) -> CloudObject {
    let state = match &of.status {
        VolumeStatus::Deleting => CloudObjectState::Deleting,
        VolumeStatus::Creating | VolumeStatus::Downloading => CloudObjectState::Working,
        VolumeStatus::Error => CloudObjectState::Failed("Cinder reports error".to_owned()),
        VolumeStatus::Attaching
        | VolumeStatus::Detaching
        | VolumeStatus::Available
        | VolumeStatus::Reserved
        | VolumeStatus::InUse
        | VolumeStatus::ErrorDeleting
        | VolumeStatus::Other(_) => CloudObjectState::Ready,
    };
    CloudObject { state, ..ready(&of.id) }
}

fn balancer(of: &LoadBalancer) -> CloudObject {
    let state = match &of.provisioning_status {
        ProvisioningStatus::Active => CloudObjectState::Ready,
        ProvisioningStatus::PendingDelete | ProvisioningStatus::Deleted => {
            CloudObjectState::Deleting
        }
        ProvisioningStatus::Error => CloudObjectState::Failed("Octavia reports ERROR".to_owned()),
        ProvisioningStatus::PendingCreate
        | ProvisioningStatus::PendingUpdate
        | ProvisioningStatus::Other(_) => CloudObjectState::Working,
    };
    CloudObject { state, address: of.vip_address, ..ready(&of.id) }
}

/// Whether a part of an ACTIVE load balancer makes no progress any more: a part that Octavia works on locks its load balancer.
pub(crate) fn is_stuck(status: &ProvisioningStatus) -> bool {
    match status {
        ProvisioningStatus::PendingCreate
        | ProvisioningStatus::PendingUpdate
        | ProvisioningStatus::PendingDelete
        | ProvisioningStatus::Error => true,
        ProvisioningStatus::Active | ProvisioningStatus::Deleted | ProvisioningStatus::Other(_) => {
            false
        }
    }
}

async fn balancer_that_is_there(
    session: &Session,
    id: &str,
) -> Result<Option<LoadBalancer>, CloudError> {
    let found = load_balancers::show(session, id).await?;
    Ok(found.filter(|it| it.provisioning_status != ProvisioningStatus::Deleted))
}

/// Translates a set of DNS records, with its addresses.
pub(crate) fn record(of: &Recordset, is_leaving: bool) -> CloudObject {
    let state = match &of.status {
        DnsStatus::Active => CloudObjectState::Ready,
        DnsStatus::Error => CloudObjectState::Failed("Designate reports ERROR".to_owned()),
        DnsStatus::Deleted => CloudObjectState::Deleting,
        // Designate reports PENDING for records that it deletes, too.
        DnsStatus::Pending if is_leaving => CloudObjectState::Deleting,
        DnsStatus::Pending | DnsStatus::Inactive | DnsStatus::Other(_) => CloudObjectState::Working,
    };
    let addresses = of.records.iter().map(|text| text.parse().ok()).collect::<Option<_>>();
    let facts = addresses.map_or(CloudObjectDetails::None, CloudObjectDetails::Addresses);
    CloudObject { state, facts, ..ready(&of.id) }
}

#[cfg(test)]
mod tests;
