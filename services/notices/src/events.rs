//! Notifications to webhooks: CloudEvents that are signed as Standard Webhooks says, in the order of the changes of each object.

mod config;
mod sender;
mod webhook;

pub use config::{EventPace, EventWebhookConfig, EventsConfig, WebhookName};
pub use sender::EventSender;
