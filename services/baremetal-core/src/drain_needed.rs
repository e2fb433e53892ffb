//! Compute hosts that need a drain: the host name of a node, and the requests that stop the servers on it.

use hardware::PowerChange;
use serde_json::{Map, Value};

use crate::{AfterDrain, Node, RequestRefused, State, Verb};

/// The key of `instance_info` for nodes that joined an OpenStack without a hypervisor profile: the operator writes the host's name there.
const COMPUTE_HOST: &str = "hypervisor_hostname";

/// Returns the name of the compute host that an installed node is or becomes, or `None` if the node is not a compute host.
pub fn compute_host(node: &Node) -> Option<&str> {
    compute_host_name(node).filter(|_| node.provision_state == State::Active)
}

/// Like [`compute_host`], in every state: also while service steps run on the machine.
pub fn compute_host_name(node: &Node) -> Option<&str> {
    let joined = node.hypervisor.as_ref().filter(|hypervisor| !hypervisor.is_leaving());
    let joined = joined.map(|hypervisor| hypervisor.host.as_str());
    let said = || node.instance_info.get(COMPUTE_HOST).and_then(Value::as_str);
    let named = joined.or_else(said)?;
    is_host_name(named).then_some(named)
}

/// Refuses an `instance_info` whose compute host has a name that no host can have. A name that was stored `before` is not checked again.
pub fn check_compute_host(
    before: Option<&Map<String, Value>>,
    instance_info: &Map<String, Value>,
) -> Result<(), RequestRefused> {
    let named = instance_info.get(COMPUTE_HOST);
    if before.and_then(|before| before.get(COMPUTE_HOST)) == named {
        return Ok(());
    }
    let shown = match named {
        None | Some(Value::Null) => return Ok(()),
        Some(Value::String(name)) if name.is_empty() || is_host_name(name) => return Ok(()),
        Some(Value::String(name)) => format!("{:?}", name.chars().take(64).collect::<String>()),
        Some(_) => "the value".to_owned(),
    };
    let problem = format!(
        "{shown} cannot be a host's name: it must have 1 to 255 letters, digits, '-', '.' and '_', and more than dots"
    );
    Err(RequestRefused::Field { field: format!("instance_info.{COMPUTE_HOST}"), problem })
}

/// Whether Nova takes `name` for a host (`nova/api/validation/parameter_types.py`, `hostname`) and a URL can hold the name as one segment of
/// its path: RFC 3986 §5.2.4 takes "." and ".." out.
fn is_host_name(name: &str) -> bool {
    let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
    let is_named = name.chars().any(|c| c != '.');
    is_named && name.len() <= 255 && name.chars().all(legal)
}

/// Returns the request that has to wait for the drain of the compute host, or `None` if `verb` stops no servers on an installed machine.
pub fn after_drain(verb: Verb) -> Option<AfterDrain> {
    match verb {
        Verb::Rebuild => Some(AfterDrain::Rebuild),
        Verb::Undeploy => Some(AfterDrain::Undeploy),
        Verb::Service => Some(AfterDrain::Service),
        Verb::Rescue => Some(AfterDrain::Rescue),
        Verb::Manage
        | Verb::Provide
        | Verb::Inspect
        | Verb::Clean
        | Verb::Deploy
        | Verb::Abort
        | Verb::Adopt
        | Verb::Unrescue
        | Verb::Unhold => None,
    }
}

/// Returns whether `change` stops the servers on the machine.
pub fn power_change_stops_servers(change: PowerChange) -> bool {
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
    use crate::{Driver, JoinState, NodeUuid};

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
    fn what_cannot_be_a_segment_of_a_path_is_no_compute_host() {
        let mut node = Node::new(NodeUuid::nil(), Driver::Redfish, Timestamp::UNIX_EPOCH);
        node.provision_state = State::Active;
        let long = "a".repeat(256);
        for name in [".", "..", "...", "a/b", "a%2fb", "a b", "r1?u1", "r1#u1", "h\u{f6}st", &long]
        {
            node.instance_info.insert(COMPUTE_HOST.to_owned(), name.into());
            assert_eq!(compute_host(&node), None, "{name}");
            let refusal = check_compute_host(None, &node.instance_info).unwrap_err().to_string();
            assert!(refusal.starts_with("instance_info.hypervisor_hostname: \""), "{refusal}");
            assert_eq!(check_compute_host(Some(&node.instance_info), &node.instance_info), Ok(()));
        }
        for value in [Value::from(7), Value::from(vec!["h1"])] {
            node.instance_info.insert(COMPUTE_HOST.to_owned(), value);
            assert!(check_compute_host(None, &node.instance_info).is_err());
        }
        for name in ["h1", "r1u07.dc_1.example", "..a", ""] {
            node.instance_info.insert(COMPUTE_HOST.to_owned(), name.into());
            assert_eq!(compute_host(&node), Some(name).filter(|name| !name.is_empty()));
            assert_eq!(check_compute_host(None, &node.instance_info), Ok(()), "{name}");
        }
    }

    #[test]
    fn a_verb_that_stops_servers_waits_for_the_drain_and_follows_it() {
        assert_eq!(after_drain(Verb::Rebuild), Some(AfterDrain::Rebuild));
        assert_eq!(after_drain(Verb::Undeploy), Some(AfterDrain::Undeploy));
        assert_eq!(after_drain(Verb::Service), Some(AfterDrain::Service));
        assert_eq!(after_drain(Verb::Rescue), Some(AfterDrain::Rescue));
        let free = [
            Verb::Manage,
            Verb::Provide,
            Verb::Inspect,
            Verb::Clean,
            Verb::Deploy,
            Verb::Abort,
            Verb::Adopt,
            Verb::Unrescue,
            Verb::Unhold,
        ];
        for verb in free {
            assert_eq!(after_drain(verb), None, "{verb:?}");
        }
    }

    #[test]
    fn a_power_change_that_stops_the_machine_stops_servers() {
        assert!(power_change_stops_servers(PowerChange::SoftRestart));
        assert!(!power_change_stops_servers(PowerChange::On));
    }
}
