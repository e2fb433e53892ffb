//! Objects of each service as a cluster's own.

use cluster_core::{Facts, Found, FoundState};
use openstack::block_storage::volumes::{Volume, VolumeStatus};
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

/// What a service's list shows of a cluster's.
pub(crate) trait Listed: Sized {
    /// Its id.
    fn id(&self) -> &str;
    /// What its maker called it.
    fn name(&self) -> &str;
    /// As a cluster's own; what of it may change is not in it.
    fn found(&self) -> Found;
    /// The one with this id, by the service's own word and not a list's.
    async fn show(session: &Session, id: &str) -> Result<Option<Self>, CloudError>;
}

/// A credential, which is as it should be or not there.
pub(crate) fn credential(of: &ApplicationCredential) -> Found {
    ready(&of.id)
}

/// A volume, as far as it matters to who wants it gone.
pub(crate) fn volume(of: &Volume) -> Found {
    let state = match &of.status {
        VolumeStatus::Deleting => FoundState::Leaving,
        VolumeStatus::Detaching | VolumeStatus::Attaching => FoundState::Working,
        VolumeStatus::Creating
        | VolumeStatus::Available
        | VolumeStatus::Reserved
        | VolumeStatus::InUse
        | VolumeStatus::Downloading
        | VolumeStatus::Error
        | VolumeStatus::ErrorDeleting
        | VolumeStatus::Other(_) => FoundState::Ready,
    };
    Found { state, ..ready(&of.id) }
}

fn ready(id: &str) -> Found {
    Found { id: id.to_owned(), state: FoundState::Ready, address: None, facts: Facts::None }
}

/// What Neutron's status says. A port that nobody uses is `DOWN`, and as it should be.
fn of_network(status: &str) -> FoundState {
    match status {
        "ERROR" => FoundState::Failed("Neutron says ERROR".to_owned()),
        _ => FoundState::Ready,
    }
}

impl Listed for Network {
    fn id(&self) -> &str {
        &self.id
    }
    fn name(&self) -> &str {
        &self.name
    }
    fn found(&self) -> Found {
        Found { state: of_network(&self.status), ..ready(&self.id) }
    }
    async fn show(session: &Session, id: &str) -> Result<Option<Self>, CloudError> {
        networks::show(session, id).await
    }
}

impl Listed for Subnet {
    fn id(&self) -> &str {
        &self.id
    }
    fn name(&self) -> &str {
        &self.name
    }
    fn found(&self) -> Found {
        ready(&self.id)
    }
    async fn show(session: &Session, id: &str) -> Result<Option<Self>, CloudError> {
        subnets::show(session, id).await
    }
}

impl Listed for Router {
    fn id(&self) -> &str {
        &self.id
    }
    fn name(&self) -> &str {
        &self.name
    }
    fn found(&self) -> Found {
        let gateway = self.gateway.as_ref();
        let address = gateway.and_then(|it| it.addresses.first()).map(|it| it.ip_address);
        Found { state: of_network(&self.status), address, ..ready(&self.id) }
    }
    async fn show(session: &Session, id: &str) -> Result<Option<Self>, CloudError> {
        routers::show(session, id).await
    }
}

impl Listed for SecurityGroup {
    fn id(&self) -> &str {
        &self.id
    }
    fn name(&self) -> &str {
        &self.name
    }
    fn found(&self) -> Found {
        ready(&self.id)
    }
    async fn show(session: &Session, id: &str) -> Result<Option<Self>, CloudError> {
        security_groups::show(session, id).await
    }
}

impl Listed for ServerGroup {
    fn id(&self) -> &str {
        &self.id
    }
    fn name(&self) -> &str {
        &self.name
    }
    fn found(&self) -> Found {
        ready(&self.id)
    }
    async fn show(session: &Session, id: &str) -> Result<Option<Self>, CloudError> {
        server_groups::show(session, id).await
    }
}

impl Listed for Port {
    fn id(&self) -> &str {
        &self.id
    }
    fn name(&self) -> &str {
        &self.name
    }
    fn found(&self) -> Found {
        let address = self.fixed_ips.first().map(|fixed| fixed.ip_address);
        Found { state: of_network(&self.status), address, ..ready(&self.id) }
    }
    async fn show(session: &Session, id: &str) -> Result<Option<Self>, CloudError> {
        ports::show(session, id).await
    }
}

impl Listed for FloatingIp {
    fn id(&self) -> &str {
        &self.id
    }
    fn name(&self) -> &str {
        &self.description
    }
    fn found(&self) -> Found {
        let state = match self.port_id {
            // It lost its port, and is of no use: it is given back, and another one taken.
            None => FoundState::Failed("it leads nowhere".to_owned()),
            Some(_) => of_network(&self.status),
        };
        Found { state, address: Some(self.address), ..ready(&self.id) }
    }
    async fn show(session: &Session, id: &str) -> Result<Option<Self>, CloudError> {
        floating_ips::show(session, id).await
    }
}

impl Listed for Server {
    fn id(&self) -> &str {
        &self.id
    }
    fn name(&self) -> &str {
        &self.name
    }
    fn found(&self) -> Found {
        let is_leaving = self.task_state.as_deref() == Some("deleting");
        let state = match &self.status {
            ServerStatus::Deleted | ServerStatus::SoftDeleted => FoundState::Leaving,
            _ if is_leaving => FoundState::Leaving,
            ServerStatus::Error => {
                let told = self.fault.as_ref().map(|fault| fault.message.clone());
                FoundState::Failed(told.unwrap_or_else(|| "Nova says ERROR".to_owned()))
            }
            ServerStatus::Build => FoundState::Working,
            // It is there. Whether it is of use, its node says.
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
            | ServerStatus::Other(_) => FoundState::Ready,
        };
        Found { state, ..ready(&self.id) }
    }
    async fn show(session: &Session, id: &str) -> Result<Option<Self>, CloudError> {
        servers::show(session, id).await
    }
}

impl Listed for LoadBalancer {
    fn id(&self) -> &str {
        &self.id
    }
    fn name(&self) -> &str {
        &self.name
    }
    fn found(&self) -> Found {
        let state = match &self.provisioning_status {
            ProvisioningStatus::Active => FoundState::Ready,
            ProvisioningStatus::PendingDelete | ProvisioningStatus::Deleted => FoundState::Leaving,
            ProvisioningStatus::Error => FoundState::Failed("Octavia says ERROR".to_owned()),
            ProvisioningStatus::PendingCreate
            | ProvisioningStatus::PendingUpdate
            | ProvisioningStatus::Other(_) => FoundState::Working,
        };
        Found { state, address: self.vip_address, ..ready(&self.id) }
    }
    async fn show(session: &Session, id: &str) -> Result<Option<Self>, CloudError> {
        let found = load_balancers::show(session, id).await?;
        Ok(found.filter(|it| it.provisioning_status != ProvisioningStatus::Deleted))
    }
}

/// A set of records, with the addresses it leads to.
pub(crate) fn record(of: &Recordset, is_leaving: bool) -> Found {
    let state = match &of.status {
        DnsStatus::Active => FoundState::Ready,
        DnsStatus::Error => FoundState::Failed("Designate says ERROR".to_owned()),
        DnsStatus::Deleted => FoundState::Leaving,
        // It says PENDING of what it deletes as well.
        DnsStatus::Pending if is_leaving => FoundState::Leaving,
        DnsStatus::Pending | DnsStatus::Inactive | DnsStatus::Other(_) => FoundState::Working,
    };
    let addresses = of.records.iter().map(|text| text.parse().ok()).collect::<Option<_>>();
    let facts = addresses.map_or(Facts::None, Facts::Addresses);
    Found { state, facts, ..ready(&of.id) }
}
