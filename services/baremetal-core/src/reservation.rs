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
    Ok((asked, written, entry.by(user)))
}
