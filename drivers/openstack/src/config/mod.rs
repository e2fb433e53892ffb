//! Which cloud, as whom: what clouds.yaml or the environment say, as one value.

mod authority;
mod clouds_yaml;
mod environment;
mod settings;

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use url::Url;

use crate::service::Service;

pub use authority::{Auth, Domain, Project, Scope, User};

/// One cloud, and who we are there.
///
/// Made by [`CloudConfig::from_clouds_yaml`], [`CloudConfig::from_environment`] or [`CloudConfig::read`]; none of
/// them looks anywhere but where it is told to.
#[derive(Clone, Debug)]
pub struct CloudConfig {
    /// Keystone, with or without `/v3`.
    pub auth_url: Url,
    /// Who we are, and in which project.
    pub auth: Auth,
    /// Which region's endpoints are used; the first of the catalogue if `None`.
    pub region: Option<String>,
    /// Which of the endpoints of a service is used.
    pub interface: Interface,
    /// Which certificates are accepted.
    pub tls: Tls,
    /// Endpoints that are used in place of the catalogue's.
    pub endpoints: BTreeMap<Service, Url>,
    /// How long we wait for this cloud.
    pub patience: Patience,
    /// How many calls of one service are under way at once at most; others wait for their turn. 256 unless told otherwise.
    pub calls_at_once: NonZeroUsize,
}

/// Which of the endpoints of a service is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Interface {
    /// What everyone can reach.
    #[default]
    Public,
    /// What is meant for services of the cloud itself.
    Internal,
    /// What is meant for administrators.
    Admin,
}

/// Which certificates are accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tls {
    /// What the system's authorities signed, or those in this PEM file.
    Verified {
        /// Further authorities, PEM.
        authorities: Option<PathBuf>,
    },
    /// Any. Only where the configuration says so.
    Unverified,
}

/// How long we wait for a cloud, and how often we ask again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// The longest one request may take, its answer included. Uploads are exempt.
    pub attempt_timeout: Duration,
    /// The longest a call may take with all its attempts and the pauses between them.
    pub call_timeout: Duration,
    /// How many attempts a call has at most.
    pub attempts: u32,
    /// The pause after the first attempt; it doubles with each.
    pub pause: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Patience {
            attempt_timeout: Duration::from_secs(60),
            call_timeout: Duration::from_secs(120),
            attempts: 4,
            pause: Duration::from_millis(500),
        }
    }
}

/// Why a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read {path}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The text is not YAML, or not of the form of a clouds.yaml. The parser's words are given without
    /// any line of the text, for it holds passwords.
    #[error("clouds.yaml cannot be read at line {line}, column {column}")]
    Malformed {
        /// Counted from one; zero if unknown.
        line: u64,
        /// Counted from one; zero if unknown.
        column: u64,
    },
    /// No such cloud.
    #[error("clouds.yaml has no cloud {name:?}: it has {known}")]
    NoSuchCloud {
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
    /// No cloud was named, and there is not exactly one.
    #[error("clouds.yaml has several clouds: name one of {known}")]
    Ambiguous {
        /// What there is.
        known: String,
    },
    /// Something needed is not there.
    #[error("{setting} is missing: {why}")]
    Missing {
        /// Its name, as in clouds.yaml.
        setting: &'static str,
        /// What it is needed for.
        why: &'static str,
    },
    /// Something has a value that cannot be used.
    #[error("{setting} is {value:?}, {expected}")]
    Invalid {
        /// Its name, as in clouds.yaml.
        setting: String,
        /// What was given; never a secret.
        value: String,
        /// What would do.
        expected: &'static str,
    },
    /// The TLS library refuses the authorities.
    #[error("the certificate authorities in {path} cannot be used: {reason}")]
    Authorities {
        /// The PEM file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// No HTTP client could be made.
    #[error("cannot make an HTTP client")]
    Client(#[from] reqwest::Error),
}

impl Interface {
    /// As the catalogue says it.
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
