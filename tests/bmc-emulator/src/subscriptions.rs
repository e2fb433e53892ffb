//! Subscriptions to the events of a BMC. The BMC keeps them; it sends no events.

use serde::{Deserialize, Serialize};

/// A subscription (`EventDestination` schema, DSP8010).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Subscription {
    pub id: u32,
    pub destination: String,
    pub context: String,
    pub event_types: Vec<String>,
    /// The headers of each event. A BMC never shows them.
    pub headers: Vec<(String, String)>,
}

/// All subscriptions of a BMC.
#[derive(Debug, Default)]
pub(crate) struct Subscriptions {
    pub(crate) all: Vec<Subscription>,
    last_id: u32,
}

impl Subscriptions {
    pub(crate) fn of(all: Vec<Subscription>) -> Subscriptions {
        let last_id = all.iter().map(|one| one.id).max().unwrap_or(0);
        Subscriptions { all, last_id }
    }

    /// Adds a subscription, whose id this function sets. Returns the id.
    pub(crate) fn add(&mut self, subscription: Subscription) -> u32 {
        self.last_id += 1;
        self.all.push(Subscription { id: self.last_id, ..subscription });
        self.last_id
    }
}
