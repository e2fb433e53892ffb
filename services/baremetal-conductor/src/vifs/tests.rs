//! Tests of VIFs with an emulated OpenStack.

use baremetal_core::{Driver, NodeUuid, Port as NodePort, PortUuid};
use jiff::Timestamp;
use openstack::network::networks::NewNetwork;
use openstack::network::ports::NewPort;
use openstack::network::subnets::{self, NewSubnet};
use openstack_emulator::{Act, Cloud, Emulator, Rule, Settings};

use super::*;
use crate::problem::ActionError;
use crate::samples::{MAC, conductor, session_of_admin, settings};

/// A conductor with a cloud, a node with one port, and a port in Neutron.
struct VifSite {
    cloud: Cloud,
    session: Session,
    conductor: Conductor,
    node: Node,
    vif: String,
    _emulator: Emulator,
}

impl VifSite {
    async fn start() -> VifSite {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let emulator = Emulator::start(Settings::default()).await.unwrap();
        let cloud = emulator.cloud.clone();
        let session = session_of_admin(&cloud);
        let settings = crate::Settings { cloud: Some(session.clone()), ..settings() };
        let conductor = conductor(settings).await;
        let store = &conductor.context.store;
        let now = Timestamp::now();
        let node = Node::new(NodeUuid::new_v4(), Driver::Redfish, now);
        store.insert_node(&node).await.unwrap();
        store.insert_port(&NodePort::new(PortUuid::new_v4(), node.id, MAC, now)).await.unwrap();
        let vif = neutron_port(&session).await;
        VifSite { cloud, session, conductor, node, vif, _emulator: emulator }
    }

    async fn attach(&mut self) {
        let store = &self.conductor.context.store;
        let mut ports = store.ports_of(self.node.id).await.unwrap();
        ports[0].vif = Some(self.vif.clone());
        self.node = store.update_vifs(&self.node, &ports, &[]).await.unwrap();
    }

    async fn bind(&self) -> Result<(), Problem> {
        machine(self.conductor.context.bind_vifs(&self.node).await)
    }

    async fn detach(&self) -> Result<Node, Problem> {
        machine(self.conductor.context.detach_vifs(&self.node).await)
    }

    async fn port(&self) -> Port {
        ports::show(&self.session, &self.vif).await.unwrap().unwrap()
    }
}

fn machine<T>(performed: Result<T, ActionError>) -> Result<T, Problem> {
    performed.map_err(|error| match error {
        ActionError::Machine(problem) => problem,
        ActionError::Store(_) | ActionError::LeasePassed(_) => panic!("{error}"),
    })
}

async fn neutron_port(session: &Session) -> String {
    let new = NewNetwork { name: "tenants".to_owned(), ..NewNetwork::default() };
    let network = networks::create(session, &new).await.unwrap().id;
    let subnet = NewSubnet {
        name: "tenants".to_owned(),
        network_id: network.clone(),
        cidr: "10.9.0.0/24".to_owned(),
        dns_nameservers: Vec::new(),
    };
    subnets::create(session, &subnet).await.unwrap();
    let new = NewPort { name: "tenant".to_owned(), network_id: network, ..NewPort::default() };
    ports::create(session, &new).await.unwrap().id
}

#[tokio::test]
async fn the_port_of_a_vif_is_bound_to_the_machine_and_released() {
    let mut site = VifSite::start().await;
    let refused = site.bind().await.unwrap_err();
    assert_eq!(
        (refused.reason, refused.transient, &*refused.cause),
        (
            Reason::BadRequest,
            false,
            "no VIF is attached to the node; attach one, or set network_interface to noop"
        )
    );
    let before = site.port().await.mac_address;
    site.attach().await;
    for _ in 0..2 {
        site.bind().await.unwrap();
        let port = site.port().await;
        assert_eq!((port.host, port.mac_address), (site.node.id.to_string(), MAC.to_string()));
    }
    let written = site.detach().await.unwrap();
    assert_eq!(written.version, site.node.version + 1);
    let port = site.port().await;
    assert_eq!((&*port.host, port.mac_address == MAC.to_string()), ("", false));
    assert_ne!(port.mac_address, before);
    let ports = site.conductor.context.store.ports_of(site.node.id).await.unwrap();
    assert_eq!(ports[0].vif, None);
    site.node = written;
    assert_eq!(site.detach().await.unwrap(), site.node, "a repetition changes nothing");
}

#[tokio::test]
async fn a_vif_that_nova_has_moved_or_deleted_is_only_forgotten() {
    let mut site = VifSite::start().await;
    site.attach().await;
    let elsewhere = MachineBinding { host: "compute-1".to_owned(), ..MachineBinding::default() };
    ports::bind(&site.session, &site.vif, &elsewhere).await.unwrap();
    site.detach().await.unwrap();
    assert_eq!(site.port().await.host, "compute-1");

    // A deployment takes the port from the other host.
    site.node.version += 1;
    site.attach().await;
    site.bind().await.unwrap();
    assert_eq!(site.port().await.host, site.node.id.to_string());

    ports::delete(&site.session, &site.vif).await.unwrap();
    assert_eq!(site.bind().await.unwrap_err().reason, Reason::CloudRefuses);
    site.detach().await.unwrap();
    let lookup = site.conductor.look_at_vif(&site.vif).await.unwrap_err();
    assert_eq!(lookup, VifLookupError::Missing { vif: site.vif.clone() });
}

#[tokio::test]
async fn a_release_that_neutron_does_not_answer_keeps_the_vif() {
    let mut site = VifSite::start().await;
    site.attach().await;
    site.bind().await.unwrap();
    let rule = Rule::new("PUT", "/network/v2.0/ports/**", Act::LoseAnswer).nth(2);
    let rule = site.cloud.misbehave(rule);
    let failed = site.detach().await.unwrap_err();
    assert_eq!((failed.reason, failed.transient), (Reason::CloudUnreachable, true));
    let ports = site.conductor.context.store.ports_of(site.node.id).await.unwrap();
    assert_eq!(ports[0].vif.as_deref(), Some(&*site.vif));
    site.cloud.end_rule(rule);
    site.detach().await.unwrap();
    assert_eq!(site.port().await.host, "");
}

#[tokio::test]
async fn neutron_tells_the_project_and_the_physical_networks_of_a_vif() {
    let site = VifSite::start().await;
    let seen = site.conductor.look_at_vif(&site.vif).await.unwrap().unwrap();
    let owner = site.port().await.project_id;
    assert!(owner.is_some());
    assert_eq!(seen, VifSeen { project: owner, physical_networks: BTreeSet::new() });
    let without = conductor(settings()).await;
    assert_eq!(without.look_at_vif(&site.vif).await, Ok(None));
}
