//! The records of volume connectors and targets.

use hardware::PowerState;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{Content, Node, NodeUuid, State};

/// The identity that a node has towards a storage system, such as an iSCSI qualified name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VolumeConnector {
    pub node: NodeUuid,
    /// The kind of the id, such as `iqn`, `ip`, `mac`, `wwnn` or `wwpn`.
    #[serde(rename = "type")]
    pub kind: String,
    pub connector_id: String,
    /// Free-form notes of the operator, ignored by the service.
    pub extra: Map<String, Value>,
}

/// A remote volume of a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VolumeTarget {
    pub node: NodeUuid,
    /// The protocol, such as `iscsi`.
    pub volume_type: String,
    /// The id of the volume in the storage system.
    pub volume_id: String,
    /// The position among the node's volumes. The node boots from volume 0.
    pub boot_index: i64,
    /// How the volume is reached; may contain passwords.
    pub properties: Map<String, Value>,
    /// Free-form notes of the operator, ignored by the service.
    pub extra: Map<String, Value>,
}

impl Default for VolumeConnector {
    fn default() -> Self {
        let (kind, connector_id) = (String::new(), String::new());
        VolumeConnector { node: NodeUuid::nil(), kind, connector_id, extra: Map::new() }
    }
}

impl Default for VolumeTarget {
    fn default() -> Self {
        VolumeTarget {
            node: NodeUuid::nil(),
            volume_type: String::new(),
            volume_id: String::new(),
            boot_index: 0,
            properties: Map::new(),
            extra: Map::new(),
        }
    }
}

impl Content for VolumeConnector {
    const KIND: &'static str = "volume_connector";
    const KEY: &'static str = "connector_id";

    fn key(&self) -> Option<String> {
        Some(format!("{} {}", self.kind, self.connector_id))
    }

    fn node(&self) -> Option<NodeUuid> {
        Some(self.node)
    }
}

impl Content for VolumeTarget {
    const KIND: &'static str = "volume_target";
    const KEY: &'static str = "boot_index";
    const SECRETS: &'static [&'static str] = &["properties"];

    fn key(&self) -> Option<String> {
        Some(format!("{} {}", self.node, self.boot_index))
    }

    fn node(&self) -> Option<NodeUuid> {
        Some(self.node)
    }
}

/// The error for a change of the volumes of a machine that may be using them. Ironic's clients look for its first words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "The requested action {action:?} can not be performed on node {node:?} while its power state is {power}: power the machine off first"
)]
pub struct VolumeInUse {
    action: String,
    node: String,
    power: String,
}

/// Checks that a volume connector or target of `node` can be changed: its machine is off. `resource` names the resource in the error.
pub fn check_volume_change(node: &Node, resource: &str) -> Result<(), VolumeInUse> {
    check_is_off(node, &format!("{resource} update"))
}

/// Checks that a volume connector or target of `node` can be deleted: its machine is off, or has no instance yet. `resource` names the
/// resource in the error.
pub fn check_volume_deletion(node: &Node, resource: &str) -> Result<(), VolumeInUse> {
    if matches!(node.provision_state, State::Enroll | State::Manageable | State::AdoptFailed) {
        Ok(())
    } else {
        check_is_off(node, &format!("{resource} deletion"))
    }
}

/// A machine that is requested to change its power is not off, because the request may already be with the BMC.
fn check_is_off(node: &Node, action: &str) -> Result<(), VolumeInUse> {
    let power = match (node.power_state, &node.power_request) {
        (Some(PowerState::Off), None) => return Ok(()),
        (Some(_) | None, Some(_)) => "about to change".to_owned(),
        (Some(state), None) => format!("{:?}", state.as_str()),
        (None, None) => "unknown".to_owned(),
    };
    Err(VolumeInUse { action: action.to_owned(), node: node.label(), power })
}

#[cfg(test)]
mod tests {
    use hardware::PowerChange;
    use jiff::Timestamp;
    use newtype_uuid::GenericUuid;
    use uuid::Uuid;

    use super::*;
    use crate::{Driver, PowerRequest};

    #[test]
    fn volumes_of_a_running_machine_stay() {
        let node = |provision_state, power_state| Node {
            provision_state,
            power_state,
            ..Node::new(NodeUuid::nil(), Driver::FakeHardware, Timestamp::UNIX_EPOCH)
        };
        for state in [State::Enroll, State::Manageable, State::AdoptFailed] {
            for power in [None, Some(PowerState::On), Some(PowerState::Off)] {
                let node = node(state, power);
                assert_eq!(
                    check_volume_deletion(&node, "volume target"),
                    Ok(()),
                    "{state:?} {power:?}"
                );
                let is_off = power == Some(PowerState::Off);
                assert_eq!(
                    check_volume_change(&node, "volume target").is_ok(),
                    is_off,
                    "{state:?} {power:?}"
                );
            }
        }
        for power in [None, Some(PowerState::On)] {
            assert!(
                check_volume_deletion(&node(State::Active, power), "volume target").is_err(),
                "{power:?}"
            );
        }
        let off = node(State::Active, Some(PowerState::Off));
        assert_eq!(check_volume_deletion(&off, "volume target"), Ok(()));
        let change = PowerRequest::new(PowerChange::On, Timestamp::UNIX_EPOCH);
        let begins = Node { power_request: Some(change), ..off };
        assert!(check_volume_deletion(&begins, "volume target").is_err());
    }

    #[test]
    fn a_connector_id_is_unique_within_its_type_and_a_boot_index_within_its_node() {
        let of =
            |kind: &str| VolumeConnector { kind: kind.to_owned(), ..VolumeConnector::default() };
        assert_ne!(of("iqn").key(), of("ip").key());
        let other = NodeUuid::from_untyped_uuid(Uuid::max());
        let target = VolumeTarget::default();
        assert_ne!(target.key(), VolumeTarget { node: other, ..target.clone() }.key());
        assert_ne!(target.key(), VolumeTarget { boot_index: 1, ..target.clone() }.key());
    }

    #[test]
    fn connectors_and_targets_belong_to_their_node() {
        let node = NodeUuid::from_untyped_uuid(Uuid::max());
        let connector = VolumeConnector { node, ..VolumeConnector::default() };
        let target = VolumeTarget { node, ..VolumeTarget::default() };
        assert_eq!([connector.node(), target.node()], [Some(node); 2]);
    }
}
