//! Sealing secrets, so that a copy of the database tells none.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};

/// The keys that seal: the first seals, all open. Prints none of them.
pub struct SealingKeys {
    keys: Vec<SealingKey>,
    random: SystemRandom,
}

struct SealingKey {
    id: String,
    seals: LessSafeKey,
    /// Another key, made of the same one: what seals never signs.
    derives: hmac::Key,
}

impl SealingKey {
    fn new(id: &str, bytes: &[u8]) -> Option<Self> {
        let seals = LessSafeKey::new(UnboundKey::new(&AES_256_GCM, bytes).ok()?);
        let derives = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, bytes), b"bedplate: derive");
        let derives = hmac::Key::new(hmac::HMAC_SHA256, derives.as_ref());
        Some(SealingKey { id: id.to_owned(), seals, derives })
    }
}

/// What is derived from the keys is good for one thing.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Purpose {
    /// Fetching a machine's config, once.
    Claim,
    /// Reports of the machine that fetched it.
    Report,
}

impl Purpose {
    fn as_str(self) -> &'static str {
        match self {
            Purpose::Claim => "claim",
            Purpose::Report => "report",
        }
    }
}

/// Why something cannot be sealed or opened.
#[derive(Debug, thiserror::Error)]
pub enum SealError {
    /// A line of the key file is none.
    #[error("line {line} of the key file is not ID:BASE64 with 32 bytes")]
    BadLine {
        /// Which, from 1.
        line: usize,
    },
    /// There is no key.
    #[error("the key file holds no key")]
    NoKeys,
    /// The system gives no random numbers.
    #[error("the system gives no random numbers")]
    NoRandom,
    /// It was sealed by a key that is not in the file.
    #[error("it was sealed by the key {id}, which the key file does not hold: put it back")]
    UnknownKey {
        /// Which.
        id: String,
    },
    /// It is not what was sealed, or not for this place.
    #[error("what is stored was not sealed by these keys for this place")]
    Broken,
}

impl SealingKeys {
    /// The text of a key file with one new key.
    pub fn generate() -> Result<String, SealError> {
        let mut key = [0; 32];
        SystemRandom::new().fill(&mut key).map_err(|_| SealError::NoRandom)?;
        Ok(format!("1:{}\n", STANDARD.encode(key)))
    }

    /// Reads the text of a key file. Empty lines and lines that begin with `#` are skipped.
    pub fn parse(text: &str) -> Result<Self, SealError> {
        let mut keys = Vec::new();
        for (at, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let read = || {
                let (id, key) = line.split_once(':')?;
                let legal = !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
                let key = SealingKey::new(id, &STANDARD.decode(key).ok()?)?;
                legal.then_some(key)
            };
            keys.push(read().ok_or(SealError::BadLine { line: at + 1 })?);
        }
        if keys.is_empty() {
            return Err(SealError::NoKeys);
        }
        Ok(SealingKeys { keys, random: SystemRandom::new() })
    }

    /// Seals `secret`, to be opened for the same `place` only.
    pub(crate) fn seal(&self, place: &str, secret: &[u8]) -> Result<String, SealError> {
        let SealingKey { id, seals, .. } = self.keys.first().ok_or(SealError::NoKeys)?;
        let mut nonce = [0; NONCE_LEN];
        self.random.fill(&mut nonce).map_err(|_| SealError::NoRandom)?;
        let mut sealed = secret.to_vec();
        let aad = Aad::from(place.as_bytes());
        seals
            .seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), aad, &mut sealed)
            .map_err(|_| SealError::Broken)?;
        Ok(format!("v1:{id}:{}", STANDARD.encode([&nonce[..], &sealed].concat())))
    }

    /// Opens what was sealed for `place`.
    pub(crate) fn open(&self, place: &str, sealed: &str) -> Result<Vec<u8>, SealError> {
        let (id, text) = sealed
            .strip_prefix("v1:")
            .and_then(|rest| rest.split_once(':'))
            .ok_or(SealError::Broken)?;
        let key = self
            .keys
            .iter()
            .find(|key| key.id == id)
            .ok_or_else(|| SealError::UnknownKey { id: id.to_owned() })?;
        let bytes = STANDARD.decode(text).map_err(|_| SealError::Broken)?;
        let (nonce, sealed) = bytes.split_at_checked(NONCE_LEN).ok_or(SealError::Broken)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| SealError::Broken)?;
        let mut opened = sealed.to_vec();
        let aad = Aad::from(place.as_bytes());
        Ok(key
            .seals
            .open_in_place(nonce, aad, &mut opened)
            .map_err(|_| SealError::Broken)?
            .to_vec())
    }
}

impl SealingKeys {
    /// What only a holder of the first key can make for this purpose of this text: 64 hexadecimal digits.
    pub(crate) fn derive(&self, purpose: Purpose, of: &str) -> Result<String, SealError> {
        let key = self.keys.first().ok_or(SealError::NoKeys)?;
        Ok(hex::encode(hmac::sign(&key.derives, &message(purpose, of))))
    }

    /// Whether one of the keys made `shown` for this purpose of this text. Every wrong answer takes the same time.
    pub(crate) fn verify(&self, purpose: Purpose, of: &str, shown: &str) -> bool {
        let Ok(shown) = hex::decode(shown) else { return false };
        let message = message(purpose, of);
        self.keys.iter().any(|key| hmac::verify(&key.derives, &message, &shown).is_ok())
    }
}

fn message(purpose: Purpose, of: &str) -> Vec<u8> {
    format!("{}\n{of}", purpose.as_str()).into_bytes()
}

/// A new secret of 32 bytes, in letters that go anywhere.
pub(crate) fn random() -> Result<String, SealError> {
    let mut bytes = [0; 32];
    SystemRandom::new().fill(&mut bytes).map_err(|_| SealError::NoRandom)?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

impl fmt::Debug for SealingKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SealingKeys({})", self.keys.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys() -> SealingKeys {
        SealingKeys::parse(&SealingKeys::generate().unwrap()).unwrap()
    }

    #[test]
    fn what_is_sealed_is_opened_for_the_same_place_only() {
        let keys = keys();
        let sealed = keys.seal("c1/pki", b"secret").unwrap();
        assert!(!sealed.contains("secret"));
        assert_eq!(keys.open("c1/pki", &sealed).unwrap(), b"secret");
        assert!(matches!(keys.open("c2/pki", &sealed), Err(SealError::Broken)));
        let mut spoiled = sealed.into_bytes();
        let last = spoiled.len() - 6;
        spoiled[last] = if spoiled[last] == b'A' { b'B' } else { b'A' };
        let spoiled = String::from_utf8(spoiled).unwrap();
        assert!(matches!(keys.open("c1/pki", &spoiled), Err(SealError::Broken)));
    }

    #[test]
    fn the_first_key_seals_and_all_open() {
        let (old, new) = (SealingKeys::generate().unwrap(), SealingKeys::generate().unwrap());
        let sealed = SealingKeys::parse(&old).unwrap().seal("p", b"s").unwrap();
        let both = format!("# newer first\n{}{old}", new.replace("1:", "2:"));
        let both = SealingKeys::parse(&both).unwrap();
        assert_eq!(both.open("p", &sealed).unwrap(), b"s");
        assert!(both.seal("p", b"s").unwrap().starts_with("v1:2:"));
        let without = SealingKeys::parse(&new.replace("1:", "2:")).unwrap();
        assert!(matches!(without.open("p", &sealed), Err(SealError::UnknownKey { .. })));
    }

    #[test]
    fn what_is_derived_is_good_for_one_purpose_and_text() {
        let (old, new) = (SealingKeys::generate().unwrap(), SealingKeys::generate().unwrap());
        let key = SealingKeys::parse(&old).unwrap();
        let token = key.derive(Purpose::Claim, "c1").unwrap();
        assert_eq!(token, key.derive(Purpose::Claim, "c1").unwrap());
        assert!(key.verify(Purpose::Claim, "c1", &token));
        assert!(!key.verify(Purpose::Report, "c1", &token));
        assert!(!key.verify(Purpose::Claim, "c2", &token));
        assert!(!key.verify(Purpose::Claim, "c1", ""));
        assert!(!keys().verify(Purpose::Claim, "c1", &token));
        let both = format!("{}{old}", new.replace("1:", "2:"));
        assert!(SealingKeys::parse(&both).unwrap().verify(Purpose::Claim, "c1", &token));
    }

    #[test]
    fn a_key_file_that_is_none_is_refused_by_line() {
        assert!(matches!(SealingKeys::parse("# none\n"), Err(SealError::NoKeys)));
        for bad in ["1", "1:short", ":AAAA", "a b:AAAA"] {
            let read = SealingKeys::parse(&format!("\n{bad}"));
            assert!(matches!(read, Err(SealError::BadLine { line: 2 })), "{bad}");
        }
        assert_eq!(format!("{:?}", keys()), "SealingKeys(1)");
    }
}
