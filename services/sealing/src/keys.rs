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
    /// What [`fingerprint`] makes of it, whatever its id is.
    fingerprint: String,
    seals: LessSafeKey,
    /// Another key, made of the same one: what seals never signs.
    derives: hmac::Key,
}

impl SealingKey {
    fn new(id: &str, bytes: &[u8]) -> Option<Self> {
        let seals = LessSafeKey::new(UnboundKey::new(&AES_256_GCM, bytes).ok()?);
        let derives = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, bytes), b"bedplate: derive");
        let derives = hmac::Key::new(hmac::HMAC_SHA256, derives.as_ref());
        Some(SealingKey { id: id.to_owned(), fingerprint: fingerprint(bytes), seals, derives })
    }
}

/// The id of a key: a letter, and 16 hexadecimal digits that are made of its bytes and tell nothing of them. Two keys with one id do not
/// happen.
fn fingerprint(bytes: &[u8]) -> String {
    let made = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, bytes), b"bedplate: key id");
    format!("k{}", hex::encode(&made.as_ref()[..8]))
}

/// Whether an id is a fingerprint. Earlier versions counted keys: those ids are numbers, and stay as they are.
fn is_fingerprint(id: &str) -> bool {
    id.len() == 17 && id.starts_with('k') && id[1..].bytes().all(|byte| byte.is_ascii_hexdigit())
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
    /// The id on a line is the fingerprint of another key.
    #[error("line {line} of the key file: the key is not the one that its id names")]
    WrongId {
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
    /// The text of a key file with one new key: its line. The id is the key's fingerprint.
    pub fn generate() -> Result<Zeroizing<String>, SealError> {
        let mut key = Zeroizing::new([0; 32]);
        SystemRandom::new().fill(key.as_mut()).map_err(|_| SealError::NoRandom)?;
        let id = fingerprint(key.as_ref());
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

    /// Whether both hold a key with one id, which is not the same key.
    pub(crate) fn contradicts(&self, other: &SealingKeys) -> bool {
        let differs = |one: &SealingKey| {
            let same_id = other.keys.iter().find(|key| key.id == one.id);
            same_id.is_some_and(|key| key.fingerprint != one.fingerprint)
        };
        self.keys.iter().any(differs)
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
            let key = read().ok_or(SealError::BadLine { line: at + 1 })?;
            if is_fingerprint(&key.id) && key.id != key.fingerprint {
                return Err(SealError::WrongId { line: at + 1 });
            }
            keys.push(key);
        }
        if keys.is_empty() {
            return Err(SealError::NoKeys);
        }
        Ok(SealingKeys { keys, random: SystemRandom::new() })
    }

    /// Seals `secret`, to be opened for the same `place` only.
    pub fn seal(&self, place: &str, secret: &[u8]) -> Result<String, SealError> {
        self.seal_by(self.keys.first().ok_or(SealError::NoKeys)?, place, secret)
    }

    fn seal_by(&self, key: &SealingKey, place: &str, secret: &[u8]) -> Result<String, SealError> {
        let SealingKey { id, seals, .. } = key;
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
    /// What a database keeps beside the id of a key, to tell that key from another with the same id; none, where there is no such key.
    pub fn canary(&self, id: &str) -> Option<String> {
        let key = self.keys.iter().find(|key| key.id == id)?;
        self.seal_by(key, &canary_place(id), b"canary").ok()
    }

    /// Whether the key `id` made this canary.
    pub(crate) fn opens_canary(&self, id: &str, canary: &str) -> bool {
        id_of(canary) == Some(id) && self.open(&canary_place(id), canary).is_ok()
    }
}

fn canary_place(id: &str) -> String {
    format!("seals/{id}/canary")
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

    /// The same key with another id, as earlier versions gave them.
    fn renamed(line: &str, id: &str) -> String {
        format!("{id}:{}", line.split_once(':').unwrap().1)
    }

    fn id(line: &str) -> String {
        line.split_once(':').unwrap().0.to_owned()
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
        let old = renamed(&old, "1");
        let sealed = SealingKeys::parse(&old).unwrap().seal("p", b"s").unwrap();
        assert!(sealed.starts_with("sealed:v1:1:"));
        let both = SealingKeys::parse(&format!("# newer first\n{}{old}", *new)).unwrap();
        assert_eq!(&*both.open("p", &sealed).unwrap(), b"s");
        assert!(both.needs_reseal(&sealed) && both.needs_reseal(&format!("v1:{}:x", id(&new))));
        let resealed = both.seal("p", b"s").unwrap();
        assert!(resealed.starts_with(&format!("sealed:v1:{}:", id(&new))));
        assert!(!both.needs_reseal(&resealed));
        assert_eq!(both.ids().collect::<Vec<_>>(), [&id(&new), "1"]);
        let without = SealingKeys::parse(&new).unwrap();
        assert!(matches!(without.open("p", &sealed), Err(SealError::UnknownKey { .. })));
    }

    #[test]
    fn an_id_is_the_fingerprint_of_its_key_and_names_no_other() {
        let (one, other) = (SealingKeys::generate().unwrap(), SealingKeys::generate().unwrap());
        assert!(is_fingerprint(&id(&one)) && id(&one) != id(&other));
        assert_eq!(SealingKeys::parse(&one).unwrap().current(), id(&one));
        let exchanged = format!("{}{}", *other, renamed(&one, &id(&other)));
        let refused = SealingKeys::parse(&exchanged);
        assert!(matches!(refused, Err(SealError::WrongId { line: 2 })), "{refused:?}");
    }

    #[test]
    fn a_canary_tells_a_key_from_another_with_the_same_id() {
        let with_id = |id: &str| renamed(&SealingKeys::generate().unwrap(), id);
        let (one, other) = (with_id("1"), with_id("1"));
        let keys = SealingKeys::parse(&format!("{}{one}", with_id("2"))).unwrap();
        let canary = keys.canary("1").unwrap();
        assert!(keys.opens_canary("1", &canary) && !keys.opens_canary("2", &canary));
        assert!(!SealingKeys::parse(&other).unwrap().opens_canary("1", &canary));
        assert_eq!(keys.canary("3"), None);
        assert!(SealingKeys::parse(&other).unwrap().contradicts(&keys) && !keys.contradicts(&keys));
    }

    #[test]
    fn what_is_derived_is_good_for_one_purpose_and_text() {
        let (old, new) = (SealingKeys::generate().unwrap(), SealingKeys::generate().unwrap());
        let key = SealingKeys::parse(&old).unwrap();
        let derived = key.derive(Purpose::Claim, "c1").unwrap();
        assert_eq!(format!("{derived:?}"), format!("Derived(by {}, …)", id(&old)));
        let token = derived.token;
        assert_eq!(token, key.derive(Purpose::Claim, "c1").unwrap().token);
        assert!(key.verify(Purpose::Claim, "c1", &token));
        assert!(!key.verify(Purpose::Report, "c1", &token));
        assert!(!key.verify(Purpose::Claim, "c2", &token));
        assert!(!key.verify(Purpose::Claim, "c1", ""));
        assert!(!keys().verify(Purpose::Claim, "c1", &token));
        let both = format!("{}{}", *new, *old);
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
