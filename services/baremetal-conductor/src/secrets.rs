//! Tokens and capabilities, all derived from one key of the service, so that no other secret has to be stored.

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use subtle::ConstantTimeEq;

/// The key from which all tokens and capabilities derive. The key never leaves the process.
#[derive(Clone)]
pub struct ServiceKey([u8; 32]);

impl fmt::Debug for ServiceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ServiceKey(…)")
    }
}

impl ServiceKey {
    /// Makes a key of these bytes.
    pub const fn new(bytes: [u8; 32]) -> Self {
        ServiceKey(bytes)
    }

    /// Makes a new random key.
    pub fn random() -> Self {
        ServiceKey(rand::random())
    }

    /// Returns the key's bytes, to store them in a file that only the service can read.
    pub const fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Derives a value from `purpose` and `parts` that only the holder of the key can compute: 64 hexadecimal digits.
    pub(crate) fn derive(&self, purpose: Purpose, parts: &[&str]) -> String {
        let mut mac =
            Hmac::<Sha256>::new_from_slice(&self.0).expect("HMAC takes a key of any length");
        mac.update(purpose.as_str().as_bytes());
        for part in parts {
            // Each part is preceded by its length, so that "ab","c" differs from "a","bc".
            mac.update(&(part.len() as u64).to_be_bytes());
            mac.update(part.as_bytes());
        }
        hex::encode(mac.finalize().into_bytes())
    }

    /// Returns whether `shown` equals the value that `derive` returns. The comparison takes constant time.
    pub(crate) fn verify(&self, purpose: Purpose, parts: &[&str], shown: &str) -> bool {
        self.derive(purpose, parts).as_bytes().ct_eq(shown.as_bytes()).into()
    }
}

/// The purpose of a derived value. A value derived for one purpose is not valid for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// The token of the agent of one boot.
    AgentToken,
    /// Fetching the boot script for one work and one port.
    BootScript,
    /// Fetching the boot script of a machine that boots the image of its user, from one port.
    OwnImageScript,
    /// Fetching the virtual CD of one boot.
    BootMedium,
    /// Fetching an image of Glance for one boot.
    GlanceImage,
    /// Fetching a blob of an OCI registry for one boot.
    OciBlob,
    /// Sending the inventory of one boot.
    Inventory,
    /// Fetching the boot script of a machine that nobody has enrolled.
    Discovery,
    /// Telling objects in a cloud that belong to this installation from those of others. This value is no secret.
    Installation,
}

impl Purpose {
    const fn as_str(self) -> &'static str {
        match self {
            Purpose::AgentToken => "agent-token",
            Purpose::BootScript => "boot-script",
            Purpose::OwnImageScript => "own-image-script",
            Purpose::BootMedium => "boot-medium",
            Purpose::GlanceImage => "glance-image",
            Purpose::OciBlob => "oci-blob",
            Purpose::Inventory => "inventory",
            Purpose::Discovery => "discovery",
            Purpose::Installation => "installation",
        }
    }
}

/// Returns sixteen random bytes in hexadecimal, which distinguish one boot from the next.
pub(crate) fn nonce() -> String {
    hex::encode(rand::random::<[u8; 16]>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_for_one_purpose_is_not_valid_for_another() {
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

    /// An agent shows its token to a conductor of another version than the one that made the token, so these values may never change.
    #[test]
    fn every_version_of_the_program_derives_the_same_values() {
        let key = ServiceKey::new([7; 32]);
        for (purpose, begins) in [
            (Purpose::AgentToken, "f327cefdfd60237a"),
            (Purpose::BootScript, "5d9a2d4a63f9a917"),
            (Purpose::OwnImageScript, "49dfaf5492352c0c"),
            (Purpose::BootMedium, "32927fbe745302af"),
            (Purpose::GlanceImage, "ce461cf0c9484a7d"),
            (Purpose::OciBlob, "ea7e901d10470ac7"),
            (Purpose::Inventory, "160322d5cc077305"),
            (Purpose::Discovery, "c93fc648d62a544e"),
            (Purpose::Installation, "918e2ff874bdd0f3"),
        ] {
            let derived = key.derive(purpose, &["node", "work", "nonce"]);
            assert_eq!(&derived[..16], begins, "{purpose:?}");
        }
    }

    #[test]
    fn the_key_is_not_printed() {
        assert_eq!(format!("{:?}", ServiceKey::new([7; 32])), "ServiceKey(…)");
    }
}
