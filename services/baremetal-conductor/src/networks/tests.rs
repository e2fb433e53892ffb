//! Tests of the service's networks with an emulated OpenStack.

use baremetal_core::{Driver, NetworkInterface, NodeIdent, NodeUuid, PortUuid};
use jiff::Timestamp;
use openstack::network::networks::NewNetwork;
use openstack::network::ports::NewPort;
use openstack::network::subnets::{self, NewSubnet};
use openstack_emulator::{Act, Cloud, Emulator, Rule, Settings};
use serde_json::json;

use super::*;
use crate::problem::ActionError;
use crate::samples::{MAC, conductor, session_of_admin, settings};
use crate::settings::NetworkSettings;

/// A conductor with a cloud that has two networks of the service, and a node with one port for network boot.
struct NetworkSite {
    cloud: Cloud,
    session: Session,
    conductor: Conductor,
    node: Node,
    _emulator: Emulator,
}

impl NetworkSite {
    async fn start() -> NetworkSite {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let emulator = Emulator::start(Settings::default()).await.unwrap();
        let cloud = emulator.cloud.clone();
        let session = session_of_admin(&cloud);
        for (name, cidr) in [("deploy", "10.7.0.0/24"), ("clean", "10.8.0.0/24")] {
            network(&session, name, cidr).await;
        }
        let names = [
            (ServiceNetwork::Provisioning, "deploy".to_owned()),
            (ServiceNetwork::Cleaning, "clean".to_owned()),
        ];
        let networks = NetworkSettings { names: names.into(), ..NetworkSettings::default() };
        let settings = crate::Settings { cloud: Some(session.clone()), networks, ..settings() };
        let conductor = conductor(settings).await;
        let now = Timestamp::now();
        let mut node = Node::new(NodeUuid::new_v4(), Driver::Redfish, now);
        node.interfaces.network = Some(NetworkInterface::Neutron);
        let store = &conductor.context.store;
        store.insert_node(&node).await.unwrap();
        let mut port = Port::new(PortUuid::new_v4(), node.id, MAC, now);
        let link = json!({"switch_id": "0a:1b:2c:3d:4e:5f", "port_id": "Eth1"});
        port.local_link_connection = link.as_object().unwrap().clone();
        store.insert_port(&port).await.unwrap();
        NetworkSite { cloud, session, conductor, node, _emulator: emulator }
    }

    /// Connects the node, as a turn does: the network is recorded first.
    async fn connect(&mut self, network: ServiceNetwork) -> Result<(), Problem> {
        self.node.network_changes.connected = Some(network);
        let connected = self.conductor.context.connect(&self.node, network).await;
        connected.map(|node| self.node = node).map_err(machine)
    }

    async fn disconnect(&mut self) -> Result<(), Problem> {
        let disconnected = self.conductor.context.disconnect(&self.node).await;
        disconnected.map(|node| self.node = node).map_err(machine)
    }

    async fn ports(&self) -> Vec<NeutronPort> {
        machine_ports(&self.session, &self.node).await.unwrap()
    }

    async fn port(&self) -> Port {
        self.conductor.context.store.ports_of(self.node.id).await.unwrap().remove(0)
    }

    async fn names(&self) -> Vec<String> {
        self.ports().await.into_iter().map(|port| port.name).collect()
    }
}

fn machine(error: ActionError) -> Problem {
    match error {
        ActionError::Machine(problem) => problem,
        ActionError::Store(_) | ActionError::LeasePassed(_) => panic!("{error}"),
    }
}

async fn network(session: &Session, name: &str, cidr: &str) -> String {
    let new = NewNetwork { name: name.to_owned(), ..NewNetwork::default() };
    let network = networks::create(session, &new).await.unwrap().id;
    let subnet = NewSubnet {
        name: name.to_owned(),
        network_id: network.clone(),
        cidr: cidr.to_owned(),
        dns_nameservers: Vec::new(),
    };
    subnets::create(session, &subnet).await.unwrap();
    network
}

#[tokio::test]
async fn a_machine_gets_a_port_in_each_network_and_keeps_none() {
    let mut site = NetworkSite::start().await;
    let id = site.port().await.id;
    for _ in 0..2 {
        site.connect(ServiceNetwork::Provisioning).await.unwrap();
        let ports = site.ports().await;
        let [port] = &ports[..] else { panic!("{ports:?}") };
        assert_eq!(port.name, format!("provisioning-{id}"));
        assert_eq!(
            (&*port.host, &*port.mac_address),
            (&*site.node.id.to_string(), &*MAC.to_string())
        );
        assert_eq!((&*port.device_owner, port.fixed_ips.len()), ("baremetal:none", 1));
        let link = json!([{"switch_id": "0a:1b:2c:3d:4e:5f", "port_id": "Eth1"}]);
        assert_eq!(port.profile["local_link_information"], link);
    }
    site.connect(ServiceNetwork::Cleaning).await.unwrap();
    assert_eq!(site.names().await, [format!("cleaning-{id}")]);
    for _ in 0..2 {
        site.disconnect().await.unwrap();
        assert_eq!(site.names().await, [""; 0]);
        assert!(site.node.network_changes.are_done());
    }
}

#[tokio::test]
async fn a_port_whose_creation_was_not_answered_is_found_again() {
    let mut site = NetworkSite::start().await;
    let lost = Rule::new("POST", "/network/v2.0/ports", Act::LoseAnswer).nth(1);
    let rule = site.cloud.misbehave(lost);
    let failed = site.connect(ServiceNetwork::Cleaning).await.unwrap_err();
    assert_eq!((failed.reason, failed.transient), (Reason::CloudUnreachable, true));
    assert_eq!(site.node.network_changes.connected, Some(ServiceNetwork::Cleaning));
    site.cloud.end_rule(rule);
    assert_eq!(site.ports().await.len(), 1);
    site.connect(ServiceNetwork::Cleaning).await.unwrap();
    assert_eq!(site.ports().await.len(), 1);

    // A node without work has its ports deleted by its next turn.
    site.node = site.conductor.context.change_networks(&site.node).await.unwrap();
    assert!(site.node.network_changes.are_done());
    assert_eq!(site.names().await, [""; 0]);
}

#[tokio::test]
async fn a_network_that_is_not_named_or_not_in_neutron_is_refused_by_its_field() {
    let mut site = NetworkSite::start().await;
    let cause = site.connect(ServiceNetwork::Rescuing).await.unwrap_err().cause;
    assert!(cause.starts_with("driver_info.rescuing_network: is required"), "{cause}");
    site.node.driver_info.insert("cleaning_network".to_owned(), "nowhere".into());
    let cause = site.connect(ServiceNetwork::Cleaning).await.unwrap_err().cause;
    assert_eq!(cause, "driver_info.cleaning_network: Neutron has no network nowhere");
    network(&site.session, "deploy", "10.6.0.0/24").await;
    let checked =
        site.conductor.check_networks(&site.node, &[], &[ServiceNetwork::Provisioning]).await;
    let cause = checked.unwrap_err();
    assert!(cause.contains("Neutron has 2 networks with the name deploy"), "{cause}");
    let own = network(&site.session, "own", "10.5.0.0/24").await;
    site.node.driver_info.insert("provisioning_network".to_owned(), own.into());
    let port = site.port().await;
    let checked =
        site.conductor.check_networks(&site.node, &[port], &[ServiceNetwork::Provisioning]).await;
    assert_eq!(checked, Ok(()));
    site.connect(ServiceNetwork::Inspection).await.unwrap();
    assert!(site.node.network_changes.are_done(), "it is inspected where it is");
    assert_eq!(site.names().await, [""; 0]);
}

#[tokio::test]
async fn a_port_without_a_switch_port_is_refused() {
    let mut site = NetworkSite::start().await;
    let mut port = site.port().await;
    port.local_link_connection.clear();
    site.conductor.context.store.update_port(&port).await.unwrap();
    let failed = site.connect(ServiceNetwork::Cleaning).await.unwrap_err();
    let want = format!("port {}: local_link_connection: is required", port.id);
    assert!(failed.cause.starts_with(&want), "{}", failed.cause);
    assert_eq!((failed.reason, failed.transient), (Reason::BadRequest, false));
    assert_eq!(site.names().await, [""; 0]);
}

#[tokio::test]
async fn the_vifs_of_a_machine_in_use_are_bound_with_their_switch_ports_and_released() {
    let mut site = NetworkSite::start().await;
    let tenants = network(&site.session, "tenants", "10.9.0.0/24").await;
    let new = NewPort { name: "vif".to_owned(), network_id: tenants, ..NewPort::default() };
    let vif = ports::create(&site.session, &new).await.unwrap().id;
    let mut port = site.port().await;
    port.vif = Some(vif.clone());
    let store = &site.conductor.context.store;
    site.node.provision_state = State::Active;
    site.node.network_changes.binds = true;
    site.node = store.update_vifs(&site.node, &[port], &[]).await.unwrap();
    let stored = store.find_node(&NodeIdent::Id(site.node.id)).await.unwrap().unwrap();
    assert!(stored.network_changes.binds, "the change is recorded with the VIF");

    let context = &site.conductor.context;
    site.node = context.change_networks(&site.node).await.unwrap();
    let bound = ports::show(&site.session, &vif).await.unwrap().unwrap();
    assert_eq!(
        (&*bound.host, &*bound.mac_address),
        (&*site.node.id.to_string(), &*MAC.to_string())
    );
    assert_eq!(bound.profile["local_link_information"][0]["port_id"], "Eth1");

    site.node.network_changes.releases = vec![vif.clone()];
    site.node = context.change_networks(&site.node).await.unwrap();
    assert!(site.node.network_changes.are_done());
    let released = ports::show(&site.session, &vif).await.unwrap().unwrap();
    assert_eq!((&*released.host, released.profile.is_empty()), ("", true));
}

#[tokio::test]
async fn a_port_that_neutron_cannot_connect_fails_the_work_unless_the_node_accepts_it() {
    let mut site = NetworkSite::start().await;
    site.connect(ServiceNetwork::Cleaning).await.unwrap();
    let mut port = site.ports().await.remove(0);
    port.vif_type = "binding_failed".to_owned();
    let context = &site.conductor.context;
    let failed = context.check_binding(&site.node, &port).unwrap_err();
    assert!(failed.cause.contains(r#""port_id":"Eth1""#), "{}", failed.cause);
    let mut tolerant = site.node.clone();
    tolerant.driver_info.insert(FAIL_ON_BINDING_FAILURE.to_owned(), false.into());
    assert!(context.check_binding(&tolerant, &port).is_ok());
}
