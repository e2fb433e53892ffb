//! Whole machines for people: an allocation, the loan and the installation, all of which one write makes.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    Allocation, HistoryEntry, Lending, Node, Refusal, Verb, WorkUuid, ask, check_deploy, occupy,
};

/// What makes an allocation a reservation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reservation {
    /// Who asked for it: a user's id or name.
    pub user: Option<String>,
    /// The URL of the image that was asked for.
    pub image: String,
}

/// What a person asks for beside the kind of node.
#[derive(Clone, Debug, PartialEq)]
pub struct Order {
    /// What is to be installed, in the words of `instance_info`.
    pub instance_info: Map<String, Value>,
    /// For how long.
    pub lending: Lending,
    /// The id that the installation gets.
    pub work: WorkUuid,
}

/// `node`, which fits `allocation`, reserved, lent to the allocation's owner, and with its installation begun.
///
/// # Errors
///
/// What stands against the installation.
pub fn reserve(
    node: &Node,
    allocation: &Allocation,
    order: &Order,
    now: Timestamp,
) -> Result<(Node, Allocation, HistoryEntry), Refusal> {
    let (mut taken, written) = occupy(node, allocation);
    for (key, value) in &order.instance_info {
        taken.instance_info.insert(key.clone(), value.clone());
    }
    taken.instance_name = allocation.name.as_ref().map(ToString::to_string);
    if taken.owner != allocation.owner {
        taken.lessee.clone_from(&allocation.owner);
    }
    taken.lending = Some(order.lending.clone());
    check_deploy(&taken)?;
    let (asked, entry) = ask(&taken, Verb::Deploy, order.work, now)?;
    let user = allocation.reservation.as_ref().and_then(|it| it.user.as_deref());
    Ok((asked, written, entry.by(user)))
}
