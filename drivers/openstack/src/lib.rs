#![doc = include_str!("../README.md")]

mod config;
mod error;
mod quota;
mod service;
mod session;

mod body;
mod catalogue;
mod download;
mod lenient;
mod paging;
mod refusal;

pub mod block_storage;
pub mod compute;
pub mod dns;
pub mod identity;
pub mod image;
pub mod load_balancer;
pub mod network;
pub mod object_store;
pub mod placement;

pub use config::{
    Auth, CloudConfig, ConfigError, Domain, Interface, Project, RetryPolicy, Scope, Tls, User,
};
pub use error::{CloudError, Refusal, Request, Result};
pub use quota::QuotaUsage;
pub use service::Service;
pub use session::{CallObserver, Identity, ProjectSessions, Session, on_behalf_of, request_id};
