//! Networks of the service, and changes of the ports in Neutron of a node without work.

use super::*;
use crate::{NetworkChanges, ServiceNetwork};

fn with_changes(state: State, changes: NetworkChanges) -> Node {
    let mut node = Node::new(NodeUuid::nil(), Driver::Redfish, T0);
    node.provision_state = state;
    node.network_changes = changes;
    node
}

#[test]
fn a_network_is_recorded_before_its_ports_are_created() {
    let task = Task::Connect(ServiceNetwork::Cleaning);
    let decision = planned(&at(task.clone(), None), &seen(), T0);
    assert_eq!(decision.actions, [Action::Connect(ServiceNetwork::Cleaning)]);
    let recorded = decision.change.expect("a record").node;
    assert_eq!(recorded.network_changes.connected, Some(ServiceNetwork::Cleaning));
    // After a crash the record is there already, and only the action is repeated.
    let again = planned(&recorded, &seen(), T0);
    assert!(again.change.is_none());
    assert_eq!(again.actions, [Action::Connect(ServiceNetwork::Cleaning)]);
}

#[test]
fn a_node_without_work_changes_its_ports_until_none_is_left() {
    let connected = Some(ServiceNetwork::Cleaning);
    let changes = NetworkChanges { connected, ..NetworkChanges::default() };
    let failed = with_changes(State::CleanFailed, changes);
    check(&failed, seen(), 0, expect!["Act(ChangeNetworks)"]);
    let clear = Node { network_changes: NetworkChanges::default(), ..failed };
    let outcome = ActionOutcome::NetworksChanged(Box::new(clear.clone()));
    let decision = concluded(&clear, &outcome, T0);
    assert_eq!(decision.change.expect("a record").node, clear);
    assert_eq!(decision.next_turn, Requeue::OnChange);
}

#[test]
fn a_binding_that_neutron_refuses_is_told_and_not_repeated() {
    let changes = NetworkChanges { binds: true, ..NetworkChanges::default() };
    let active = with_changes(State::Active, changes);
    let transient = ActionOutcome::Failed(problem(true));
    let later = concluded(&active, &transient, T0);
    assert!(later.change.is_none(), "a cloud that is away is asked again");
    assert_eq!(later.next_turn, Requeue::After(Duration::from_secs(1)));
    // A problem that lasts is told, and the binding is tried again.
    let hours_later = T0 + jiff::SignedDuration::from_hours(1);
    let told = concluded(&active, &transient, hours_later).change.expect("a record").node;
    assert!(told.failure.is_some() && told.network_changes.binds);

    let refused = concluded(&active, &ActionOutcome::Failed(problem(false)), T0);
    let NodeUpdate { node, history, .. } = refused.change.expect("a record");
    assert!(node.network_changes.are_done());
    assert_eq!((node.provision_state, history.len()), (State::Active, 1));
    assert_eq!(history[0].event, "cannot change the ports in Neutron: cannot reach the BMC");
}

#[test]
fn ports_that_neutron_does_not_delete_are_told_once_and_tried_again() {
    let changes = NetworkChanges { releases: vec!["v".to_owned()], ..NetworkChanges::default() };
    let active = with_changes(State::Active, changes);
    let refused = ActionOutcome::Failed(problem(false));
    let told = concluded(&active, &refused, T0).change.expect("a record").node;
    assert!(told.failure.is_some());
    assert_eq!(told.network_changes, active.network_changes);
    let again = concluded(&told, &refused, T0);
    assert!(again.change.is_none());
    assert_eq!(again.next_turn, Requeue::After(Duration::from_secs(1)));
}
