//! Subscriptions: POST to their collection, and DELETE of a subscription (DSP0268 `EventDestination`).

use http::StatusCode;
use serde_json::{Map, Value, json};
use url::Url;

use crate::log::Protocol;
use crate::profile::SubscriptionAnswer;
use crate::redfish::answer::Answer;
use crate::redfish::face::RedfishFace;
use crate::redfish::problem::{Message, Problem};
use crate::redfish::resource::Resource;
use crate::subscriptions::Subscription;

const PROPERTIES: [&str; 5] = ["Destination", "Protocol", "Context", "EventTypes", "HttpHeaders"];

impl RedfishFace {
    /// Makes a subscription.
    pub(super) fn subscribe(
        &self,
        collection: &Resource,
        form: &Map<String, Value>,
    ) -> Result<Answer, Problem> {
        if let Some(name) = form.keys().find(|name| !PROPERTIES.contains(&name.as_str())) {
            return Err(Problem::property(Message::PROPERTY_UNKNOWN, name));
        }
        let protocol = required(form, "Protocol")?;
        if protocol != "Redfish" {
            return Err(Problem::value(Message::PROPERTY_NOT_IN_LIST, "Protocol", protocol));
        }
        let destination = required(form, "Destination")?;
        let url = Url::parse(destination).ok();
        if !url.is_some_and(|url| matches!(url.scheme(), "http" | "https")) {
            return Err(Problem::value(Message::PROPERTY_FORMAT, "Destination", destination));
        }
        let subscription = Subscription {
            id: 0,
            destination: destination.to_owned(),
            context: optional(form, "Context")?.unwrap_or_default().to_owned(),
            event_types: self.event_types(form)?,
            headers: headers(form)?,
        };
        if self.machine.subscriptions().len() >= self.profile.events.most {
            return Err(Problem::of(Message::CREATE_LIMIT));
        }
        let id = self.machine.subscribe(Protocol::Redfish, subscription);
        let path = format!("{}/{id}", collection.path.trim_end_matches('/'));
        Ok(self.created_subscription(&path))
    }

    fn created_subscription(&self, path: &str) -> Answer {
        let made = Resource::find(path, self).and_then(|made| made.document(self));
        let whole = Answer::json(StatusCode::CREATED, made.unwrap_or_default());
        match self.profile.events.answer {
            SubscriptionAnswer::Whole => whole.with("location", path.to_owned()),
            SubscriptionAnswer::Document => whole,
            SubscriptionAnswer::Address => {
                Answer::empty(StatusCode::CREATED).with("location", path.to_owned())
            }
            SubscriptionAnswer::Message => Answer::json(StatusCode::CREATED, super::success())
                .with("location", path.to_owned()),
        }
    }

    /// Deletes a subscription.
    pub(in crate::redfish) fn unsubscribe(
        &self,
        subscription: &Resource,
    ) -> Result<Answer, Problem> {
        let missing = || Problem::no_such_resource(&subscription.path);
        self.machine.unsubscribe(Protocol::Redfish, subscription.id().ok_or_else(missing)?);
        Ok(Answer::empty(StatusCode::NO_CONTENT))
    }

    fn event_types(&self, form: &Map<String, Value>) -> Result<Vec<String>, Problem> {
        let known = &self.profile.events.types;
        let Some(value) = form.get("EventTypes") else { return Ok(known.clone()) };
        let wrong = || Problem::value(Message::PROPERTY_TYPE, "EventTypes", value);
        let words = value.as_array().ok_or_else(wrong)?.iter();
        let words: Option<Vec<String>> = words.map(|it| it.as_str().map(str::to_owned)).collect();
        let words = words.ok_or_else(wrong)?;
        match words.iter().find(|word| !known.contains(word)) {
            Some(other) => Err(Problem::value(Message::PROPERTY_NOT_IN_LIST, "EventTypes", other)),
            None => Ok(words),
        }
    }
}

fn required<'a>(form: &'a Map<String, Value>, name: &str) -> Result<&'a str, Problem> {
    optional(form, name)?.ok_or_else(|| Problem::property(Message::PROPERTY_MISSING, name))
}

fn optional<'a>(form: &'a Map<String, Value>, name: &str) -> Result<Option<&'a str>, Problem> {
    let wrong = |value: &Value| Problem::value(Message::PROPERTY_TYPE, name, value);
    form.get(name).map(|value| value.as_str().ok_or_else(|| wrong(value))).transpose()
}

/// The headers: a list of objects with names and values.
fn headers(form: &Map<String, Value>) -> Result<Vec<(String, String)>, Problem> {
    let Some(value) = form.get("HttpHeaders") else { return Ok(Vec::new()) };
    // The value may hold a password.
    let wrong = || Problem::value(Message::PROPERTY_TYPE, "HttpHeaders", json!("***"));
    let mut headers = Vec::new();
    for listed in value.as_array().ok_or_else(wrong)? {
        for (name, value) in listed.as_object().ok_or_else(wrong)? {
            headers.push((name.clone(), value.as_str().ok_or_else(wrong)?.to_owned()));
        }
    }
    Ok(headers)
}
