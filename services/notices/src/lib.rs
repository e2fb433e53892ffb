#![doc = include_str!("../README.md")]

mod config;
mod events;
mod mail;
mod notice;
mod receiver;
mod sender;
mod senders;
mod trust;
mod unsent;
mod webhook;

pub use config::{
    MailConfig, NoticesConfig, RetryConfig, Security, SetupError, WebhookConfig, WebhookTarget,
};
pub use database::outbox::{Letter, Outbox};
pub use events::{EventPace, EventSender, EventWebhookConfig, EventsConfig, WebhookName};
pub use notice::{Notice, NoticeSubject};
pub use receiver::ReceiverKinds;
pub use sender::{OutboxSender, RecordGivenUp};
pub use senders::{SendersError, senders};
