//! Carries out calls of vendor methods, which the API answers at once.

use std::sync::Arc;

use baremetal_core::{Node, RequestRefused, VendorCall, VendorRefused};
use bmc::{BmcError, EventSubscriptions};
use hardware::{NewSubscription, Subscription, SubscriptionList};

use crate::allowed;
use crate::conductor::Conductor;

/// The result of a vendor method.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VendorResult {
    /// The method is done, and tells nothing.
    Nothing,
    IsWord(bool),
    Subscription(Subscription),
    Subscriptions(SubscriptionList),
}

/// Why a vendor method was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum VendorCallError {
    #[error(transparent)]
    Refused(#[from] VendorRefused),
    #[error(transparent)]
    Host(#[from] RequestRefused),
    #[error(transparent)]
    Bmc(#[from] BmcError),
}

impl Conductor {
    /// Carries out `call` on the machine of `node`, and returns once it is done.
    pub async fn call_vendor_method(
        &self,
        node: &Node,
        call: VendorCall,
    ) -> Result<VendorResult, VendorCallError> {
        match call {
            VendorCall::Fake(answer) => {
                return Ok(answer.map_or(VendorResult::Nothing, VendorResult::IsWord));
            }
            VendorCall::EjectMedia(kind) => self.media(node)?.eject_all(kind).await?,
            VendorCall::CreateSubscription(wanted) => {
                return self.subscribe(node, &wanted).await.map(VendorResult::Subscription);
            }
            VendorCall::ListSubscriptions => {
                return Ok(VendorResult::Subscriptions(self.events(node)?.list().await?));
            }
            VendorCall::GetSubscription { id } => {
                let found = self.events(node)?.find(&id).await?;
                let found = found.ok_or(VendorRefused::NoSubscription { id })?;
                return Ok(VendorResult::Subscription(found));
            }
            VendorCall::DeleteSubscription { id } => {
                if !self.events(node)?.delete(&id).await? {
                    return Err(VendorRefused::NoSubscription { id }.into());
                }
            }
        }
        Ok(VendorResult::Nothing)
    }

    async fn subscribe(
        &self,
        node: &Node,
        wanted: &NewSubscription,
    ) -> Result<Subscription, VendorCallError> {
        allowed::check_event_host(&self.context.settings.bmc.event_hosts, &wanted.destination)?;
        let events = self.events(node)?;
        let known = events.event_types().await?;
        if let Some(unknown) = wanted.event_types.iter().find(|it| !known.contains(it)) {
            let unknown = unknown.clone();
            return Err(VendorRefused::EventType { unknown, known }.into());
        }
        Ok(events.create(wanted).await?)
    }

    fn events(&self, node: &Node) -> Result<Arc<dyn EventSubscriptions>, BmcError> {
        let none = || BmcError::Unsupported { what: "send its events to others".to_owned() };
        self.bmc(node)?.events.ok_or_else(none)
    }
}
