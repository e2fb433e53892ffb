//! Checks which changes of a node an operator may make, and when a node may be deleted.

use jiff::Timestamp;

use crate::{Interface, Node, State};

/// Why a change of a node is refused. A refused change leaves the node unmodified.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChangeRefused {
    /// Work in progress relies on the node as it is.
    #[error("node \"{node}\" is locked while it is {state}; try again when its work is done")]
    Busy { node: String, state: State },
    #[error("{field}: cannot be changed on node \"{node}\" in state \"{state}\": {instead}")]
    State {
        field: String,
        node: String,
        state: State,
        /// Advice for the caller, such as another state or verb.
        instead: &'static str,
    },
    #[error("instance_uuid: node \"{node}\" is used by instance {instance} already")]
    InUse { node: String, instance: uuid::Uuid },
    #[error(
        "the allocation of node \"{node}\" cannot be removed while it is in state \"{state}\": undeploy the node, or put it into maintenance"
    )]
    Allocated { node: String, state: State },
    #[error("node \"{node}\" is protected; remove the protection first")]
    Protected { node: String },
    /// The node is lent until a time, and the lessee relies on the end of the lease.
    #[error(
        "lessee: node \"{node}\" is lent until {until}; the lessee can only be changed after the node was returned"
    )]
    Lent { node: String, until: Timestamp },
    /// The BMC may have another password than the record.
    #[error(
        "node \"{node}\" is locked while the password of its BMC account is changed; try again when it is done"
    )]
    Password { node: String },
    /// The console is enabled, and the change would switch it to another implementation while people watch.
    #[error(
        "{field}: cannot be changed on node \"{node}\" while its console is enabled; disable the console first"
    )]
    Console { field: String, node: String },
    /// The cloud still lists the node as a compute host. The node's record is needed until the conductor has removed the host from the
    /// cloud.
    #[error(
        "node \"{node}\" cannot be deleted while the cloud still lists it as compute host {host}; wait until the host is removed, or put the node into maintenance"
    )]
    Leaving {
        node: String,
        /// The name of the compute host.
        host: String,
    },
    /// Ports in Neutron would stay behind without the node's record.
    #[error(
        "node \"{node}\" cannot be deleted while its ports in Neutron are changed; wait until it has none, or put it into maintenance"
    )]
    Connected { node: String },
    #[error(
        "node \"{node}\" cannot be deleted while it is in state \"{state}\": bring it to enroll, manageable or available, or put it into maintenance"
    )]
    Delete { node: String, state: State },
}

/// Checks that no work is in progress that relies on the node's machine and ports as they are.
pub fn check_idle(node: &Node) -> Result<(), ChangeRefused> {
    let state = node.provision_state;
    if state.is_busy() { Err(ChangeRefused::Busy { node: node.label(), state }) } else { Ok(()) }
}

/// Checks that an operator may change `before` into `after`.
pub fn check_change(before: &Node, after: &Node) -> Result<(), ChangeRefused> {
    check_not_busy(before, after)?;
    check_console(before, after)?;
    if before.driver != after.driver || before.driver_info != after.driver_info {
        check_password_settled(before)?;
    }
    check_machine(before, after)?;
    check_use(before, after)?;
    check_marks(before, after)
}

/// Refuses a change of how the BMC is reached while the password of its account is changed.
pub(crate) fn check_password_settled(node: &Node) -> Result<(), ChangeRefused> {
    match node.password_rotation.as_ref().filter(|rotation| rotation.is_in_progress()) {
        Some(_) => Err(ChangeRefused::Password { node: node.label() }),
        None => Ok(()),
    }
}

/// Refuses to switch an enabled console to another implementation while people watch.
pub(crate) fn check_console(before: &Node, after: &Node) -> Result<(), ChangeRefused> {
    let field = if before.driver != after.driver {
        Some("driver")
    } else {
        is_changed(before, after, Interface::Console).then_some("console_interface")
    };
    match field.filter(|_| before.console_enabled) {
        Some(field) => {
            let (field, node) = (field.to_owned(), before.label());
            Err(ChangeRefused::Console { field, node })
        }
        None => Ok(()),
    }
}

fn is_changed(before: &Node, after: &Node, interface: Interface) -> bool {
    before.interfaces.chosen(interface) != after.interfaces.chosen(interface)
}

/// During work only an instance and an allocation can be removed, and only in maintenance.
fn check_not_busy(before: &Node, after: &Node) -> Result<(), ChangeRefused> {
    let state = before.provision_state;
    let let_go = Node { instance_uuid: None, allocation: after.allocation, ..before.clone() };
    if state.is_busy()
        && !lets_changes_in(state)
        && !(before.maintenance.is_some() && *after == let_go)
    {
        return Err(ChangeRefused::Busy { node: before.label(), state });
    }
    Ok(())
}

/// Checks the fields that say how the machine is operated: its driver, interfaces and resource class.
fn check_machine(before: &Node, after: &Node) -> Result<(), ChangeRefused> {
    let state = before.provision_state;
    let idle = matches!(
        state,
        State::Enroll
            | State::Manageable
            | State::Available
            | State::InspectFailed
            | State::AdoptFailed
    );
    let free = idle || (before.maintenance.is_some() && !state.is_busy());
    let elsewhere = "bring it to enroll, manageable or available, or put it into maintenance";
    if before.driver != after.driver && !free {
        return frozen(before, "driver", elsewhere);
    }
    let changed = |interface: &Interface| is_changed(before, after, *interface);
    // The console interface may change during work, because no work uses the console.
    let is_relied_on = |interface: &Interface| *interface != Interface::Console;
    let mut relied_on = Interface::ALL.into_iter().filter(is_relied_on);
    if let Some(interface) = relied_on.find(changed)
        && !free
    {
        return frozen(before, &format!("{}_interface", interface.as_str()), elsewhere);
    }
    if before.resource_class.is_some() && before.resource_class != after.resource_class && !free {
        return frozen(before, "resource_class", elsewhere);
    }
    Ok(())
}

/// Checks the fields that say who uses the node: its instance, allocation and lessee.
fn check_use(before: &Node, after: &Node) -> Result<(), ChangeRefused> {
    if let (Some(instance), Some(other)) = (before.instance_uuid, after.instance_uuid)
        && instance != other
    {
        return Err(ChangeRefused::InUse { node: before.label(), instance });
    }
    if before.allocation.is_some() && after.instance_uuid.is_none() {
        check_release(before)?;
    }
    if before.lessee != after.lessee {
        check_not_lent(before)?;
    }
    Ok(())
}

/// Checks the marks that an operator sets on a node: protected and retired.
fn check_marks(before: &Node, after: &Node) -> Result<(), ChangeRefused> {
    let state = before.provision_state;
    let is_protected_now = before.protected.is_none() && after.protected.is_some();
    if is_protected_now && state != State::Active {
        return frozen(before, "protected", "only a node in state \"active\" can be protected");
    }
    if is_protected_now && before.lending.is_some() {
        return frozen(before, "protected", "the node has a lease; extend the lease instead");
    }
    if before.retired.is_none() && after.retired.is_some() && state == State::Available {
        let instead = "request \"manage\" first, so that no allocation gets the node";
        return frozen(before, "retired", instead);
    }
    Ok(())
}

/// Refuses a change of this field in the present state of the node.
fn frozen(node: &Node, field: &str, instead: &'static str) -> Result<(), ChangeRefused> {
    Err(ChangeRefused::State {
        field: field.to_owned(),
        node: node.label(),
        state: node.provision_state,
        instead,
    })
}

/// Checks that the node's allocation may be removed now.
///
/// # Errors
///
/// Fails if the node is in use and not in maintenance.
pub fn check_release(node: &Node) -> Result<(), ChangeRefused> {
    let state = node.provision_state;
    let lets_changes_in =
        matches!(state, State::Verifying | State::Inspecting | State::InspectWait);
    let in_use = state.is_in_use() || (state.is_busy() && !lets_changes_in);
    if in_use && node.maintenance.is_none() {
        return Err(ChangeRefused::Allocated { node: node.label(), state });
    }
    Ok(())
}

fn check_not_lent(node: &Node) -> Result<(), ChangeRefused> {
    match &node.lending {
        Some(lending) => {
            Err(ChangeRefused::Lent { node: node.label(), until: lending.lease.until })
        }
        None => Ok(()),
    }
}

/// Returns whether a busy node in `state` may be changed: neither the check of the BMC nor a machine that has yet to report relies on the
/// fields that an operator may change.
const fn lets_changes_in(state: State) -> bool {
    matches!(state, State::Verifying | State::InspectWait)
}

/// Checks that `node` may be deleted.
pub fn check_delete(node: &Node) -> Result<(), ChangeRefused> {
    let state = node.provision_state;
    let label = || node.label();
    check_idle(node)?;
    check_password_settled(node)?;
    check_not_lent(node)?;
    if node.protected.is_some() {
        return Err(ChangeRefused::Protected { node: label() });
    }
    if node.maintenance.is_some() {
        return Ok(());
    }
    if let Some(instance) = node.instance_uuid {
        return Err(ChangeRefused::InUse { node: label(), instance });
    }
    if let Some(host) = node.hypervisor.as_ref().filter(|host| host.is_leaving()) {
        return Err(ChangeRefused::Leaving { node: label(), host: host.host.clone() });
    }
    if !node.network_changes.are_done() {
        return Err(ChangeRefused::Connected { node: label() });
    }
    match state {
        State::Enroll | State::Manageable | State::Available | State::AdoptFailed => Ok(()),
        State::Verifying
        | State::Inspecting
        | State::InspectWait
        | State::InspectFailed
        | State::Cleaning
        | State::CleanWait
        | State::CleanFailed
        | State::CleanHold
        | State::DeployHold
        | State::Servicing
        | State::ServiceWait
        | State::ServiceFailed
        | State::ServiceHold
        | State::Rescuing
        | State::RescueWait
        | State::Rescued
        | State::RescueFailed
        | State::Unrescuing
        | State::UnrescueFailed
        | State::Deploying
        | State::DeployWait
        | State::DeployFailed
        | State::Active
        | State::Deleting
        | State::Error
        | State::Adopting => Err(ChangeRefused::Delete { node: label(), state }),
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use lease::Terms;
    use uuid::Uuid;

    use super::*;
    use crate::{
        AllocationUuid, BootInterface, ConsoleInterface, Driver, LendRequest, Maintenance,
        NodeUuid, lend,
    };

    fn node(state: State) -> Node {
        let mut node = Node::new(NodeUuid::nil(), Driver::Redfish, Timestamp::UNIX_EPOCH);
        node.provision_state = state;
        node
    }

    #[track_caller]
    fn check(before: &Node, change: impl FnOnce(&mut Node), want: Option<&str>) {
        let mut after = before.clone();
        change(&mut after);
        let got = check_change(before, &after).err().map(|why| why.to_string());
        assert_eq!(got.as_deref(), want);
    }

    #[test]
    fn a_busy_node_cannot_be_changed_or_deleted() {
        for state in State::ALL.into_iter().filter(|state| state.is_busy()) {
            let before = node(state);
            let mut after = before.clone();
            after.description = Some("x".to_owned());
            let may_change = [State::Verifying, State::InspectWait].contains(&state);
            assert_eq!(check_change(&before, &after).is_ok(), may_change, "{state}");
            assert!(check_delete(&before).is_err(), "{state}");
            assert!(check_idle(&before).is_err(), "{state}");
        }
        assert_eq!(check_idle(&node(State::Active)), Ok(()));
    }

    #[test]
    fn maintenance_frees_a_busy_node_of_its_instance_and_nothing_else() {
        let mut before = node(State::DeployWait);
        before.instance_uuid = Some(Uuid::nil());
        before.allocation = Some(AllocationUuid::nil());
        let free = |node: &mut Node| {
            node.instance_uuid = None;
            node.allocation = None;
        };
        let busy = check_change(
            &before,
            &Node { instance_uuid: None, allocation: None, ..before.clone() },
        );
        assert!(busy.is_err(), "not without maintenance");
        before.maintenance = Some(Maintenance::requested(None));
        check(&before, free, None);
        let mut after = before.clone();
        free(&mut after);
        after.description = Some("x".to_owned());
        assert!(check_change(&before, &after).is_err(), "nothing else");
    }

    #[test]
    fn the_resource_class_of_a_node_in_use_stays() {
        let mut classed = node(State::Active);
        classed.resource_class = Some("gpu".to_owned());
        let other = |node: &mut Node| node.resource_class = Some("cpu".to_owned());
        let mut after = classed.clone();
        other(&mut after);
        assert!(check_change(&classed, &after).is_err());
        check(&classed, |node| node.description = Some("x".to_owned()), None);
        check(&node(State::Active), other, None);
        classed.provision_state = State::Manageable;
        check(&classed, other, None);
    }

    #[test]
    fn an_available_node_cannot_be_retired() {
        let retire = |state: State| {
            let before = node(state);
            check_change(&before, &Node { retired: Some(String::new()), ..before.clone() })
        };
        assert!(retire(State::Available).is_err());
        assert_eq!(retire(State::Manageable), Ok(()));
        assert_eq!(retire(State::Active), Ok(()));
    }

    #[test]
    fn driver_and_interfaces_change_only_without_work() {
        check(&node(State::Enroll), |node| node.driver = Driver::Ipmi, None);
        check(
            &node(State::Active),
            |node| node.driver = Driver::Ipmi,
            Some(
                "driver: cannot be changed on node \"00000000-0000-0000-0000-000000000000\" in state \"active\": bring it to enroll, manageable or available, or put it into maintenance",
            ),
        );
        let mut maintained = node(State::Active);
        maintained.maintenance = Some(Maintenance::requested(None));
        check(&maintained, |node| node.driver = Driver::Ipmi, None);
        let boot = |node: &mut Node| {
            node.interfaces.boot = Some(BootInterface::HttpIpxe);
        };
        check(&node(State::Manageable), boot, None);
        let refused = "boot_interface: cannot be changed on node \"00000000-0000-0000-0000-000000000000\" in state \"verifying\": bring it to enroll, manageable or available, or put it into maintenance";
        check(&node(State::Verifying), boot, Some(refused));
    }

    #[test]
    fn an_enabled_console_cannot_change_its_implementation() {
        let socat = |node: &mut Node| {
            node.interfaces.console = Some(ConsoleInterface::IpmitoolSocat);
        };
        check(&node(State::Active), socat, None);
        let mut enabled = node(State::Available);
        enabled.console_enabled = true;
        let refused = |field: &str| {
            format!(
                "{field}: cannot be changed on node \"00000000-0000-0000-0000-000000000000\" while its console is enabled; disable the console first"
            )
        };
        check(&enabled, socat, Some(&refused("console_interface")));
        check(&enabled, |node| node.driver = Driver::Ipmi, Some(&refused("driver")));
        check(&enabled, |node| node.description = Some("x".to_owned()), None);
    }

    #[test]
    fn a_node_with_a_lease_cannot_be_protected() {
        let protect = |node: &mut Node| node.protected = Some(String::new());
        let mut lent = node(State::Active);
        lent.lessee = Some("lab".to_owned());
        check(&lent, protect, None);
        let loan =
            LendRequest { lessee: "lab".to_owned(), length: "1d".parse().unwrap(), notify: None };
        let (lent, _) = lend(&lent, loan, "root", Terms::default(), Timestamp::UNIX_EPOCH).unwrap();
        let refused = "protected: cannot be changed on node \"00000000-0000-0000-0000-000000000000\" in state \"active\": the node has a lease; extend the lease instead";
        check(&lent, protect, Some(refused));
        check(&lent, |node| node.description = Some("x".to_owned()), None);
        let mut taken = lent.clone();
        taken.lessee = None;
        assert!(
            check_change(&lent, &taken).is_err(),
            "the lessee stays until the end of the lease"
        );
        let idle = Node { provision_state: State::Available, ..lent.clone() };
        assert!(check_delete(&idle).is_err(), "a node with a lease stays");
        let protected = Node { protected: Some(String::new()), ..lent };
        check(&protected, |node| node.protected = None, None);
    }

    #[test]
    fn an_instance_is_not_replaced_by_another() {
        let mut used = node(State::Active);
        used.instance_uuid = Some(Uuid::nil());
        let other = |node: &mut Node| node.instance_uuid = Some(Uuid::max());
        check(
            &used,
            other,
            Some(
                "instance_uuid: node \"00000000-0000-0000-0000-000000000000\" is used by instance 00000000-0000-0000-0000-000000000000 already",
            ),
        );
        check(&used, |node| node.instance_uuid = None, None);
        assert!(check_delete(&used).is_err());
    }

    #[test]
    fn only_an_unused_node_can_be_deleted() {
        let forgettable = |state: &State| check_delete(&node(*state)).is_ok();
        let states: Vec<State> = State::ALL.into_iter().filter(forgettable).collect();
        assert_eq!(
            states,
            [State::Enroll, State::Manageable, State::Available, State::AdoptFailed]
        );
        let mut protected = node(State::Available);
        protected.protected = Some(String::new());
        assert!(check_delete(&protected).is_err());
    }

    #[test]
    fn an_allocation_stays_while_its_node_is_used() {
        let refused = |state: &State| {
            let mut used = node(*state);
            used.allocation = Some(AllocationUuid::nil());
            let refused = check_release(&used).is_err();
            used.maintenance = Some(Maintenance::requested(None));
            assert!(check_release(&used).is_ok(), "{state}");
            refused
        };
        let refused: Vec<State> = State::ALL.into_iter().filter(refused).collect();
        assert_eq!(
            refused,
            [
                State::Cleaning,
                State::CleanWait,
                State::CleanHold,
                State::Deploying,
                State::DeployWait,
                State::DeployHold,
                State::Active,
                State::Servicing,
                State::ServiceWait,
                State::ServiceFailed,
                State::ServiceHold,
                State::Rescuing,
                State::RescueWait,
                State::Rescued,
                State::RescueFailed,
                State::Unrescuing,
                State::UnrescueFailed,
                State::Deleting,
                State::Adopting,
            ]
        );
    }
}
