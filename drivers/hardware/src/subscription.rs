//! Subscriptions to the events of a BMC (DSP0268 `EventDestination`).

use std::fmt;

/// The properties of a new subscription.
#[derive(Clone, PartialEq, Eq)]
pub struct NewSubscription {
    /// The URL to which the BMC sends events.
    pub destination: String,
    /// A text that the BMC adds to each event.
    pub context: String,
    /// The types of the events to send.
    pub event_types: Vec<String>,
    /// The HTTP headers that the BMC sends with each event: names and values. A value may be a secret.
    pub headers: Vec<(String, String)>,
}

impl fmt::Debug for NewSubscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let NewSubscription { destination, context, event_types, headers } = self;
        f.debug_struct("NewSubscription")
            .field("destination", destination)
            .field("context", context)
            .field("event_types", event_types)
            .field("headers", &headers.iter().map(|(name, _)| name).collect::<Vec<_>>())
            .finish()
    }
}

/// A subscription, as the BMC shows it. A property that the BMC leaves out is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subscription {
    pub id: Option<String>,
    pub context: Option<String>,
    pub protocol: Option<String>,
    pub destination: Option<String>,
    pub event_types: Option<Vec<String>>,
}

/// The collection of the subscriptions of a BMC. A property that the BMC leaves out is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SubscriptionList {
    pub path: Option<String>,
    pub schema: Option<String>,
    pub name: Option<String>,
    pub description: Option<String>,
    /// The paths of the subscriptions.
    pub members: Vec<String>,
}
