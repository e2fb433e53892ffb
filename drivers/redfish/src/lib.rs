#![doc = include_str!("../README.md")]

mod probe;

mod connector;
mod target;

mod answer;
mod clients;
mod document;
mod links;
mod message;
mod origin;
mod service;
mod session;
mod task;
mod tls;
mod unanswered;
mod upload;

mod collection;
mod discovery;
mod quirks;
mod resolve;
mod resumption;
mod task_list;

mod account;
mod bios;
mod boot;
mod boot_settings;
mod clock;
mod event_log;
mod firmware;
mod identify;
mod indicators;
mod inspection;
mod interrupt;
mod media;
mod power;
mod raid;
mod sensors;
mod serial;
mod subscriptions;

pub use clients::{fingerprint, pinned_tls};
pub use connector::{Connector, ConnectorError};
pub use probe::ServiceRoot;
pub use resolve::AllowedResolver;
pub use target::{Auth, Target, Trust};
