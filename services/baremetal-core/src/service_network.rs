//! The ports in Neutron of a node with the network interface `neutron`: their names, owner and switch ports.

use serde_json::{Map, Value, json};

use crate::{
    BootInterface, NetworkInterface, Node, Port, PortGroup, RequestRefused, ServiceNetwork, Stored,
};

/// The owner of the ports in Neutron that the service creates, as in Ironic.
pub const PORT_OWNER: &str = "baremetal:none";

impl Node {
    /// Returns whether the service connects the machine to its networks and to those of its VIFs.
    pub fn switches_networks(&self) -> bool {
        self.network_interface() == NetworkInterface::Neutron
    }

    /// Returns the name or id of a network of the service that the node itself names.
    pub fn own_network(&self, network: ServiceNetwork) -> Option<&str> {
        let named = self.driver_info.get(&network.key()).and_then(Value::as_str);
        named.filter(|named| !named.is_empty())
    }
}

impl Port {
    /// Returns whether Neutron can find the switch port of the port.
    pub fn is_linked(&self) -> bool {
        !self.local_link_connection.is_empty()
    }

    /// Returns the name of the port in Neutron that connects this port to a network of the service. A repeated creation finds its port by
    /// this name.
    pub fn name_in(&self, network: ServiceNetwork) -> String {
        format!("{}-{}", network.as_str(), self.id)
    }

    /// Returns the `binding:profile` of a port in Neutron that is bound to this port.
    pub fn binding_profile(&self) -> Map<String, Value> {
        profile([self], self.physical_network.as_deref())
    }
}

impl Stored<PortGroup> {
    /// Returns the `binding:profile` of a port in Neutron that is bound to the group with these `members`.
    ///
    /// Properties without the prefix `bond` get it, because the drivers of switches know them by the names of the Linux bonding driver
    /// (ironic, `get_local_group_information`).
    pub fn binding_profile<'p>(
        &self,
        members: impl IntoIterator<Item = &'p Port>,
    ) -> Map<String, Value> {
        let group = &self.content;
        let mut profile = profile(members, group.physical_network.as_deref());
        let properties = group.properties.iter().map(|(name, value)| {
            let prefix = if name.starts_with("bond") { "" } else { "bond_" };
            (format!("{prefix}{name}"), value.clone())
        });
        let group = json!({
            "id": self.id,
            "name": group.name,
            "bond_mode": group.mode,
            "bond_properties": properties.collect::<Map<_, _>>(),
        });
        profile.insert("local_group_information".to_owned(), group);
        profile
    }
}

fn profile<'p>(
    ports: impl IntoIterator<Item = &'p Port>,
    physical_network: Option<&str>,
) -> Map<String, Value> {
    let links = ports.into_iter().map(|port| Value::from(port.local_link_connection.clone()));
    let mut profile = Map::new();
    profile.insert("local_link_information".to_owned(), links.collect());
    if let Some(network) = physical_network {
        profile.insert("physical_network".to_owned(), network.into());
    }
    profile
}

/// Returns the ports of `node` that are connected to a network of the service: those for network boot, or all if the ramdisk boots from
/// virtual media. As in Ironic, a port without its switch port is left out, and a node with no other port is refused.
pub fn connected_ports<'p>(
    node: &Node,
    ports: &'p [Port],
) -> Result<Vec<&'p Port>, RequestRefused> {
    let refused = |field: String, problem: &str| {
        Err(RequestRefused::Field { field, problem: problem.to_owned() })
    };
    let boots = |port: &&Port| match node.boot_interface() {
        BootInterface::VirtualMedia | BootInterface::IdracVirtualMedia => true,
        BootInterface::Ipxe | BootInterface::HttpIpxe | BootInterface::Fake => port.pxe_enabled,
    };
    let wanted: Vec<&Port> = ports.iter().filter(boots).collect();
    if let Some(port) = wanted.iter().find(|port| port.is_smartnic) {
        let field = format!("port {}: is_smartnic", port.id);
        return refused(field, "network_interface neutron does not support smart NICs");
    }
    let linked: Vec<&Port> = wanted.iter().copied().filter(|port| port.is_linked()).collect();
    match (wanted.first(), linked.is_empty()) {
        (None, _) => refused(
            "ports".to_owned(),
            "no port has pxe_enabled; network_interface neutron connects such ports only",
        ),
        (Some(port), true) => refused(
            format!("port {}: local_link_connection", port.id),
            "is required by network_interface neutron, so that Neutron can set up the switch port",
        ),
        (Some(_), false) => Ok(linked),
    }
}

#[cfg(test)]
mod tests {
    use hardware::MacAddress;
    use jiff::Timestamp;
    use newtype_uuid::GenericUuid;
    use uuid::Uuid;

    use super::*;
    use crate::{Driver, NodeUuid, PortUuid};

    fn port(number: u8, change: impl Fn(&mut Port)) -> Port {
        let id = PortUuid::from_untyped_uuid(Uuid::from_u128(number.into()));
        let mac = MacAddress::new([2, 0, 0, 0, 0, number]);
        let mut port = Port::new(id, NodeUuid::nil(), mac, Timestamp::UNIX_EPOCH);
        change(&mut port);
        port
    }

    fn linked(number: u8) -> Port {
        let link = json!({"switch_id": "0a:1b:2c:3d:4e:5f", "port_id": format!("Eth{number}")});
        let Value::Object(link) = link else { panic!("{link}") };
        port(number, |port| port.local_link_connection = link.clone())
    }

    fn node(boot: BootInterface) -> Node {
        let mut node = Node::new(NodeUuid::nil(), Driver::Redfish, Timestamp::UNIX_EPOCH);
        node.interfaces.boot = Some(boot);
        node
    }

    #[test]
    fn the_ports_for_network_boot_are_connected_if_their_switch_port_is_known() {
        let silent = Port { pxe_enabled: false, ..linked(2) };
        let ports = [linked(1), silent, port(3, |_| ())];
        let numbers = |boot| -> Vec<u128> {
            let connected = connected_ports(&node(boot), &ports).unwrap();
            connected.iter().map(|port| port.id.into_untyped_uuid().as_u128()).collect()
        };
        assert_eq!(numbers(BootInterface::Ipxe), [1]);
        assert_eq!(numbers(BootInterface::VirtualMedia), [1, 2]);
    }

    #[test]
    fn a_node_without_a_port_that_can_be_connected_is_refused() {
        let refused = |ports: &[Port]| {
            connected_ports(&node(BootInterface::Ipxe), ports).unwrap_err().to_string()
        };
        assert!(refused(&[]).starts_with("ports: no port has pxe_enabled"));
        let id = PortUuid::from_untyped_uuid(Uuid::from_u128(3));
        let unlinked = refused(&[port(3, |_| ())]);
        let want = format!("port {id}: local_link_connection: is required");
        assert!(unlinked.starts_with(&want), "{unlinked}");
        let smart = refused(&[port(3, |port| port.is_smartnic = true)]);
        assert!(smart.starts_with(&format!("port {id}: is_smartnic: ")), "{smart}");
    }

    #[test]
    fn a_port_in_neutron_learns_the_switch_ports_of_a_port_and_of_a_group() {
        let alone = Port { physical_network: Some("physnet1".to_owned()), ..linked(1) };
        let want = json!({
            "local_link_information": [{"switch_id": "0a:1b:2c:3d:4e:5f", "port_id": "Eth1"}],
            "physical_network": "physnet1",
        });
        assert_eq!(Value::from(alone.binding_profile()), want);

        let Value::Object(properties) = json!({"miimon": 100, "bond_lacp_rate": "fast"}) else {
            panic!("an object")
        };
        let content = PortGroup {
            name: Some("bond0".to_owned()),
            mode: "802.3ad".to_owned(),
            properties,
            ..PortGroup::default()
        };
        let group = Stored::new(Uuid::nil(), content, Timestamp::UNIX_EPOCH);
        let want = json!({
            "local_link_information": [
                {"switch_id": "0a:1b:2c:3d:4e:5f", "port_id": "Eth1"},
                {"switch_id": "0a:1b:2c:3d:4e:5f", "port_id": "Eth2"},
            ],
            "local_group_information": {
                "id": "00000000-0000-0000-0000-000000000000",
                "name": "bond0",
                "bond_mode": "802.3ad",
                "bond_properties": {"bond_miimon": 100, "bond_lacp_rate": "fast"},
            },
        });
        assert_eq!(Value::from(group.binding_profile([&linked(1), &linked(2)])), want);
    }

    #[test]
    fn a_port_in_neutron_is_named_after_its_network_and_port() {
        let want = "cleaning-00000000-0000-0000-0000-000000000001";
        assert_eq!(linked(1).name_in(ServiceNetwork::Cleaning), want);
    }

    #[test]
    fn a_node_names_its_networks_itself() {
        let mut node = node(BootInterface::Ipxe);
        let Value::Object(info) = json!({"cleaning_network": "clean", "rescuing_network": ""})
        else {
            panic!("an object")
        };
        node.driver_info = info;
        let own: Vec<_> = ServiceNetwork::ALL.map(|it| node.own_network(it)).into();
        assert_eq!(own, [None, Some("clean"), None, None, None]);
    }
}
