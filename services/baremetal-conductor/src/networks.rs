//! The ports in Neutron that connect machines with the network interface `neutron` to the networks of the service.

use baremetal_core::{
    NetworkChanges, Node, PORT_OWNER, Port, Problem, Reason, ServiceNetwork, State, connected_ports,
};
use openstack::network::networks;
use openstack::network::ports::{
    self, MachineBinding, NewMachinePort, Port as NeutronPort, PortAddresses, PortQuery,
};
use openstack::{CloudError, Session};
use serde_json::Value;
use tracing::info;
use uuid::Uuid;

use crate::cloud::{no_cloud, problem};
use crate::conductor::Conductor;
use crate::context::TurnContext;
use crate::problem::{Result, bad_request};
use crate::settings::FailedBinding;

/// The key of `driver_info` that decides whether a port that Neutron cannot connect fails the work, as in Ironic.
const FAIL_ON_BINDING_FAILURE: &str = "fail_on_binding_failure";

impl Conductor {
    /// Checks that the networks that the node needs exist in Neutron, and that its `ports` name their switch ports. Changes nothing.
    ///
    /// # Errors
    ///
    /// Returns the field and the reason.
    pub async fn check_networks(
        &self,
        node: &Node,
        ports: &[Port],
        needed: &[ServiceNetwork],
    ) -> Result<(), String> {
        if !node.switches_networks() {
            return Ok(());
        }
        for network in needed {
            let found = self.context.network_id(node, *network).await;
            found.map_err(|problem| problem.cause)?;
        }
        connected_ports(node, ports).map(drop).map_err(|why| why.to_string())
    }
}

impl TurnContext {
    fn cloud(&self) -> Result<&Session, Problem> {
        self.settings.cloud.as_ref().ok_or_else(no_cloud)
    }

    /// Connects the machine to a network of the service, as Ironic's `add_ports_to_network` does: each port gets a port in Neutron. Ports of
    /// other networks, and those of ports that are gone, are deleted before. Returns the node as the network is recorded.
    pub(crate) async fn connect(&self, node: &Node, network: ServiceNetwork) -> Result<Node> {
        if network == ServiceNetwork::Inspection && self.network_name(node, network).is_none() {
            // As in Ironic, the machine is inspected in the networks that its switch ports have.
            return self.disconnect(node).await;
        }
        let (cloud, id) = (self.cloud()?, self.network_id(node, network).await?);
        let ports = self.store.ports_of(node.id).await?;
        let wanted = connected_ports(node, &ports).map_err(|why| bad_request(why.to_string()))?;
        let is_wanted = |found: &NeutronPort| {
            let named = wanted.iter().any(|port| port.name_in(network) == found.name);
            named && found.network_id == id
        };
        let found = machine_ports(cloud, node).await.map_err(|error| problem(&error))?;
        let (found, others): (Vec<_>, Vec<_>) = found.into_iter().partition(is_wanted);
        for other in &others {
            self.delete_port(cloud, other).await?;
        }
        for port in wanted {
            let new = self.new_port(node, port, network, &id);
            let existing = found.iter().find(|found| found.name == new.name);
            let made = async {
                match existing {
                    Some(existing) => ports::bind(cloud, &existing.id, &new.binding).await,
                    None => create(cloud, node, &new).await,
                }
            };
            let made = self.effect("cloud: create port", made).await?;
            let made = made.map_err(|error| problem(&error))?;
            self.check_binding(node, &made)?;
            info!("connected port {} of node {} to network {id} in Neutron", port.id, node.id);
        }
        Ok(node.clone())
    }

    /// Deletes the ports in Neutron that connect the machine to networks of the service. Returns the node, which records none. A service whose
    /// configuration has no cloud any more cannot delete them.
    pub(crate) async fn disconnect(&self, node: &Node) -> Result<Node> {
        if node.network_changes.connected.is_none() {
            return Ok(node.clone());
        }
        if let Some(cloud) = &self.settings.cloud {
            self.delete_ports(cloud, node).await?;
        }
        let mut node = node.clone();
        node.network_changes.connected = None;
        Ok(node)
    }

    async fn delete_ports(&self, cloud: &Session, node: &Node) -> Result<()> {
        let found = machine_ports(cloud, node).await.map_err(|error| problem(&error))?;
        for port in &found {
            self.delete_port(cloud, port).await?;
        }
        Ok(())
    }

    /// Carries out the changes of the ports in Neutron that are recorded in a node without work. Returns the node, which records none.
    pub(crate) async fn change_networks(&self, node: &Node) -> Result<Node> {
        let disconnected = self.disconnect(node).await?;
        for vif in &node.network_changes.releases {
            self.release_vif(self.cloud()?, node, vif).await?;
        }
        if node.network_changes.binds && node.provision_state == State::Active {
            self.bind_attached_vifs(node).await?;
        }
        Ok(Node { network_changes: NetworkChanges::default(), ..disconnected })
    }

    /// Refuses a port that Neutron cannot connect, unless the node or the configuration says that it works anyway.
    pub(crate) fn check_binding(&self, node: &Node, port: &NeutronPort) -> Result<(), Problem> {
        let own = node.driver_info.get(FAIL_ON_BINDING_FAILURE).and_then(Value::as_bool);
        let fails = self.settings.networks.failed_binding == FailedBinding::Fails;
        if !port.is_binding_failed() || !own.unwrap_or(fails) {
            return Ok(());
        }
        let cause = format!(
            "Neutron cannot connect its port {} to the machine: none of its mechanism drivers knows the switch ports in {}; configure one, \
             or set driver_info.{FAIL_ON_BINDING_FAILURE} to false",
            port.id,
            Value::from(port.profile.clone())
        );
        Err(Problem { reason: Reason::CloudRefuses, cause, transient: false })
    }

    /// Returns the name or id of a network of the service, which the node or the configuration names.
    fn network_name<'n>(&'n self, node: &'n Node, network: ServiceNetwork) -> Option<&'n str> {
        let configured = || self.settings.networks.names.get(&network).map(String::as_str);
        node.own_network(network).or_else(configured)
    }

    async fn network_id(&self, node: &Node, network: ServiceNetwork) -> Result<String, Problem> {
        let field = format!("driver_info.{}", network.key());
        let Some(name) = self.network_name(node, network) else {
            return Err(bad_request(format!(
                "{field}: is required by network_interface neutron; set it, or {} in [cloud.networks] of the configuration of the service",
                network.as_str()
            )));
        };
        let found = find_network(self.cloud()?, name).await.map_err(|error| problem(&error))?;
        match &found[..] {
            [id] => Ok(id.clone()),
            [] => Err(bad_request(format!("{field}: Neutron has no network {name}"))),
            [_, _, ..] => Err(bad_request(format!(
                "{field}: Neutron has {} networks with the name {name}; name the network by its id",
                found.len()
            ))),
        }
    }

    /// Returns the port in Neutron that connects `port` to the network.
    fn new_port(
        &self,
        node: &Node,
        port: &Port,
        network: ServiceNetwork,
        network_id: &str,
    ) -> NewMachinePort {
        let groups = &self.settings.networks.security_groups;
        NewMachinePort {
            name: port.name_in(network),
            network_id: network_id.to_owned(),
            device_id: node.id.to_string(),
            device_owner: PORT_OWNER.to_owned(),
            security_groups: (!groups.is_empty()).then(|| groups.clone()),
            addresses: match port.pxe_enabled {
                true => PortAddresses::Chosen,
                false => PortAddresses::None,
            },
            binding: MachineBinding {
                host: node.id.to_string(),
                mac: Some(port.address.to_string()),
                profile: Some(port.binding_profile()),
            },
        }
    }

    async fn delete_port(&self, cloud: &Session, port: &NeutronPort) -> Result<()> {
        let deleting = ports::delete(cloud, &port.id);
        let deleted = self.effect("cloud: delete port", deleting).await?;
        deleted.map_err(|error| problem(&error))?;
        info!("deleted port {} ({}) in Neutron", port.id, port.name);
        Ok(())
    }
}

/// Creates a port. The conflict of a creation that was repeated is a success: a request whose answer was lost has created the port.
async fn create(
    cloud: &Session,
    node: &Node,
    new: &NewMachinePort,
) -> Result<NeutronPort, CloudError> {
    match ports::create_for_machine(cloud, new).await {
        Err(error) if error.is_conflict() => {
            let found = machine_ports(cloud, node).await?.into_iter();
            let mut own = found.filter(|it| it.name == new.name && it.network_id == new.network_id);
            own.next().ok_or(error)
        }
        made => made,
    }
}

/// Returns the ports in Neutron that the service has created for the machine.
async fn machine_ports(cloud: &Session, node: &Node) -> Result<Vec<NeutronPort>, CloudError> {
    let device = node.id.to_string();
    let query = PortQuery { device_id: Some(&device), ..PortQuery::default() };
    let mut found = ports::list(cloud, &query).await?;
    found.retain(|port| port.device_owner == PORT_OWNER);
    Ok(found)
}

/// Returns the ids of the networks with this name or id.
async fn find_network(cloud: &Session, name: &str) -> Result<Vec<String>, CloudError> {
    if name.parse::<Uuid>().is_ok()
        && let Some(network) = networks::show(cloud, name).await?
    {
        return Ok(vec![network.id]);
    }
    Ok(networks::find(cloud, name).await?.into_iter().map(|network| network.id).collect())
}

#[cfg(test)]
mod tests;
