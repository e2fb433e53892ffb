//! Where a BMC is, and who we are to it.

use std::net::SocketAddr;
use std::time::Duration;

use secrecy::{ExposeSecret, SecretString};

/// A BMC, and the account to use there.
#[derive(Clone, Debug)]
pub struct Target {
    /// Its address; the port is 623 unless someone moved it.
    pub address: SocketAddr,
    /// The account's name, of at most 16 bytes.
    pub username: String,
    /// The account's password, of at most 20 bytes: IPMI knows no longer ones.
    pub password: SecretString,
    /// The only cipher suite to use; without one the best the BMC has: 17, else 3, never weaker.
    pub cipher_suite: Option<CipherSuite>,
    /// What the session may do.
    pub privilege: Privilege,
    /// How long one command may take, with opening the session if that is needed.
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
    /// May read.
    User,
    /// May also switch power and choose the boot device.
    #[default]
    Operator,
    /// May also configure the BMC.
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

    /// Whether `other` leads to the same session.
    pub(crate) fn is_same_account(&self, other: &Target) -> bool {
        self.address == other.address
            && self.username == other.username
            && self.password.expose_secret() == other.password.expose_secret()
            && self.cipher_suite == other.cipher_suite
            && self.privilege == other.privilege
            && self.timeout == other.timeout
    }
}
