//! Where a cluster's API is, and who we are to it.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use secrecy::SecretString;

/// What it takes to speak to a cluster.
#[derive(Clone, Debug)]
pub struct Access {
    /// What the API is called: its certificate has to be for this host.
    pub endpoint: Endpoint,
    /// Where it is reached, if not by what it is called.
    pub connect_to: Option<SocketAddr>,
    /// The cluster's authority as PEM; nobody else vouches for the API.
    pub authority: String,
    /// Our certificate as PEM, what vouches for it after it.
    pub certificate: String,
    /// Its key as PEM.
    pub key: SecretString,
    /// How long to wait.
    pub timeouts: Timeouts,
}

/// A host and a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// A name or an address; IPv6 without brackets.
    pub host: String,
    /// The port, mostly 6443.
    pub port: u16,
}

/// How long an answer is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// Until a connection is made and secured.
    pub connect: Duration,
    /// Until the answer is there, the connection included.
    pub call: Duration,
}

impl Default for Timeouts {
    /// Five seconds and ten: an API server that needs more is as good as absent, and the next turn asks again.
    fn default() -> Self {
        Timeouts { connect: Duration::from_secs(5), call: Duration::from_secs(10) }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Endpoint { host, port } = self;
        match host.parse::<IpAddr>() {
            Ok(IpAddr::V6(address)) => write!(f, "[{address}]:{port}"),
            Ok(IpAddr::V4(_)) | Err(_) => write!(f, "{host}:{port}"),
        }
    }
}

/// Why nobody can be spoken to with an [`Access`].
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    /// Neither a name nor an address.
    #[error("{host:?} is neither a host's name nor its address")]
    Host {
        /// The text, cut to a length fit for a message.
        host: String,
    },
    /// PEM that cannot be used.
    #[error("{what} cannot be used: {reason}")]
    Pem {
        /// Which one.
        what: &'static str,
        /// Why, without a word of it.
        reason: String,
    },
    /// The HTTP client cannot be made.
    #[error("no HTTP client can be made")]
    Client(#[from] reqwest::Error),
}
