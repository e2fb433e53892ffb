//! Maintenance that the conductor begins, because somebody has to look at the machine.

use hardware::PowerState;
use jiff::Timestamp;

use crate::{Fault, HistoryEntry, Maintenance, Node};

/// The longest reason in characters.
const LONGEST_REASON: usize = 1000;

/// Returns the node in maintenance for `fault`. Maintenance that exists already stays as it is, so that no recovery ends the maintenance of a
/// person.
pub(crate) fn with_fault(node: Node, fault: Fault, reason: &str) -> Node {
    let reason = || Some(reason.chars().take(LONGEST_REASON).collect());
    let for_fault = || Maintenance { reason: reason(), fault: Some(fault) };
    Node { maintenance: Some(node.maintenance.clone().unwrap_or_else(for_fault)), ..node }
}

/// Returns the node after its BMC has not reported the power state in `tries` sweeps in a row, the last time because of `cause`: the power
/// state is unknown, and the node is in maintenance.
pub fn power_failed(node: &Node, tries: u32, cause: &str, now: Timestamp) -> (Node, HistoryEntry) {
    let event = format!("the BMC did not report the power state {tries} times in a row: {cause}");
    let unknown = Node { power_state: None, updated_at: Some(now), ..node.clone() };
    let failed = with_fault(unknown, Fault::PowerFailure, &event);
    let entry = HistoryEntry::failed(node, &failed, event, now);
    (failed, entry)
}

/// Returns the node after its BMC has reported `power` again: maintenance for a power failure ends. `None` if the node has no such fault.
pub fn power_recovered(
    node: &Node,
    power: PowerState,
    now: Timestamp,
) -> Option<(Node, HistoryEntry)> {
    if node.fault() != Some(Fault::PowerFailure) {
        return None;
    }
    let recovered =
        Node { maintenance: None, power_state: Some(power), updated_at: Some(now), ..node.clone() };
    let event =
        format!("the BMC reports the power state again: {power}; the maintenance has ended");
    let entry = HistoryEntry::changed(node, &recovered, event, now);
    Some((recovered, entry))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Driver, NodeUuid};

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    fn node() -> Node {
        let node = Node::new(NodeUuid::nil(), Driver::Redfish, NOW);
        Node { power_state: Some(PowerState::On), ..node }
    }

    #[test]
    fn a_power_failure_begins_maintenance_and_its_recovery_ends_it() {
        let (failed, entry) = power_failed(&node(), 4, "no route", NOW);
        assert_eq!((failed.fault(), failed.power_state), (Some(Fault::PowerFailure), None));
        assert_eq!(failed.updated_at, Some(NOW));
        assert!(!failed.is_maintenance_requested());
        let reason = failed.maintenance.as_ref().and_then(|it| it.reason.clone());
        assert_eq!(reason.as_deref(), Some(&*entry.event));
        assert!(entry.event.ends_with("4 times in a row: no route"), "{}", entry.event);

        let later = Timestamp::from_second(90).unwrap();
        let (recovered, entry) = power_recovered(&failed, PowerState::Off, later).unwrap();
        assert_eq!(recovered.updated_at, Some(later));
        assert_eq!((recovered.maintenance, recovered.power_state), (None, Some(PowerState::Off)));
        assert!(entry.event.contains("power off"), "{}", entry.event);
    }

    #[test]
    fn the_maintenance_of_a_person_is_not_touched() {
        let requested = Maintenance::requested(Some("new fan".to_owned()));
        let held = Node { maintenance: Some(requested.clone()), ..node() };
        let (failed, _) = power_failed(&held, 4, "no route", NOW);
        assert_eq!(failed.maintenance, Some(requested));
        assert_eq!(power_recovered(&failed, PowerState::On, NOW), None);
    }
}
