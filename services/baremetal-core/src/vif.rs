//! Virtual interfaces (VIFs): the ports of a virtual network that are attached to the ports and port groups of a node.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::fmt;

use jiff::Timestamp;
use uuid::Uuid;

use crate::{Node, Port, PortGroup, PortUuid, State, Stored};

/// A request to attach a VIF.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VifRequest {
    /// The id of the VIF: with Neutron, the id of a port.
    pub vif: String,
    /// The port or port group that the client wants; `None` if any will do.
    pub place: Option<VifPlace>,
    /// The physical networks of the VIF's network; empty if they do not matter.
    pub physical_networks: BTreeSet<String>,
    /// Whether only ports fit whose switch port is known.
    pub needs_link: bool,
}

/// A port or a port group, to which at most one VIF is attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VifPlace {
    Port(PortUuid),
    Group(Uuid),
}

impl fmt::Display for VifPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            VifPlace::Port(id) => write!(f, "port {id}"),
            VifPlace::Group(id) => write!(f, "port group {id}"),
        }
    }
}

/// Why a VIF is not attached or detached.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VifRefused {
    #[error("VIF {vif} is already attached to {place}")]
    Attached { vif: String, place: VifPlace },
    #[error("VIF {vif} cannot be attached: no free port of the node fits")]
    NoFreePort { vif: String },
    #[error("VIF {vif} is not attached to node \"{node}\"")]
    NotAttached { vif: String, node: String },
    #[error("port {port} cannot be deleted while VIF {vif} is attached to it")]
    Needed { vif: String, port: PortUuid },
}

/// Returns the ids of all VIFs of a node, those of ports first.
pub fn vifs<'a>(
    ports: &'a [Port],
    groups: &'a [Stored<PortGroup>],
) -> impl Iterator<Item = &'a str> {
    let of_ports = ports.iter().filter_map(|port| port.vif.as_deref());
    of_ports.chain(groups.iter().filter_map(|group| group.content.vif.as_deref()))
}

/// Returns `node` after a VIF was attached: the port in Neutron of a machine in use is bound at once, as in Ironic, and otherwise by the next
/// deployment.
pub fn with_attached_vif(node: &Node) -> Node {
    let mut node = node.clone();
    node.network_changes.binds |= node.provision_state == State::Active;
    node
}

/// Returns `node` after a VIF was detached: its port in Neutron is released, if it is bound to the machine.
pub fn with_detached_vif(node: &Node, vif: &str) -> Node {
    let mut node = node.clone();
    if !node.network_changes.releases.iter().any(|it| it == vif) {
        node.network_changes.releases.push(vif.to_owned());
    }
    node
}

/// Checks that a port of `node` may be deleted: no VIF is attached to it, or the node is in maintenance.
pub fn check_port_deletion(node: &Node, port: &Port) -> Result<(), VifRefused> {
    match &port.vif {
        Some(vif) if node.maintenance.is_none() => {
            Err(VifRefused::Needed { vif: vif.clone(), port: port.id })
        }
        Some(_) | None => Ok(()),
    }
}

/// Finds the place of an attached VIF.
pub fn place_of_vif(vif: &str, ports: &[Port], groups: &[Stored<PortGroup>]) -> Option<VifPlace> {
    let is_it = |attached: &Option<String>| attached.as_deref() == Some(vif);
    let group = groups.iter().find(|group| is_it(&group.content.vif));
    let port = ports.iter().find(|port| is_it(&port.vif));
    group.map(|it| VifPlace::Group(it.id)).or(port.map(|it| VifPlace::Port(it.id)))
}

/// Chooses the port or port group to which a VIF is attached, in the order of Ironic's `get_free_port_like_object`: the physical network
/// fits, a group before a port, a port for network boot before others.
pub fn choose_place(
    request: &VifRequest,
    ports: &[Port],
    groups: &[Stored<PortGroup>],
) -> Result<VifPlace, VifRefused> {
    let vif = request.vif.clone();
    if let Some(place) = place_of_vif(&vif, ports, groups) {
        return Err(VifRefused::Attached { vif, place });
    }
    let free = free_places(request, ports, groups);
    let best = free.into_iter().min_by_key(|free| Reverse(free.rank));
    best.map(|free| free.place).ok_or(VifRefused::NoFreePort { vif })
}

/// A free port or port group.
struct FreePlace {
    place: VifPlace,
    /// Whether the physical network is one of the VIF's, whether it is a group, whether it boots; then the oldest one.
    rank: (bool, bool, bool, Reverse<Timestamp>),
}

fn free_places(
    request: &VifRequest,
    ports: &[Port],
    groups: &[Stored<PortGroup>],
) -> Vec<FreePlace> {
    let is_named = |network: &Option<String>| {
        network.as_ref().is_some_and(|network| request.physical_networks.contains(network))
    };
    let is_free = |port: &&Port| {
        let any = request.physical_networks.is_empty() || port.physical_network.is_none();
        let is_linked = !request.needs_link || port.is_linked();
        port.vif.is_none() && is_linked && (any || is_named(&port.physical_network))
    };
    let as_port = |port: &Port| FreePlace {
        place: VifPlace::Port(port.id),
        rank: (is_named(&port.physical_network), false, port.pxe_enabled, Reverse(port.created_at)),
    };
    let standalone = ports.iter().filter(is_free).filter(|port| {
        port.portgroup.is_none()
            && match request.place {
                None => true,
                Some(place) => place == VifPlace::Port(port.id),
            }
    });
    let mut free: Vec<FreePlace> = standalone.map(as_port).collect();
    if matches!(request.place, Some(VifPlace::Port(_))) {
        return free;
    }
    for group in groups.iter().filter(|group| group.content.vif.is_none()) {
        let is_asked = request.place == Some(VifPlace::Group(group.id));
        if request.place.is_some() && !is_asked {
            continue;
        }
        let all = || ports.iter().filter(|port| port.portgroup == Some(group.id));
        let members: Vec<&Port> = all().filter(is_free).collect();
        // The ports of a group of which one has a VIF are used one by one.
        if all().any(|port| port.vif.is_some()) {
            let one_by_one = members.iter().filter(|_| !is_asked).map(|port| as_port(port));
            free.extend(one_by_one);
        } else if let Some(first) = members.first() {
            let place = VifPlace::Group(group.id);
            let rank = (is_named(&first.physical_network), true, true, Reverse(group.created_at));
            free.push(FreePlace { place, rank });
        }
    }
    free
}

#[cfg(test)]
mod tests {
    use hardware::MacAddress;
    use newtype_uuid::GenericUuid;

    use super::*;
    use crate::NodeUuid;

    fn port(number: u8, change: impl Fn(&mut Port)) -> Port {
        let id = PortUuid::from_untyped_uuid(Uuid::from_u128(number.into()));
        let mac = MacAddress::new([2, 0, 0, 0, 0, number]);
        let now = Timestamp::from_second(number.into()).unwrap();
        let mut port = Port::new(id, NodeUuid::nil(), mac, now);
        change(&mut port);
        port
    }

    fn group(number: u8) -> Stored<PortGroup> {
        let id = Uuid::from_u128(number.into());
        Stored::new(id, PortGroup::default(), Timestamp::UNIX_EPOCH)
    }

    fn member(number: u8, of: u8) -> Port {
        port(number, |it| it.portgroup = Some(Uuid::from_u128(of.into())))
    }

    fn place(number: u8) -> Option<VifPlace> {
        Some(VifPlace::Port(PortUuid::from_untyped_uuid(Uuid::from_u128(number.into()))))
    }

    fn in_group(number: u8) -> Option<VifPlace> {
        Some(VifPlace::Group(Uuid::from_u128(number.into())))
    }

    #[track_caller]
    fn check(
        (place, networks): (Option<VifPlace>, &[&str]),
        ports: &[Port],
        groups: &[Stored<PortGroup>],
        want: Option<VifPlace>,
    ) {
        let physical_networks = networks.iter().map(|it| (*it).to_owned()).collect();
        let vif = "v".to_owned();
        let request = VifRequest { vif, place, physical_networks, needs_link: false };
        assert_eq!(choose_place(&request, ports, groups).ok(), want);
    }

    #[test]
    fn a_vif_gets_the_first_free_port_that_boots() {
        let any = (None, &[][..]);
        let silent = port(1, |it| it.pxe_enabled = false);
        let used = port(2, |it| it.vif = Some("other".to_owned()));
        check(any, &[], &[], None);
        check(any, std::slice::from_ref(&used), &[], None);
        check(any, std::slice::from_ref(&silent), &[], place(1));
        check(any, &[silent.clone(), port(4, |_| ()), used, port(3, |_| ())], &[], place(3));
        let only = (place(1), &[][..]);
        check(only, &[port(3, |_| ()), silent], &[], place(1));
        check(only, &[port(3, |_| ())], &[], None);
    }

    #[test]
    fn a_vif_of_the_network_interface_neutron_gets_a_port_whose_switch_port_is_known() {
        let linked = port(2, |it| {
            it.pxe_enabled = false;
            it.local_link_connection.insert("port_id".to_owned(), "Eth1".into());
        });
        let request = VifRequest { needs_link: true, ..VifRequest::default() };
        let chosen = choose_place(&request, &[port(1, |_| ()), linked], &[]);
        assert_eq!(chosen.ok(), place(2));
        let refused = choose_place(&request, &[port(1, |_| ())], &[]);
        assert!(matches!(refused, Err(VifRefused::NoFreePort { .. })), "{refused:?}");
    }

    #[test]
    fn the_port_of_a_vif_follows_a_machine_in_use_at_once() {
        let mut node = Node::new(NodeUuid::nil(), crate::Driver::Redfish, Timestamp::UNIX_EPOCH);
        node.provision_state = State::Available;
        assert!(with_attached_vif(&node).network_changes.are_done());
        node.provision_state = State::Active;
        assert!(with_attached_vif(&node).network_changes.binds);
        let detached = with_detached_vif(&with_detached_vif(&node, "v"), "v");
        assert_eq!(detached.network_changes.releases, ["v"]);
    }

    #[test]
    fn a_port_with_a_vif_is_deleted_only_in_maintenance() {
        let mut node = Node::new(NodeUuid::nil(), crate::Driver::Redfish, Timestamp::UNIX_EPOCH);
        let used = port(1, |it| it.vif = Some("v".to_owned()));
        assert_eq!(check_port_deletion(&node, &port(1, |_| ())), Ok(()));
        let needed = VifRefused::Needed { vif: "v".to_owned(), port: used.id };
        assert_eq!(check_port_deletion(&node, &used), Err(needed));
        node.maintenance = Some(crate::Maintenance::requested(None));
        assert_eq!(check_port_deletion(&node, &used), Ok(()));
    }

    #[test]
    fn the_physical_network_decides_before_everything_else() {
        let on = |number, network: &'static str| {
            port(number, move |it| it.physical_network = Some(network.to_owned()))
        };
        let quiet = Port { pxe_enabled: false, ..on(1, "b") };
        check((None, &["b"]), &[on(2, "a"), quiet.clone(), port(3, |_| ())], &[], place(1));
        check((None, &["c"]), &[on(2, "a"), quiet.clone(), port(3, |_| ())], &[], place(3));
        check((None, &["c"]), &[on(2, "a"), quiet.clone()], &[], None);
        check((None, &[]), &[on(2, "a"), quiet], &[], place(2));
    }

    #[test]
    fn a_group_is_used_before_a_port_and_as_a_whole() {
        let any = (None, &[][..]);
        let ports = [port(1, |_| ()), member(2, 9), member(3, 9)];
        check(any, &ports, &[group(9)], in_group(9));
        check(any, &ports[..1], &[group(9)], place(1));
        check((in_group(9), &[]), &ports, &[group(9), group(8)], in_group(9));
        check((in_group(8), &[]), &ports, &[group(9), group(8)], None);
        check((place(2), &[]), &ports, &[group(9)], None);
        // One of its ports has a VIF, so the others are used by themselves.
        let split = [Port { vif: Some("w".to_owned()), ..member(2, 9) }, member(3, 9)];
        check(any, &split, &[group(9)], place(3));
        check((in_group(9), &[]), &split, &[group(9)], None);
        let mut used = group(9);
        used.content.vif = Some("w".to_owned());
        check(any, &ports[1..], &[used], None);
    }

    #[test]
    fn a_vif_is_attached_once() {
        let ports = [port(1, |it| it.vif = Some("v".to_owned())), port(2, |_| ())];
        let request = VifRequest { vif: "v".to_owned(), ..VifRequest::default() };
        let why = choose_place(&request, &ports, &[]).unwrap_err().to_string();
        let id = Uuid::from_u128(1);
        assert_eq!(why, format!("VIF v is already attached to port {id}"));
        assert_eq!(place_of_vif("v", &ports, &[]), place(1));
        assert_eq!(place_of_vif("w", &ports, &[]), None);
        assert_eq!(vifs(&ports, &[]).collect::<Vec<_>>(), ["v"]);
    }
}
