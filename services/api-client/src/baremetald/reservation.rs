//! Reservations of whole machines.

use serde::Deserialize;

use crate::shared::Lease;

/// A reservation.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Reservation {
    pub uuid: String,
    pub name: Option<String>,
    pub state: String,
    pub resource_class: Option<String>,
    pub image: Option<String>,
    pub node: Option<ReservedNode>,
    pub lease: Option<Lease>,
}

/// An allocation of a node.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Allocation {
    pub state: Option<String>,
}

/// The node of a reservation.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct ReservedNode {
    pub uuid: String,
    pub name: Option<String>,
    pub power_state: Option<String>,
    pub provision_state: String,
}

impl Reservation {
    /// The name, or the id of a reservation without a name.
    pub fn label(&self) -> &str {
        self.name.as_deref().filter(|name| !name.is_empty()).unwrap_or(&self.uuid)
    }
}
