//! The configuration of a cloud and of our credentials, from clouds.yaml or environment variables.

mod clouds_yaml;
mod credentials;
mod environment;
mod settings;

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use url::Url;

use crate::service::Service;

pub use credentials::{Auth, Domain, Project, Scope, User};

/// A cloud, and our credentials there.
///
/// Made by [`CloudConfig::from_clouds_yaml`], [`CloudConfig::from_environment`] or [`CloudConfig::read`]. None of these reads anything
/// except its argument.
#[derive(Clone, Debug)]
pub struct CloudConfig {
    /// URL of Keystone, with or without `/v3`.
    pub auth_url: Url,
    pub auth: Auth,
    /// The region of the endpoints; `None` takes the first endpoint in the catalogue.
    pub region: Option<String>,
    pub interface: Interface,
    pub tls: Tls,
    /// Endpoints that replace those of the catalogue.
    pub endpoints: BTreeMap<Service, Url>,
    pub patience: RetryPolicy,
    /// The most calls to one service that run at once; further calls wait. 256 by default.
    pub calls_at_once: NonZeroUsize,
}

/// The kind of a service's endpoints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Interface {
    /// Endpoints for everyone.
    #[default]
    Public,
    /// Endpoints for services of the cloud itself.
    Internal,
    /// Endpoints for administrators.
    Admin,
}

/// The certificates that are accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tls {
    /// Certificates signed by a CA of the system or of the PEM file.
    Verified {
        /// PEM file of further CAs.
        authorities: Option<PathBuf>,
    },
    /// Any certificate. Only used if the configuration says so.
    Unverified,
}

/// Timeouts and retries of calls to a cloud.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Limit for one request including its answer. Uploads are exempt.
    pub attempt_timeout: Duration,
    /// Limit for a call with all its attempts and the pauses between them.
    pub call_timeout: Duration,
    /// The most attempts of a call.
    pub attempts: u32,
    /// The pause after the first attempt; doubled after each further one.
    pub pause: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        RetryPolicy {
            attempt_timeout: Duration::from_secs(60),
            call_timeout: Duration::from_secs(120),
            attempts: 4,
            pause: Duration::from_millis(500),
        }
    }
}

/// The reasons why a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("cannot read {path}")]
    Unreadable { path: PathBuf, source: std::io::Error },
    /// The text is not YAML, or does not have the form of a clouds.yaml. The message quotes nothing, because the text holds passwords.
    #[error("clouds.yaml cannot be read at line {line}, column {column}")]
    Malformed {
        /// Counted from one; zero if unknown.
        line: u64,
        /// Counted from one; zero if unknown.
        column: u64,
    },
    #[error("clouds.yaml has no cloud {name:?}: it has {known}")]
    NoSuchCloud {
        name: String,
        /// The names of all clouds in the file.
        known: String,
    },
    #[error("clouds.yaml has several clouds: name one of {known}")]
    Ambiguous {
        /// The names of all clouds in the file.
        known: String,
    },
    #[error("{setting} is missing: {why}")]
    Missing {
        /// The setting's name in clouds.yaml.
        setting: &'static str,
        /// The purpose of the setting.
        why: &'static str,
    },
    #[error("{setting} is {value:?}, {expected}")]
    Invalid {
        /// The setting's name in clouds.yaml.
        setting: String,
        /// The given value; never a secret.
        value: String,
        /// A description of valid values.
        expected: &'static str,
    },
    #[error("the certificate authorities in {path} cannot be used: {reason}")]
    Authorities { path: PathBuf, reason: String },
    #[error("cannot build the HTTP client")]
    Client(#[from] reqwest::Error),
}

impl Interface {
    /// The name of the interface in the catalogue.
    pub const fn as_str(self) -> &'static str {
        match self {
            Interface::Public => "public",
            Interface::Internal => "internal",
            Interface::Admin => "admin",
        }
    }
}

impl fmt::Display for Interface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
