#![doc = include_str!("../README.md")]

pub mod baremetald;
mod client;
pub mod clusterd;
mod credentials;
mod error;
mod http_client;
mod pages;
mod path;
mod refusal;
mod service;
pub mod shared;
mod with_json;

pub use client::Client;
pub use credentials::Credentials;
pub use error::ClientError;
pub use http_client::{CertificateError, http_client};
pub use pages::{Listed, Pages};
pub use path::element_path;
pub use refusal::Refusal;
pub use service::Service;
pub use with_json::WithJson;
