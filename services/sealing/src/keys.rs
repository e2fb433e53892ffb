//! Keys, and what they seal.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};
use zeroize::Zeroizing;

use crate::Opened;

/// What is sealed begins with this, then the key's id and a colon.
const PREFIX: &str = "sealed:v1:";
/// And once began with this.
const OLD_PREFIX: &str = "v1:";

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
pub enum Purpose {
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
    pub fn generate() -> Result<Zeroizing<String>, SealError> {
        SealingKeys::generate_as("1")
    }

    /// The line of a new key with this id.
    pub(crate) fn generate_as(id: &str) -> Result<Zeroizing<String>, SealError> {
        let mut key = Zeroizing::new([0; 32]);
        SystemRandom::new().fill(key.as_mut()).map_err(|_| SealError::NoRandom)?;
        let key = Zeroizing::new(STANDARD.encode(key.as_ref()));
        Ok(Zeroizing::new(format!("{id}:{}\n", *key)))
    }

    /// The ids of the keys, that of the one that seals first.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        self.keys.iter().map(|key| key.id.as_str())
    }

    /// The id of the key that seals.
    pub fn current(&self) -> &str {
        self.ids().next().unwrap_or_default()
    }

    /// Whether there is a key with this id.
    pub fn holds(&self, id: &str) -> bool {
        self.ids().any(|known| known == id)
    }

    /// An id that no key has had: they are numbers that count up.
    pub(crate) fn next_id(&self) -> String {
        let last = self.ids().filter_map(|id| id.parse::<u64>().ok()).max().unwrap_or(0);
        last.saturating_add(1).to_string()
    }

    /// Whether this was sealed by another key than the one that seals now.
    pub fn needs_reseal(&self, sealed: &str) -> bool {
        id_of(sealed) != Some(self.current()) || !is_sealed(sealed)
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
                let key = SealingKey::new(id, &Zeroizing::new(STANDARD.decode(key).ok()?))?;
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
    pub fn seal(&self, place: &str, secret: &[u8]) -> Result<String, SealError> {
        let SealingKey { id, seals, .. } = self.keys.first().ok_or(SealError::NoKeys)?;
        let mut nonce = [0; NONCE_LEN];
        self.random.fill(&mut nonce).map_err(|_| SealError::NoRandom)?;
        let mut sealed = secret.to_vec();
        let aad = Aad::from(place.as_bytes());
        seals
            .seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), aad, &mut sealed)
            .map_err(|_| SealError::Broken)?;
        Ok(format!("{PREFIX}{id}:{}", STANDARD.encode([&nonce[..], &sealed].concat())))
    }

    /// Opens what was sealed for `place`.
    pub fn open(&self, place: &str, sealed: &str) -> Result<Opened, SealError> {
        let (id, text) = parts(sealed).ok_or(SealError::Broken)?;
        let key = self
            .keys
            .iter()
            .find(|key| key.id == id)
            .ok_or_else(|| SealError::UnknownKey { id: id.to_owned() })?;
        let bytes = STANDARD.decode(text).map_err(|_| SealError::Broken)?;
        let (nonce, sealed) = bytes.split_at_checked(NONCE_LEN).ok_or(SealError::Broken)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| SealError::Broken)?;
        let mut opened = Zeroizing::new(sealed.to_vec());
        let aad = Aad::from(place.as_bytes());
        let length =
            key.seals.open_in_place(nonce, aad, &mut opened).map_err(|_| SealError::Broken)?.len();
        opened.truncate(length);
        Ok(Opened::new(opened))
    }
}

impl SealingKeys {
    /// What only a holder of the first key can make for this purpose of this text.
    pub fn derive(&self, purpose: Purpose, of: &str) -> Result<Derived, SealError> {
        let key = self.keys.first().ok_or(SealError::NoKeys)?;
        let token = hex::encode(hmac::sign(&key.derives, &message(purpose, of)));
        Ok(Derived { key: key.id.clone(), token: Zeroizing::new(token) })
    }

    /// Whether one of the keys made `shown` for this purpose of this text. Every wrong answer takes the same time.
    pub fn verify(&self, purpose: Purpose, of: &str, shown: &str) -> bool {
        let Ok(shown) = hex::decode(shown) else { return false };
        let message = message(purpose, of);
        self.keys.iter().any(|key| hmac::verify(&key.derives, &message, &shown).is_ok())
    }
}

fn message(purpose: Purpose, of: &str) -> Vec<u8> {
    format!("{}\n{of}", purpose.as_str()).into_bytes()
}

/// What was derived. It prints no token.
pub struct Derived {
    /// The id of the key that made it: while somebody is to show it, that key is needed.
    pub key: String,
    /// 64 hexadecimal digits.
    pub token: Zeroizing<String>,
}

impl fmt::Debug for Derived {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Derived(by {}, …)", self.key)
    }
}

/// Whether this is something sealed, by whichever key.
pub fn is_sealed(text: &str) -> bool {
    text.starts_with(PREFIX)
}

/// The id of the key that something was sealed by; `None`, where it is nothing sealed.
pub fn id_of(sealed: &str) -> Option<&str> {
    parts(sealed).map(|(id, _)| id)
}

/// The id of the key, and the rest.
fn parts(sealed: &str) -> Option<(&str, &str)> {
    let rest = sealed.strip_prefix(PREFIX).or_else(|| sealed.strip_prefix(OLD_PREFIX))?;
    rest.split_once(':')
}

/// A new secret of 32 bytes, in letters that go anywhere.
pub fn random() -> Result<Zeroizing<String>, SealError> {
    let mut bytes = Zeroizing::new([0; 32]);
    SystemRandom::new().fill(bytes.as_mut()).map_err(|_| SealError::NoRandom)?;
    Ok(Zeroizing::new(URL_SAFE_NO_PAD.encode(bytes.as_ref())))
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

    /// The same key with another id.
    fn renamed(line: &str) -> String {
        format!("2:{}", line.strip_prefix("1:").unwrap())
    }

    #[test]
    fn what_is_sealed_is_opened_for_the_same_place_only() {
        let keys = keys();
        let sealed = keys.seal("c1/pki", b"secret").unwrap();
        assert!(!sealed.contains("secret"));
        assert_eq!(&*keys.open("c1/pki", &sealed).unwrap(), b"secret");
        assert_eq!(
            &*keys.open("c1/pki", sealed.strip_prefix("sealed:").unwrap()).unwrap(),
            b"secret"
        );
        assert_eq!(format!("{:?}", keys.open("c1/pki", &sealed).unwrap()), "Opened(…)");
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
        let both = format!("# newer first\n{}{}", renamed(&new), *old);
        let both = SealingKeys::parse(&both).unwrap();
        assert_eq!(&*both.open("p", &sealed).unwrap(), b"s");
        assert!(both.needs_reseal(&sealed) && both.needs_reseal("v1:2:x"));
        let resealed = both.seal("p", b"s").unwrap();
        assert!(resealed.starts_with("sealed:v1:2:") && !both.needs_reseal(&resealed));
        assert_eq!(
            (both.ids().collect::<Vec<_>>(), both.next_id()),
            (vec!["2", "1"], "3".to_owned())
        );
        let without = SealingKeys::parse(&renamed(&new)).unwrap();
        assert!(matches!(without.open("p", &sealed), Err(SealError::UnknownKey { .. })));
    }

    #[test]
    fn what_is_derived_is_good_for_one_purpose_and_text() {
        let (old, new) = (SealingKeys::generate().unwrap(), SealingKeys::generate().unwrap());
        let key = SealingKeys::parse(&old).unwrap();
        let derived = key.derive(Purpose::Claim, "c1").unwrap();
        assert_eq!(format!("{derived:?}"), "Derived(by 1, …)");
        let token = derived.token;
        assert_eq!(token, key.derive(Purpose::Claim, "c1").unwrap().token);
        assert!(key.verify(Purpose::Claim, "c1", &token));
        assert!(!key.verify(Purpose::Report, "c1", &token));
        assert!(!key.verify(Purpose::Claim, "c2", &token));
        assert!(!key.verify(Purpose::Claim, "c1", ""));
        assert!(!keys().verify(Purpose::Claim, "c1", &token));
        let both = format!("{}{}", renamed(&new), *old);
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
