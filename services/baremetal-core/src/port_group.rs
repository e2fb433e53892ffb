//! The record of a port group, and the rules for its ports.

use hardware::MacAddress;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::{Content, NodeUuid, Port, Stored};

/// The bonding mode of a group for which the operator sets none: Ironic's `default_portgroup_mode`.
const DEFAULT_MODE: &str = "active-backup";

/// Ports of one node that operate as one, such as a bond with LACP.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortGroup {
    pub node: NodeUuid,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<MacAddress>,
    /// The bonding mode, such as `802.3ad`.
    pub mode: String,
    /// The parameters of the bond.
    pub properties: Map<String, Value>,
    /// Whether a port of the group can also be used by itself, such as for network boot.
    pub standalone_ports: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub physical_network: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub category: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vif: Option<String>,
    /// Free-form notes of the operator, ignored by the service.
    pub extra: Map<String, Value>,
}

impl Default for PortGroup {
    fn default() -> Self {
        PortGroup {
            node: NodeUuid::nil(),
            name: None,
            address: None,
            mode: DEFAULT_MODE.to_owned(),
            properties: Map::new(),
            standalone_ports: true,
            physical_network: None,
            category: None,
            vif: None,
            extra: Map::new(),
        }
    }
}

impl Content for PortGroup {
    const KIND: &'static str = "portgroup";
    const KEY: &'static str = "address";

    fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    fn key(&self) -> Option<String> {
        self.address.as_ref().map(MacAddress::to_string)
    }

    fn node(&self) -> Option<NodeUuid> {
        Some(self.node)
    }
}

/// Why a port cannot be in a group.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GroupRefused {
    #[error("portgroup_uuid: port group {group} belongs to another node")]
    OtherNode { group: Uuid },
    #[error(
        "pxe_enabled: port group {group} does not support standalone ports, so its ports cannot be used for network boot"
    )]
    Standalone { group: Uuid },
    #[error("physical_network: the other ports of port group {group} are in {}", theirs.as_deref().unwrap_or("none"))]
    PhysicalNetwork { group: Uuid, theirs: Option<String> },
}

/// Checks that `port` can be in `group`, which has the `others`.
pub fn check_member(
    port: &Port,
    group: &Stored<PortGroup>,
    others: &[Port],
) -> Result<(), GroupRefused> {
    let (content, group) = (&group.content, group.id);
    if content.node != port.node {
        return Err(GroupRefused::OtherNode { group });
    }
    if port.pxe_enabled && !content.standalone_ports {
        return Err(GroupRefused::Standalone { group });
    }
    let theirs = match others.iter().find(|other| other.id != port.id) {
        Some(other) => &other.physical_network,
        None if content.physical_network.is_some() => &content.physical_network,
        None => return Ok(()),
    };
    if *theirs == port.physical_network {
        Ok(())
    } else {
        Err(GroupRefused::PhysicalNetwork { group, theirs: theirs.clone() })
    }
}

/// Checks that `ports` can stay in their group after a change of the group, whose physical network they follow.
pub fn check_members(group: &Stored<PortGroup>, ports: &[Port]) -> Result<(), GroupRefused> {
    for port in ports {
        let moved =
            Port { physical_network: group.content.physical_network.clone(), ..port.clone() };
        check_member(&moved, group, &[])?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use newtype_uuid::GenericUuid;

    use super::*;
    use crate::PortUuid;

    fn group(content: PortGroup) -> Stored<PortGroup> {
        Stored::new(Uuid::max(), content, Timestamp::UNIX_EPOCH)
    }

    fn port(number: u128, change: impl Fn(&mut Port)) -> Port {
        let id = PortUuid::from_untyped_uuid(Uuid::from_u128(number));
        let node = NodeUuid::nil();
        let mut port = Port::new(id, node, MacAddress::new([2; 6]), Timestamp::UNIX_EPOCH);
        change(&mut port);
        port
    }

    fn text(text: &str) -> Option<String> {
        Some(text.to_owned())
    }

    #[test]
    fn the_store_finds_a_group_by_its_name_its_address_and_its_node() {
        let free = PortGroup::default();
        assert_eq!((free.name(), free.key()), (None, None));
        let group = PortGroup {
            node: NodeUuid::from_untyped_uuid(Uuid::max()),
            name: text("bond0"),
            address: Some(MacAddress::new([2; 6])),
            ..free
        };
        assert_eq!(group.name(), Some("bond0"));
        assert_eq!(group.key(), text("02:02:02:02:02:02"));
        assert_eq!(Content::node(&group), Some(group.node));
    }

    #[test]
    fn a_port_is_in_a_group_of_its_node() {
        let other = NodeUuid::from_untyped_uuid(Uuid::max());
        let group = group(PortGroup::default());
        assert_eq!(check_member(&port(1, |_| ()), &group, &[]), Ok(()));
        let refused = GroupRefused::OtherNode { group: group.id };
        assert_eq!(check_member(&port(1, |it| it.node = other), &group, &[]), Err(refused));
    }

    #[test]
    fn a_port_for_network_boot_needs_a_group_with_standalone_ports() {
        let group = group(PortGroup { standalone_ports: false, ..PortGroup::default() });
        let refused = Err(GroupRefused::Standalone { group: group.id });
        assert_eq!(check_member(&port(1, |_| ()), &group, &[]), refused);
        assert_eq!(check_members(&group, &[port(1, |_| ())]), refused);
        assert_eq!(check_member(&port(1, |it| it.pxe_enabled = false), &group, &[]), Ok(()));
    }

    #[test]
    fn the_ports_of_a_group_share_a_physical_network() {
        let of =
            |network: &str| PortGroup { physical_network: text(network), ..PortGroup::default() };
        let (free, bound) = (group(PortGroup::default()), group(of("a")));
        let (none, a) = (port(1, |_| ()), port(1, |it| it.physical_network = text("a")));
        let b = port(2, |it| it.physical_network = text("b"));
        let refused = |theirs: Option<String>| {
            Err(GroupRefused::PhysicalNetwork { group: Uuid::max(), theirs })
        };
        assert_eq!(check_member(&a, &free, &[]), Ok(()));
        assert_eq!(check_member(&a, &bound, &[]), Ok(()));
        assert_eq!(check_member(&b, &bound, &[]), refused(text("a")));
        assert_eq!(check_member(&none, &bound, &[]), refused(text("a")));
        assert_eq!(check_member(&a, &free, std::slice::from_ref(&b)), refused(text("b")));
        // The other ports decide, and the port itself is none of them.
        assert_eq!(
            check_member(&b, &bound, &[port(3, |it| it.physical_network = text("b"))]),
            Ok(())
        );
        assert_eq!(check_member(&a, &free, &[port(3, |_| ())]), refused(None));
        assert_eq!(check_members(&bound, &[b]), Ok(()));
    }
}
