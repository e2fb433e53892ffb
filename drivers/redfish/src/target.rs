//! The address and credentials of one BMC.

use std::time::Duration;

use secrecy::SecretString;
use url::Url;

/// The address and credentials of one BMC, and how to use them.
#[derive(Clone, Debug)]
pub struct Target {
    /// Scheme (`https` or `http`), host and port; the path is ignored.
    pub address: Url,
    /// The system's path, `/redfish/v1/Systems/1`; `None` if the BMC has only one system.
    pub system: Option<String>,
    pub username: String,
    pub password: SecretString,
    pub auth: Auth,
    pub trust: Trust,
    /// The limit for one request, from connecting to the last byte of the answer.
    pub timeout: Duration,
}

/// The login method (DSP0266 §13.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Auth {
    /// A session; HTTP Basic if the service has no sessions, or no free slot.
    #[default]
    Auto,
    /// HTTP Basic with every request.
    Basic,
    /// Only a session: the request fails if the BMC opens none.
    Session,
}

/// The certificates that are accepted from a BMC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trust {
    /// Certificates for the BMC's address that a CA of the system or an extra CA of the connector signed.
    Authorities,
    /// The certificate whose DER has this SHA-256, whatever its names and dates.
    Pinned([u8; 32]),
    /// Any certificate. An attacker on the network can read the password.
    Unverified,
}
