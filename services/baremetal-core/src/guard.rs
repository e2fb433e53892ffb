//! Compute hosts that need a drain: the host name of a node, and the requests that stop the servers on it.

use hardware::PowerChange;
use serde_json::Value;

use crate::{Node, State, Verb};

/// The key of `instance_info` for nodes that joined an OpenStack without a hypervisor profile: the operator writes the host's name there.
const COMPUTE_HOST: &str = "hypervisor_hostname";

/// Returns the name of the compute host that an installed node is or becomes, or `None` if the node is not a compute host.
pub fn compute_host(node: &Node) -> Option<&str> {
    let joined = node.hypervisor.as_ref().filter(|hypervisor| !hypervisor.is_leaving());
    let joined = joined.map(|hypervisor| hypervisor.host.as_str());
    let said = || node.instance_info.get(COMPUTE_HOST).and_then(Value::as_str);
    let named = joined.or_else(said)?;
    (!named.is_empty() && node.provision_state == State::Active).then_some(named)
}

/// Returns whether `verb`, asked of an installed machine, stops the servers on it.
pub fn takes_out(verb: Verb) -> bool {
    match verb {
        Verb::Rebuild | Verb::Undeploy => true,
        Verb::Manage
        | Verb::Provide
        | Verb::Inspect
        | Verb::Clean(_)
        | Verb::Deploy
        | Verb::Abort
        | Verb::Adopt => false,
    }
}

/// Returns whether `change` stops the servers on the machine.
pub fn switches_off(change: PowerChange) -> bool {
    match change {
        PowerChange::On => false,
        PowerChange::ForceOff
        | PowerChange::ForceRestart
        | PowerChange::SoftOff
        | PowerChange::SoftRestart => true,
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::{AgentCommand, Driver, JoinState, NodeUuid};

    #[test]
    fn only_an_installed_node_with_a_host_name_is_a_compute_host() {
        let mut node = Node::new(NodeUuid::nil(), Driver::Redfish, Timestamp::UNIX_EPOCH);
        node.provision_state = State::Active;
        assert_eq!(compute_host(&node), None);
        node.instance_info.insert(COMPUTE_HOST.to_owned(), "r1u07".into());
        assert_eq!(compute_host(&node), Some("r1u07"));
        node.hypervisor = Some(crate::hypervisor::tests::host(JoinState::Joined));
        assert_eq!(compute_host(&node), Some("h1"), "it says so itself");
        node.provision_state = State::Available;
        assert_eq!(compute_host(&node), None);
    }

    #[test]
    fn verbs_and_power_changes_that_stop_servers_are_recognized() {
        assert!(takes_out(Verb::Rebuild) && takes_out(Verb::Undeploy));
        assert!(!takes_out(Verb::Inspect) && !takes_out(Verb::Clean(AgentCommand::EraseDisks)));
        assert!(switches_off(PowerChange::SoftRestart) && !switches_off(PowerChange::On));
    }
}
