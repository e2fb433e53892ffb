//! The address of a cluster's API, and the identity to use there.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use secrecy::SecretString;

/// The address, certificates and timeouts for a cluster's API.
#[derive(Clone, Debug)]
pub struct Access {
    /// The host name and port of the API; its certificate must be valid for this host.
    pub endpoint: Endpoint,
    /// The address to connect to, if not the endpoint's own.
    pub connect_to: Option<SocketAddr>,
    /// PEM of the cluster's certificate authority, the only one that is trusted.
    pub authority: String,
    /// PEM of the client certificate, followed by its intermediate certificates.
    pub certificate: String,
    /// PEM of the private key.
    pub key: SecretString,
    pub timeouts: Timeouts,
}

/// A host and a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// A name or an address; IPv6 without brackets.
    pub host: String,
    /// Usually 6443.
    pub port: u16,
}

/// The timeouts of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// Includes the TLS handshake.
    pub connect: Duration,
    /// From connecting to the end of the answer.
    pub call: Duration,
}

impl Default for Timeouts {
    /// Five seconds for connecting and ten for a call. An API server that needs longer counts as down, and the caller's next turn retries.
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

/// The reasons why an [`Access`] cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    #[error("{host:?} is neither a host's name nor its address")]
    Host {
        /// The text, cut to a length fit for a message.
        host: String,
    },
    #[error("{what} cannot be used: {reason}")]
    Pem {
        /// The faulty part: authority, certificate or key.
        what: &'static str,
        /// The reason, without a quote from the text.
        reason: String,
    },
    #[error("cannot build the HTTP client")]
    Client(#[from] reqwest::Error),
}
