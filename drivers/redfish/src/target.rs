//! What is needed to reach one BMC.

use std::time::Duration;

use secrecy::SecretString;
use url::Url;

/// Everything needed to reach one BMC.
#[derive(Clone, Debug)]
pub struct Target {
    /// Scheme (`https` or `http`), host and port; the path is ignored.
    pub address: Url,
    /// The system's path, `/redfish/v1/Systems/1`; `None` takes the only one there is.
    pub system: Option<String>,
    /// The account's name.
    pub username: String,
    /// The account's password.
    pub password: SecretString,
    /// How to log in.
    pub auth: Auth,
    /// Which certificates to accept.
    pub trust: Trust,
    /// How long one request may take, from connecting to the last byte of the answer.
    pub timeout: Duration,
}

/// How to log in (DSP0266 §13.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Auth {
    /// A session; HTTP Basic where the service has none, or none left.
    #[default]
    Auto,
    /// HTTP Basic with every request.
    Basic,
    /// A session, or not at all.
    Session,
}

/// Which certificates to accept from a BMC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trust {
    /// Those signed for its address by the system's authorities or the connector's extra ones.
    Authorities,
    /// The one whose DER has this SHA-256, whatever it says of names and dates.
    Pinned([u8; 32]),
    /// Any. Whoever sits between us and the BMC reads the password.
    Unverified,
}
