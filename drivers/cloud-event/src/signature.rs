//! Signatures of Standard Webhooks 1.0. <https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md>

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use jiff::Timestamp;
use secrecy::{ExposeSecret, SecretSlice};
use sha2::Sha256;

/// The prefix of a secret in a file.
const PREFIX: &str = "whsec_";
/// The lengths of a secret that the specification permits, in bytes.
const LENGTHS: std::ops::RangeInclusive<usize> = 24..=64;

/// The secrets of one webhook. Each signs every event.
pub struct SigningSecrets(Vec<SecretSlice<u8>>);

/// Why a file has no secrets of a webhook. The message contains no part of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSecret {
    #[error("has no secret: write a line with whsec_ and 24 to 64 random bytes in base64")]
    Missing,
    #[error("line {line} is no secret: write whsec_ and 24 to 64 random bytes in base64")]
    Malformed { line: usize },
}

impl SigningSecrets {
    /// Reads the secrets in the text of a file, one in each line.
    pub fn parse(text: &str) -> Result<Self, InvalidSecret> {
        let lines = text.lines().map(str::trim).enumerate().filter(|(_, line)| !line.is_empty());
        let secrets = lines.map(|(at, line)| {
            let bytes = line.strip_prefix(PREFIX).and_then(|text| STANDARD.decode(text).ok());
            let bytes = bytes.filter(|bytes| LENGTHS.contains(&bytes.len()));
            bytes.map(SecretSlice::<u8>::from).ok_or(InvalidSecret::Malformed { line: at + 1 })
        });
        let secrets: Vec<_> = secrets.collect::<Result<_, _>>()?;
        if secrets.is_empty() { Err(InvalidSecret::Missing) } else { Ok(SigningSecrets(secrets)) }
    }

    /// The value of the header `webhook-signature` for an attempt at `now`.
    pub fn sign(&self, id: &str, now: Timestamp, body: &str) -> String {
        let signed = format!("{id}.{}.{body}", now.as_second());
        let signatures = self.0.iter().map(|secret| {
            let mut mac = Hmac::<Sha256>::new_from_slice(secret.expose_secret())
                .expect("HMAC takes a key of any length");
            mac.update(signed.as_bytes());
            format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
        });
        signatures.collect::<Vec<_>>().join(" ")
    }
}

impl fmt::Debug for SigningSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningSecrets({})", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The secret and the message of the reference implementations' tests.
    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

    #[test]
    fn the_signature_is_that_of_the_reference_implementations() {
        let secrets = SigningSecrets::parse(SECRET).unwrap();
        let at = Timestamp::from_second(1_614_265_330).unwrap();
        let signed = secrets.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", at, "{\"test\": 2432232314}");
        assert_eq!(signed, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn each_secret_of_the_file_signs() {
        let two = format!("\n{SECRET}\r\nwhsec_{}\n", STANDARD.encode([7_u8; 24]));
        let signed = SigningSecrets::parse(&two).unwrap().sign("i", Timestamp::UNIX_EPOCH, "{}");
        let first = SigningSecrets::parse(SECRET).unwrap().sign("i", Timestamp::UNIX_EPOCH, "{}");
        assert_eq!(signed.split(' ').count(), 2);
        assert!(signed.starts_with(&format!("{first} v1,")));
    }

    #[test]
    fn another_text_is_refused_without_being_shown() {
        assert_eq!(SigningSecrets::parse(" \n").unwrap_err(), InvalidSecret::Missing);
        let short = format!("{SECRET}\nwhsec_{}", STANDARD.encode([7_u8; 23]));
        for text in ["whsec_?", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", &short] {
            let error = SigningSecrets::parse(text).unwrap_err();
            assert!(matches!(error, InvalidSecret::Malformed { .. }), "{text}");
            assert!(!error.to_string().contains("MfKQ"));
        }
        assert_eq!(format!("{:?}", SigningSecrets::parse(SECRET).unwrap()), "SigningSecrets(1)");
    }
}
