//! The `[events]` section of a configuration file.

use std::collections::BTreeSet;
use std::path::PathBuf;

use cloud_event::EventPattern;
use database::webhook_events::{Subscription, Subscriptions};
use jiff::SignedDuration;
use serde::Deserialize;
use url::Url;

use crate::config::WebhookTarget;

/// The most webhooks, which are values of a label of the metrics.
const MOST_WEBHOOKS: usize = 16;
/// The longest name of a webhook.
const LONGEST_NAME: usize = 63;

/// The webhooks that get notifications.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(try_from = "RawEvents")]
pub struct EventsConfig {
    pub webhooks: Vec<EventWebhookConfig>,
    pub pace: EventPace,
}

/// When a failed event is sent again, and when it is given up.
#[derive(Clone, Copy, Debug)]
pub struct EventPace {
    /// The wait after the first failure. Each further wait is twice as long, up to an hour.
    pub retry_first: SignedDuration,
    /// The age at which an event that cannot be sent is given up.
    pub give_up_after: SignedDuration,
    /// How often the database is asked for events that are due.
    pub look_every: SignedDuration,
}

impl Default for EventPace {
    fn default() -> Self {
        EventPace {
            retry_first: SignedDuration::from_secs(5),
            give_up_after: SignedDuration::from_hours(24),
            look_every: SignedDuration::from_secs(1),
        }
    }
}

/// A webhook that gets notifications.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "RawWebhook")]
pub struct EventWebhookConfig {
    pub name: WebhookName,
    pub target: WebhookTarget,
    /// A file with the secrets that sign the events.
    pub secret_file: PathBuf,
    /// The types of its events; all if there are none.
    pub kinds: Vec<EventPattern>,
}

/// The name of a webhook: lower-case letters, digits, `-` and `_`. It names the webhook in the database, the API and the metrics.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub struct WebhookName(String);

impl WebhookName {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for WebhookName {
    type Error = &'static str;

    fn try_from(raw: String) -> Result<Self, Self::Error> {
        let legal = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_".contains(c);
        if raw.is_empty() || raw.len() > LONGEST_NAME || !raw.chars().all(legal) {
            return Err("name: must be 1 to 63 lower-case letters, digits, '-' and '_'");
        }
        Ok(WebhookName(raw))
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawWebhook {
    name: WebhookName,
    url: Url,
    secret_file: PathBuf,
    #[serde(default)]
    types: Vec<String>,
    #[serde(default)]
    allow_local: bool,
    ca_file: Option<PathBuf>,
}

impl TryFrom<RawWebhook> for EventWebhookConfig {
    type Error = String;

    fn try_from(raw: RawWebhook) -> Result<Self, String> {
        let RawWebhook { name, url, secret_file, types, allow_local, ca_file } = raw;
        let target = WebhookTarget { url, allow_local, ca_file };
        target.check()?;
        let kinds = types.iter().map(|raw| raw.parse::<EventPattern>()).collect::<Result<_, _>>();
        let kinds = kinds.map_err(|error| format!("types: {error}"))?;
        Ok(EventWebhookConfig { name, target, secret_file, kinds })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawEvents {
    #[serde(default)]
    webhooks: Vec<EventWebhookConfig>,
    retry_first: Option<SignedDuration>,
    give_up_after: Option<SignedDuration>,
    look_every: Option<SignedDuration>,
}

impl TryFrom<RawEvents> for EventsConfig {
    type Error = &'static str;

    fn try_from(raw: RawEvents) -> Result<Self, Self::Error> {
        let RawEvents { webhooks, retry_first, give_up_after, look_every } = raw;
        let names: BTreeSet<&WebhookName> = webhooks.iter().map(|it| &it.name).collect();
        if names.len() < webhooks.len() {
            return Err("webhooks: each needs a name of its own");
        }
        if webhooks.len() > MOST_WEBHOOKS {
            return Err("webhooks: there may be at most 16");
        }
        let usual = EventPace::default();
        let pace = EventPace {
            retry_first: retry_first.unwrap_or(usual.retry_first),
            give_up_after: give_up_after.unwrap_or(usual.give_up_after),
            look_every: look_every.unwrap_or(usual.look_every),
        };
        Ok(EventsConfig { webhooks, pace })
    }
}

impl EventsConfig {
    /// Returns the webhooks of a program for its store; `source` names the program in its events.
    pub fn subscriptions(&self, source: String) -> Subscriptions {
        let webhooks = self.webhooks.iter().map(|it| Subscription {
            webhook: it.name.as_str().to_owned(),
            kinds: it.kinds.clone(),
        });
        Subscriptions::new(source, webhooks.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOOK: &str = r#"{"name": "cmdb", "url": "https://c", "secret_file": "s"}"#;

    #[track_caller]
    fn check(section: &str, want: Result<(), &str>) {
        let read = serde_json::from_str::<EventsConfig>(section).map(drop);
        let read = read.map_err(|error| error.to_string());
        match (read, want) {
            (Ok(()), Ok(())) => {}
            (Err(error), Err(want)) => assert!(error.contains(want), "{error}"),
            (read, want) => panic!("{read:?}, not {want:?}"),
        }
    }

    #[test]
    fn the_section_is_checked() {
        check("{}", Ok(()));
        check(&format!(r#"{{"webhooks": [{HOOK}], "give_up_after": "PT1H"}}"#), Ok(()));
        check(&format!(r#"{{"webhooks": [{HOOK}, {HOOK}]}}"#), Err("a name of its own"));
        let one = |change: (&str, &str)| {
            format!(r#"{{"webhooks": [{}]}}"#, HOOK.replace(change.0, change.1))
        };
        check(&one(("https://c", "http://c")), Err("must begin with https://"));
        check(&one(("https://c", "https://a:b@c")), Err("must not contain a password"));
        check(&one(("cmdb", "CMDB")), Err("lower-case letters"));
        check(&one(("\"s\"", "\"s\", \"types\": [\"baremetal.*\"]")), Ok(()));
        check(&one(("\"s\"", "\"s\", \"types\": [\"nodes*\"]")), Err("is no type of events"));
        check(&one(("\"s\"", "\"s\", \"type\": 1")), Err("unknown field `type`"));
    }
}
