//! Tokens and capabilities, derived from one key of the service: nothing secret is stored beside it.

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use subtle::ConstantTimeEq;

/// The key everything secret derives from. It never leaves the process.
#[derive(Clone)]
pub struct ServiceKey([u8; 32]);

impl fmt::Debug for ServiceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ServiceKey(…)")
    }
}

impl ServiceKey {
    /// The key made of these bytes.
    pub const fn new(bytes: [u8; 32]) -> Self {
        ServiceKey(bytes)
    }

    /// A key nobody has.
    pub fn random() -> Self {
        ServiceKey(rand::random())
    }

    /// The key's bytes, to be kept where only the service can read them.
    pub const fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// What only the holder of the key can make of `purpose` and `parts`: 64 hexadecimal digits.
    pub(crate) fn derive(&self, purpose: Purpose, parts: &[&str]) -> String {
        let mut mac =
            Hmac::<Sha256>::new_from_slice(&self.0).expect("HMAC takes a key of any length");
        mac.update(purpose.as_str().as_bytes());
        for part in parts {
            // A length before each part: "ab","c" is not "a","bc".
            mac.update(&(part.len() as u64).to_be_bytes());
            mac.update(part.as_bytes());
        }
        hex::encode(mac.finalize().into_bytes())
    }

    /// Whether `shown` is what `derive` makes; takes the same time for every wrong answer.
    pub(crate) fn verify(&self, purpose: Purpose, parts: &[&str], shown: &str) -> bool {
        self.derive(purpose, parts).as_bytes().ct_eq(shown.as_bytes()).into()
    }
}

/// What something derived from the key is good for, and nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// The agent's token of one boot.
    AgentToken,
    /// Fetching the boot script of one work by one port.
    BootScript,
    /// Fetching the medium of one boot.
    BootMedium,
    /// Handing in the inventory of one boot.
    Inventory,
    /// Fetching the boot script of a machine nobody enrolled.
    Discovery,
}

impl Purpose {
    const fn as_str(self) -> &'static str {
        match self {
            Purpose::AgentToken => "agent-token",
            Purpose::BootScript => "boot-script",
            Purpose::BootMedium => "boot-medium",
            Purpose::Inventory => "inventory",
            Purpose::Discovery => "discovery",
        }
    }
}

/// Sixteen random bytes, hexadecimal: what makes one boot differ from the next.
pub(crate) fn nonce() -> String {
    hex::encode(rand::random::<[u8; 16]>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_made_for_one_purpose_serves_another() {
        let key = ServiceKey::new([7; 32]);
        let token = key.derive(Purpose::AgentToken, &["node", "work", "nonce"]);
        assert!(key.verify(Purpose::AgentToken, &["node", "work", "nonce"], &token));
        assert!(!key.verify(Purpose::BootScript, &["node", "work", "nonce"], &token));
        assert!(!key.verify(Purpose::AgentToken, &["node", "workn", "once"], &token));
        assert!(!ServiceKey::new([8; 32]).verify(
            Purpose::AgentToken,
            &["node", "work", "nonce"],
            &token
        ));
    }

    #[test]
    fn the_key_is_not_printed() {
        assert_eq!(format!("{:?}", ServiceKey::new([7; 32])), "ServiceKey(…)");
    }
}
