//! The rules of requests that enroll or change a node, in the order in which a broken rule is answered.

use crate::change::check_console;
use crate::password::check_passwords;
use crate::{
    ChangeRefused, Node, RequestRefused, UnsupportedInterface, check_change, check_compute_host,
};

/// A requested change of a node's record.
pub struct NodeChange<'a> {
    pub before: &'a Node,
    pub after: &'a Node,
    pub passwords: Passwords<'a>,
    /// The node that `after.parent_node` names, if there is one.
    pub parent: Option<&'a Node>,
}

/// How far the caller is trusted with stored BMC passwords.
pub enum Passwords<'a> {
    /// The caller operates the cloud, and may send a password to another machine.
    Trusted,
    /// The caller has to give a password again to send it to another machine. These keys of `driver_info` have a password in the request.
    Given(&'a [&'static str]),
}

/// Why a node is not enrolled or not changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NodeRefused {
    #[error(transparent)]
    Interface(#[from] UnsupportedInterface),
    #[error(transparent)]
    Request(#[from] RequestRefused),
    #[error(transparent)]
    Change(#[from] ChangeRefused),
}

/// Checks a new node. `parent` is the node that `node.parent_node` names, if there is one.
pub fn check_new_node(node: &Node, parent: Option<&Node>) -> Result<(), NodeRefused> {
    node.interfaces.check(node.driver)?;
    check_compute_host(None, &node.instance_info)?;
    Ok(check_parent(node, parent)?)
}

impl NodeChange<'_> {
    /// Checks that the caller may make the change.
    pub fn check(&self) -> Result<(), NodeRefused> {
        let NodeChange { before, after, passwords, parent } = self;
        // As in Ironic, an enabled console is refused before the interfaces are.
        check_console(before, after)?;
        after.interfaces.check(after.driver)?;
        match passwords {
            Passwords::Trusted => {}
            Passwords::Given(given) => {
                check_passwords(&before.driver_info, &after.driver_info, given)?;
            }
        }
        check_change(before, after)?;
        check_compute_host(Some(&before.instance_info), &after.instance_info)?;
        if before.parent_node != after.parent_node {
            check_parent(after, *parent)?;
        }
        Ok(())
    }

    /// Returns whether a person puts the node into maintenance, for which a compute host is drained.
    pub fn begins_maintenance(&self) -> bool {
        !self.before.is_maintenance_requested() && self.after.is_maintenance_requested()
    }
}

/// Refuses a parent that does not exist, that is the node itself, or that has another owner.
fn check_parent(node: &Node, parent: Option<&Node>) -> Result<(), RequestRefused> {
    let Some(named) = node.parent_node else { return Ok(()) };
    // As in Ironic, the answer to a parent of another owner does not tell that the node exists.
    let is_it = |parent: &Node| parent.id == named && parent.owner == node.owner;
    if named != node.id && parent.is_some_and(is_it) {
        return Ok(());
    }
    let problem = "must be another node of the same owner".to_owned();
    Err(RequestRefused::Field { field: "parent_node".to_owned(), problem })
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde_json::json;

    use super::*;
    use crate::{BootInterface, Driver, Maintenance, NodeUuid, State};

    fn node() -> Node {
        let mut node = Node::new(NodeUuid::nil(), Driver::Redfish, Timestamp::UNIX_EPOCH);
        let info = json!({"redfish_address": "https://bmc", "redfish_password": "stored"});
        node.driver_info = info.as_object().unwrap().clone();
        node
    }

    #[track_caller]
    fn check(before: &Node, edit: impl Fn(&mut Node), passwords: Passwords<'_>, want: &str) {
        let mut after = before.clone();
        edit(&mut after);
        let change = NodeChange { before, after: &after, passwords, parent: None };
        let got = change.check().map_or_else(|why| why.to_string(), |()| "accepted".to_owned());
        assert!(got.starts_with(want), "{got}");
    }

    /// Breaks every rule, then fewer and fewer: each rule answers before the rules below it.
    #[test]
    fn the_rules_refuse_in_their_order() {
        let mut before = node();
        before.provision_state = State::Active;
        let rules: [fn(&mut Node); 4] = [
            |node| node.interfaces.boot = Some(BootInterface::Fake),
            |node| drop(node.driver_info.insert("redfish_address".to_owned(), "http://x".into())),
            |node| drop(node.instance_info.insert("hypervisor_hostname".to_owned(), "..".into())),
            |node| node.parent_node = Some(NodeUuid::nil()),
        ];
        let frozen = |node: &mut Node| node.driver = Driver::FakeHardware;
        let all = |from: usize| move |node: &mut Node| rules[from..].iter().for_each(|it| it(node));
        check(&before, all(0), Passwords::Given(&[]), "boot_interface: driver redfish");
        check(&before, all(1), Passwords::Given(&[]), "driver_info.redfish_password: send");
        let both = |node: &mut Node| {
            all(1)(node);
            frozen(node);
        };
        check(&before, both, Passwords::Trusted, "driver: cannot be changed");
        check(&before, all(2), Passwords::Trusted, "instance_info.hypervisor_hostname: ");
        check(
            &before,
            all(3),
            Passwords::Trusted,
            "parent_node: must be another node of the same owner",
        );
        check(&before, |_| {}, Passwords::Given(&[]), "accepted");
    }

    #[test]
    fn a_parent_is_another_node_that_exists() {
        let parent = Node { id: NodeUuid::from_bytes([1; 16]), ..node() };
        let child = Node { parent_node: Some(parent.id), ..node() };
        assert_eq!(check_new_node(&child, Some(&parent)), Ok(()));
        assert!(check_new_node(&child, None).is_err());
        let of_other = Node { owner: Some("other".to_owned()), ..parent.clone() };
        assert!(check_new_node(&child, Some(&of_other)).is_err());
        let own = Node { parent_node: Some(child.id), ..node() };
        assert!(check_new_node(&own, Some(&own)).is_err());
        // A parent that was deleted since does not keep the child from other changes.
        check(
            &child,
            |node| node.description = Some("x".to_owned()),
            Passwords::Trusted,
            "accepted",
        );
    }

    #[test]
    fn maintenance_begins_once() {
        let (idle, held) =
            (node(), Node { maintenance: Some(Maintenance::requested(None)), ..node() });
        let change = |before, after| NodeChange {
            before,
            after,
            passwords: Passwords::Trusted,
            parent: None,
        };
        assert!(change(&idle, &held).begins_maintenance());
        assert!(!change(&held, &held).begins_maintenance());
        assert!(!change(&held, &idle).begins_maintenance());
    }
}
