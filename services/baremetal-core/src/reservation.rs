//! Reservations: a whole node for a person, as an allocation, a lease and an installation that are written together.

use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::{
    Allocation, HistoryEntry, Node, NodeLease, RequestRefused, Verb, WorkUuid, assign,
    check_deploy, request_verb,
};

/// The installation and the lease that a reservation asks for, beside the criteria for the node.
#[derive(Clone, Debug, PartialEq)]
pub struct ReservationRequest {
    /// The image to install, in the keys of `instance_info`.
    pub instance_info: Map<String, Value>,
    pub lending: NodeLease,
    /// The id for the work of the installation.
    pub work: WorkUuid,
}

/// Reserves `node`, which fits `allocation`: assigns and lends the node to the allocation's project, and begins the installation.
///
/// # Errors
///
/// Returns the reason why the node cannot be installed.
pub fn reserve(
    node: &Node,
    allocation: &Allocation,
    order: &ReservationRequest,
    now: Timestamp,
) -> Result<(Node, Allocation, HistoryEntry), RequestRefused> {
    let (mut taken, written) = assign(node, allocation);
    for (key, value) in &order.instance_info {
        taken.instance_info.insert(key.clone(), value.clone());
    }
    taken.instance_name = allocation.name.as_ref().map(ToString::to_string);
    if taken.owner != allocation.owner {
        taken.lessee.clone_from(&allocation.owner);
    }
    taken.lending = Some(order.lending.clone());
    check_deploy(&taken)?;
    let (asked, entry) = request_verb(&taken, Verb::Deploy, order.work, now)?;
    let user = allocation.reservation.as_ref().and_then(|it| it.user.as_deref());
    Ok((asked, written, entry.by(user, allocation.owner.as_deref())))
}

#[cfg(test)]
mod tests {
    use lease::Lease;
    use serde_json::json;

    use super::*;
    use crate::{AllocationUuid, Driver, NodeUuid, Reservation, State};

    const T0: Timestamp = Timestamp::UNIX_EPOCH;

    fn order(instance_info: &Value) -> ReservationRequest {
        let lease = Lease::new(T0, "1d".parse().unwrap());
        ReservationRequest {
            instance_info: instance_info.as_object().unwrap().clone(),
            lending: NodeLease {
                lease,
                by: "ann".to_owned(),
                notify: None,
                reserved: true,
                drain: None,
            },
            work: WorkUuid::max(),
        }
    }

    fn allocation() -> Allocation {
        let user = Some("ann".to_owned());
        Allocation {
            name: Some("mine".parse().unwrap()),
            owner: Some("lab".to_owned()),
            reservation: Some(Reservation { user, image: "http://h/image".to_owned() }),
            ..Allocation::new(AllocationUuid::max(), T0)
        }
    }

    fn node(owner: Option<&str>) -> Node {
        let owner = owner.map(str::to_owned);
        let node = Node::new(NodeUuid::nil(), Driver::Redfish, T0);
        Node { provision_state: State::Available, owner, ..node }
    }

    #[test]
    fn a_reserved_node_is_assigned_lent_and_installed_for_its_user() {
        let image = json!({"image_source": "http://h/image", "image_checksum": "0".repeat(64)});
        let order = order(&image);
        let (taken, written, entry) = reserve(&node(None), &allocation(), &order, T0).unwrap();
        assert_eq!((taken.allocation, written.node), (Some(written.id), Some(taken.id)));
        assert_eq!(
            (taken.instance_name.as_deref(), taken.lessee.as_deref()),
            (Some("mine"), Some("lab"))
        );
        assert_eq!(taken.instance_info.get("image_source"), image.get("image_source"));
        assert_eq!(
            (&taken.lending, taken.provision_state),
            (&Some(order.lending), State::Deploying)
        );
        assert_eq!(taken.work.unwrap().id, WorkUuid::max());
        assert_eq!(entry.user.as_deref(), Some("ann"));
        assert!(reserve(&node(None), &allocation(), &self::order(&json!({})), T0).is_err());
    }

    #[test]
    fn a_project_becomes_no_lessee_of_its_own_node() {
        let image = json!({"image_source": "http://h/image", "image_checksum": "0".repeat(64)});
        let lessee = |owner| {
            let (taken, ..) = reserve(&node(owner), &allocation(), &order(&image), T0).unwrap();
            taken.lessee
        };
        assert_eq!(lessee(Some("lab")), None);
        assert_eq!(lessee(Some("other")), Some("lab".to_owned()));
        assert_eq!(lessee(None), Some("lab".to_owned()));
    }
}
