//! The address of a BMC, and the account to use.

use std::net::SocketAddr;
use std::time::Duration;

use secrecy::{ExposeSecret, SecretString};

/// The address of a BMC, and the account to use.
#[derive(Clone, Debug)]
pub struct Target {
    /// The port is usually 623.
    pub address: SocketAddr,
    /// The account's name, of at most 16 bytes.
    pub username: String,
    /// The account's password, of at most 20 bytes, the limit of IPMI.
    pub password: SecretString,
    /// The only cipher suite to use. `None` uses the best suite of the BMC: 17, otherwise 3, never a weaker one.
    pub cipher_suite: Option<CipherSuite>,
    /// The privilege level that the session requests.
    pub privilege: Privilege,
    /// The limit for one command, including the opening of a session if needed.
    pub timeout: Duration,
}

/// The algorithms of a session (IPMI 2.0 table 22-20).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CipherSuite {
    /// RAKP-HMAC-SHA1, HMAC-SHA1-96, AES-CBC-128.
    Three,
    /// RAKP-HMAC-SHA256, HMAC-SHA256-128, AES-CBC-128.
    Seventeen,
}

/// The privilege level of a session (IPMI 2.0 §6.8).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Privilege {
    /// Can only read.
    User,
    /// Can also switch power and choose the boot device.
    #[default]
    Operator,
    /// Can also configure the BMC.
    Administrator,
}

impl Privilege {
    /// The level's number (IPMI 2.0 table 22-18).
    pub(crate) const fn level(self) -> u8 {
        match self {
            Privilege::User => 2,
            Privilege::Operator => 3,
            Privilege::Administrator => 4,
        }
    }
}

impl Target {
    /// The longest user name (IPMI 2.0 §22.28).
    pub const LONGEST_USERNAME: usize = 16;
    /// The longest password (IPMI 2.0 §22.30).
    pub const LONGEST_PASSWORD: usize = 20;

    /// Whether `other` can use the same session.
    pub(crate) fn is_same_account(&self, other: &Target) -> bool {
        self.address == other.address
            && self.username == other.username
            && self.password.expose_secret() == other.password.expose_secret()
            && self.cipher_suite == other.cipher_suite
            && self.privilege == other.privilege
            && self.timeout == other.timeout
    }
}
