//! Checks of a node that another service managed before, and that is imported in the provision state in which that service left it.

use std::collections::BTreeSet;

use newtype_uuid::GenericUuid;

use crate::{Allocation, AllocationState, Node, Port, PortGroup, State, Stored, vifs};

/// Why a node is not imported. Nothing is written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImportRefused {
    /// The other service has work in progress, which cannot continue here.
    #[error(
        "provision_state: a node in state \"{state}\" has work in progress, which cannot continue here; wait for its end or abort it, then import the node again"
    )]
    Busy { state: State },
    #[error("allocation: {problem}")]
    Allocation { problem: &'static str },
    #[error("internal_info: VIF {vif} is attached to more than one port of the node")]
    Vif { vif: String },
}

/// Checks that `node` can be imported with `allocation`, which reserves it.
pub fn check_imported(node: &Node, allocation: Option<&Allocation>) -> Result<(), ImportRefused> {
    let state = node.provision_state;
    if state.is_busy() {
        return Err(ImportRefused::Busy { state });
    }
    let refused = |problem| Err(ImportRefused::Allocation { problem });
    match (node.allocation, allocation) {
        (None, None) => Ok(()),
        (Some(_), None) => refused("allocation_uuid names an allocation that is missing"),
        (None, Some(_)) => refused("allocation_uuid of the node does not name it"),
        (Some(id), Some(it)) if id != it.id => {
            refused("allocation_uuid of the node names another one")
        }
        (Some(_), Some(it)) if it.node != Some(node.id) => refused("node_uuid names another node"),
        (Some(id), Some(_)) if node.instance_uuid != Some(id.into_untyped_uuid()) => {
            refused("instance_uuid of the node is not the id of the allocation")
        }
        (Some(_), Some(it)) if it.state != AllocationState::Active => {
            refused("the allocation of a node must be active")
        }
        (Some(_), Some(_)) => Ok(()),
    }
}

/// Checks that each VIF of an imported node is attached once.
pub fn check_imported_vifs(
    ports: &[Port],
    groups: &[Stored<PortGroup>],
) -> Result<(), ImportRefused> {
    let mut seen = BTreeSet::new();
    match vifs(ports, groups).find(|vif| !seen.insert(*vif)) {
        Some(vif) => Err(ImportRefused::Vif { vif: vif.to_owned() }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use hardware::MacAddress;
    use jiff::Timestamp;
    use uuid::Uuid;

    use super::*;
    use crate::{AllocationUuid, Driver, NodeUuid, PortUuid};

    fn node(state: State) -> Node {
        let mut node = Node::new(NodeUuid::nil(), Driver::FakeHardware, Timestamp::UNIX_EPOCH);
        node.provision_state = state;
        node
    }

    #[test]
    fn a_node_is_imported_in_every_state_without_work_in_progress() {
        for state in State::ALL {
            let checked = check_imported(&node(state), None);
            assert_eq!(checked.is_err(), state.is_busy(), "{state}");
        }
    }

    #[test]
    fn a_node_and_its_allocation_name_each_other() {
        let mut node = node(State::Active);
        node.allocation = Some(AllocationUuid::nil());
        node.instance_uuid = Some(Uuid::nil());
        let mut allocation = Allocation::new(AllocationUuid::nil(), Timestamp::UNIX_EPOCH);
        allocation.node = Some(node.id);
        allocation.state = AllocationState::Active;
        assert_eq!(check_imported(&node, Some(&allocation)), Ok(()));
        assert!(check_imported(&node, None).is_err());

        let free = Node { allocation: None, ..node.clone() };
        assert!(check_imported(&free, Some(&allocation)).is_err());
        let other = Node { instance_uuid: Some(Uuid::max()), ..node.clone() };
        assert!(check_imported(&other, Some(&allocation)).is_err());
        let another = Allocation { id: AllocationUuid::max(), ..allocation.clone() };
        assert!(check_imported(&node, Some(&another)).is_err());
        let failed = Allocation { state: AllocationState::Error, ..allocation.clone() };
        assert!(check_imported(&node, Some(&failed)).is_err());
        let elsewhere = Allocation { node: None, ..allocation };
        assert!(check_imported(&node, Some(&elsewhere)).is_err());
    }

    #[test]
    fn a_vif_is_attached_once() {
        let mac = MacAddress::new([2, 0, 0, 0, 0, 1]);
        let mut port = Port::new(PortUuid::nil(), NodeUuid::nil(), mac, Timestamp::UNIX_EPOCH);
        port.vif = Some("v".to_owned());
        let mut group = Stored::new(Uuid::nil(), PortGroup::default(), Timestamp::UNIX_EPOCH);
        assert_eq!(check_imported_vifs(&[port.clone()], &[group.clone()]), Ok(()));
        group.content.vif = Some("v".to_owned());
        let twice = Err(ImportRefused::Vif { vif: "v".to_owned() });
        assert_eq!(check_imported_vifs(&[port], &[group]), twice);
    }
}
