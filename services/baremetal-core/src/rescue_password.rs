//! The password of a rescue system in `instance_info`, under Ironic's keys.

use serde_json::Value;

use crate::{Node, Port, RequestRefused, RescueInterface, check_boot};

/// The key of the hash, which the agent gets.
pub const HASHED_RESCUE_PASSWORD: &str = "hashed_rescue_password";

/// The key of Ironic's plain password.
const RESCUE_PASSWORD: &str = "rescue_password";

/// Replaces the plain password.
const MASK: &str = "******";

impl Node {
    /// Stores the hash of the rescue password until the rescue is over.
    ///
    /// Ironic's clients see both keys with masked values. The plain password is stored nowhere, because the agent needs only the hash.
    pub fn set_rescue_password(&mut self, hash: &str) {
        for (key, value) in [(RESCUE_PASSWORD, MASK), (HASHED_RESCUE_PASSWORD, hash)] {
            self.instance_info.insert(key.to_owned(), Value::from(value));
        }
    }

    /// Removes the hash of the rescue password, because the agent has it. As in Ironic, the interface `fake` keeps the keys during the rescue.
    pub(crate) fn has_given_rescue_password(&mut self) {
        if self.rescue_interface() == RescueInterface::Agent {
            self.forget_rescue_password();
        }
    }

    pub(crate) fn forget_rescue_password(&mut self) {
        for key in [RESCUE_PASSWORD, HASHED_RESCUE_PASSWORD] {
            self.instance_info.remove(key);
        }
    }
}

/// Checks that the agent can rescue `node`, which has these `ports`. As in Ironic, the password is missing before a request for a rescue.
pub fn check_rescue(node: &Node, ports: &[Port]) -> Result<(), RequestRefused> {
    if node.rescue_interface() != RescueInterface::Agent {
        return Ok(());
    }
    check_boot(node, ports)?;
    if !node.instance_info.contains_key(HASHED_RESCUE_PASSWORD) {
        let field = format!("instance_info.{RESCUE_PASSWORD}");
        let problem = "missing; a request for a rescue contains it".to_owned();
        return Err(RequestRefused::Field { field, problem });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde_json::Map;

    use super::*;
    use crate::{BootInterface, Driver, NodeUuid, is_secret};

    #[test]
    fn both_keys_are_secret_and_forgotten_together() {
        let mut node = Node::new(NodeUuid::nil(), Driver::Redfish, Timestamp::UNIX_EPOCH);
        node.set_rescue_password("$6$salt$hash");
        assert_eq!(node.instance_info.len(), 2);
        assert_eq!(node.instance_info[HASHED_RESCUE_PASSWORD], "$6$salt$hash");
        assert!(node.instance_info.keys().all(|key| is_secret(key)));
        node.forget_rescue_password();
        assert_eq!(node.instance_info, Map::new());
    }

    #[test]
    fn the_agent_rescues_a_node_that_boots_and_has_a_password() {
        let mut node = Node::new(NodeUuid::nil(), Driver::Redfish, Timestamp::UNIX_EPOCH);
        node.interfaces.rescue = Some(RescueInterface::Agent);
        let checked = |node: &Node| check_rescue(node, &[]).map_err(|why| why.to_string());
        assert!(checked(&node).unwrap_err().starts_with("ports: no port has pxe_enabled"));
        node.interfaces.boot = Some(BootInterface::VirtualMedia);
        let missing = "instance_info.rescue_password: missing; a request for a rescue contains it";
        assert_eq!(checked(&node), Err(missing.to_owned()));
        node.set_rescue_password("$6$salt$hash");
        assert_eq!(checked(&node), Ok(()));

        let fake = Node::new(NodeUuid::nil(), Driver::FakeHardware, Timestamp::UNIX_EPOCH);
        assert_eq!(fake.rescue_interface(), RescueInterface::Fake);
        assert_eq!(checked(&fake), Ok(()));
    }
}
