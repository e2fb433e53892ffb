//! The events that a BMC sends to others.

use async_trait::async_trait;
use hardware::{NewSubscription, Subscription, SubscriptionList};

use crate::BmcError;

/// The subscriptions to the events of a BMC, each named by its id.
#[async_trait]
pub trait EventSubscriptions: Send + Sync {
    /// Returns the types of events that can be subscribed to.
    async fn event_types(&self) -> Result<Vec<String>, BmcError>;

    /// Lists the subscriptions.
    async fn list(&self) -> Result<SubscriptionList, BmcError>;

    /// Reads a subscription; `None` if there is no such subscription.
    async fn find(&self, id: &str) -> Result<Option<Subscription>, BmcError>;

    /// Makes a subscription.
    ///
    /// Not idempotent: a second request can make a second subscription.
    async fn create(&self, wanted: &NewSubscription) -> Result<Subscription, BmcError>;

    /// Deletes a subscription; returns whether there was such a subscription.
    async fn delete(&self, id: &str) -> Result<bool, BmcError>;
}
