//! Subscriptions to events (DSP0268 `EventService` and `EventDestination`).

use async_trait::async_trait;
use bmc::{BmcError, EventSubscriptions};
use hardware::{NewSubscription, Subscription, SubscriptionList};
use reqwest::StatusCode;
use serde_json::{Map, Value, json};
use url::Url;

use crate::answer::Answer;
use crate::document::Document;
use crate::service::{Resource, Service};

/// The most subscriptions that are looked through. BMCs have room for some twenty.
const MOST_SUBSCRIPTIONS: usize = 256;

/// The longest text of a subscription, in characters.
const LONGEST_TEXT: usize = 4096;

/// `EventType` of the Event schema (DSP8010), for services that do not list their types.
const EVENT_TYPES: [&str; 7] = [
    "StatusChange",
    "ResourceUpdated",
    "ResourceAdded",
    "ResourceRemoved",
    "Alert",
    "MetricReport",
    "Other",
];

#[async_trait]
impl EventSubscriptions for Service {
    async fn event_types(&self) -> Result<Vec<String>, BmcError> {
        let service = self.event_service().await?.body;
        let listed = service.words("EventTypesForSubscription").filter(|types| !types.is_empty());
        let types = listed.unwrap_or_else(|| EVENT_TYPES.to_vec());
        Ok(types.into_iter().map(str::to_owned).collect())
    }

    async fn list(&self) -> Result<SubscriptionList, BmcError> {
        let url = self.subscriptions().await?;
        let body = self.get(&url).await?.body;
        let members = self.ids(&url, MOST_SUBSCRIPTIONS).await?.unwrap_or_default();
        Ok(SubscriptionList {
            path: body.text("@odata.id"),
            schema: body.text("@odata.type"),
            name: body.text("Name"),
            description: body.text("Description"),
            members,
        })
    }

    async fn find(&self, id: &str) -> Result<Option<Subscription>, BmcError> {
        let Some(url) = self.subscription(id).await? else { return Ok(None) };
        let answer = self.fetch(&url).await?;
        if answer.status == StatusCode::NOT_FOUND {
            return Ok(None);
        }
        Ok(Some(read(&self.resource(&url, answer)?.body)))
    }

    async fn create(&self, wanted: &NewSubscription) -> Result<Subscription, BmcError> {
        let url = self.subscriptions().await?;
        let mut body = json!({
            "Destination": wanted.destination,
            "Protocol": "Redfish",
            "Context": wanted.context,
            "EventTypes": wanted.event_types,
        });
        if !wanted.headers.is_empty() {
            let headers = wanted.headers.iter().map(|(name, value)| {
                Value::Object(Map::from_iter([(name.clone(), value.clone().into())]))
            });
            body["HttpHeaders"] = headers.collect();
        }
        let answer = self.post(&url, body).await?.accepted(&self.origin.host());
        self.created(answer.map_err(|error| without_values(error, &wanted.headers))?).await
    }

    async fn delete(&self, id: &str) -> Result<bool, BmcError> {
        let Some(url) = self.subscription(id).await? else { return Ok(false) };
        let answer = self.delete_resource(&url, None).await?;
        if answer.status == StatusCode::NOT_FOUND {
            return Ok(false);
        }
        let answer = answer.accepted(&self.origin.host())?;
        self.finish(answer).await.map(|()| true)
    }
}

impl Service {
    async fn event_service(&self) -> Result<Resource, BmcError> {
        let url = self.root().await?.events.clone().ok_or_else(no_events)?;
        self.find_unless_busy(&url).await?.ok_or_else(no_events)
    }

    /// Returns the URL of the collection of subscriptions.
    async fn subscriptions(&self) -> Result<Url, BmcError> {
        let service = self.event_service().await?.body;
        self.link(&service, "Subscriptions").ok_or_else(no_events)
    }

    /// Returns the URL of the subscription whose path ends with `id`. An id is never made a part of a URL: it comes from a caller, and could
    /// lead to any resource of the BMC.
    async fn subscription(&self, id: &str) -> Result<Option<Url>, BmcError> {
        let url = self.subscriptions().await?;
        let members = self.ids(&url, MOST_SUBSCRIPTIONS).await?.unwrap_or_default();
        let has_id = |path: &&String| path.trim_end_matches('/').rsplit('/').next() == Some(id);
        members.iter().find(has_id).map(|path| self.origin.follow(path)).transpose()
    }

    /// Reads the subscription that `answer` made. Some services answer with its address alone, others with its document alone.
    async fn created(&self, answer: Answer) -> Result<Subscription, BmcError> {
        let body = answer.document().unwrap_or_default();
        if body.at("Destination").is_string() {
            return Ok(read(&body));
        }
        let named = [answer.location.as_deref(), body.id()];
        let url = named.into_iter().flatten().find_map(|link| self.origin.follow(link).ok());
        let unnamed = || answer.malformed("it does not name the new subscription");
        Ok(read(&self.get(&url.ok_or_else(unnamed)?).await?.body))
    }
}

fn no_events() -> BmcError {
    BmcError::Unsupported { what: "send its events to others".to_owned() }
}

/// Hides the values of `headers` in the words of a BMC, because some BMCs repeat a value that they refuse.
fn without_values(mut error: BmcError, headers: &[(String, String)]) -> BmcError {
    if let BmcError::Refused { answer: words, .. } | BmcError::Busy { reason: words, .. } =
        &mut error
    {
        for (_, value) in headers.iter().filter(|(_, value)| !value.is_empty()) {
            *words = words.replace(value, "***");
        }
    }
    error
}

fn read(body: &Value) -> Subscription {
    let types = body.words("EventTypes");
    Subscription {
        id: whole(body, "Id"),
        context: whole(body, "Context"),
        protocol: whole(body, "Protocol"),
        destination: whole(body, "Destination"),
        event_types: types.map(|types| types.into_iter().map(str::to_owned).collect()),
    }
}

/// A text that may be empty, and longer than other texts of a BMC: it comes from the caller who made the subscription.
fn whole(body: &Value, name: &str) -> Option<String> {
    let printable = body.at(name).as_str()?.chars().filter(|c| !c.is_control());
    Some(printable.take(LONGEST_TEXT).collect())
}
