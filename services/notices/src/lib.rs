#![doc = include_str!("../README.md")]

mod config;
mod mail;
mod notice;
mod pump;
mod receiver;
mod trust;
mod unsent;
mod webhook;

pub use config::{MailConfig, NoticesConfig, RetryConfig, Security, SetupError, WebhookConfig};
pub use database::outbox::{Letter, Outbox};
pub use notice::{About, Notice};
pub use pump::{GivenUp, Pump};
pub use receiver::Addressees;
