//! Sealing keys: seal, open, derive tokens, and parse the text of a key file.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};
use zeroize::Zeroizing;

use crate::{DecryptedSecret, SealError};

/// Prefix of a sealed text; the id of the key and a colon follow.
const PREFIX: &str = "sealed:v1:";
/// Prefix that earlier versions wrote. Texts with this prefix are still opened, and are re-encrypted.
const OLD_PREFIX: &str = "v1:";

/// The keys of a key file: the first key seals, every key opens. `Debug` prints only how many keys there are.
pub struct SealingKeys {
    keys: Vec<SealingKey>,
    random: SystemRandom,
}

struct SealingKey {
    id: String,
    /// The [`fingerprint`] of the key, also if the id is a number from an earlier version.
    fingerprint: String,
    seals: LessSafeKey,
    /// Derived from the sealing key, so that the key which encrypts is never used to sign.
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

/// Computes the id of a key: `k` and 16 hexadecimal digits of an HMAC with the key. The id reveals nothing about the key, and two keys with
/// the same id are not expected to happen.
fn fingerprint(bytes: &[u8]) -> String {
    let made = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, bytes), b"bedplate: key id");
    format!("k{}", hex::encode(&made.as_ref()[..8]))
}

/// Whether an id is a fingerprint. Earlier versions numbered the keys; those ids stay valid.
fn is_fingerprint(id: &str) -> bool {
    id.len() == 17 && id.starts_with('k') && id[1..].bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The use of a derived token. A token made for one purpose is refused for every other purpose.
#[derive(Clone, Copy, Debug)]
pub enum Purpose {
    /// Lets a server fetch its config, once.
    Claim,
    /// Lets the server that fetched the config report its progress.
    Report,
    /// Lets the same server ask whether it may reboot, and nothing else. The operating system of the server logs this token.
    Reboot,
}

impl Purpose {
    fn as_str(self) -> &'static str {
        match self {
            Purpose::Claim => "claim",
            Purpose::Report => "report",
            Purpose::Reboot => "reboot",
        }
    }
}

impl SealingKeys {
    /// Returns the text of a key file that holds one new key. The id is the fingerprint of the key.
    pub fn generate() -> Result<Zeroizing<String>, SealError> {
        let mut key = Zeroizing::new([0; 32]);
        SystemRandom::new().fill(key.as_mut()).map_err(|_| SealError::NoRandom)?;
        let id = fingerprint(key.as_ref());
        let key = Zeroizing::new(STANDARD.encode(key.as_ref()));
        Ok(Zeroizing::new(format!("{id}:{}\n", *key)))
    }

    /// The ids of all keys; the id of the key that seals comes first.
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

    /// Whether an id names one key here and a different key in `other`.
    pub(crate) fn conflicts_with(&self, other: &SealingKeys) -> bool {
        let differs = |one: &SealingKey| {
            let same_id = other.keys.iter().find(|key| key.id == one.id);
            same_id.is_some_and(|key| key.fingerprint != one.fingerprint)
        };
        self.keys.iter().any(differs)
    }

    /// Whether `sealed` has to be re-encrypted: another key than the current one sealed it, or its prefix is the old one.
    pub fn needs_reseal(&self, sealed: &str) -> bool {
        id_of(sealed) != Some(self.current()) || !is_sealed(sealed)
    }

    /// Parses the text of a key file. Empty lines and lines that begin with `#` are skipped.
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

    /// Seals `secret` with the first key, so that the secret can only be opened for the same `place`.
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
            .map_err(|_| SealError::CannotOpen)?;
        Ok(format!("{PREFIX}{id}:{}", STANDARD.encode([&nonce[..], &sealed].concat())))
    }

    /// Opens a secret that was sealed for `place`.
    pub fn open(&self, place: &str, sealed: &str) -> Result<DecryptedSecret, SealError> {
        let (id, text) = parts(sealed).ok_or(SealError::CannotOpen)?;
        let key = self
            .keys
            .iter()
            .find(|key| key.id == id)
            .ok_or_else(|| SealError::UnknownKey { id: id.to_owned() })?;
        let bytes = STANDARD.decode(text).map_err(|_| SealError::CannotOpen)?;
        let (nonce, sealed) = bytes.split_at_checked(NONCE_LEN).ok_or(SealError::CannotOpen)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| SealError::CannotOpen)?;
        let mut opened = Zeroizing::new(sealed.to_vec());
        let aad = Aad::from(place.as_bytes());
        let length = key
            .seals
            .open_in_place(nonce, aad, &mut opened)
            .map_err(|_| SealError::CannotOpen)?
            .len();
        opened.truncate(length);
        Ok(DecryptedSecret::new(opened))
    }
}

impl SealingKeys {
    /// Makes the canary of a key: a sealed text that a database stores with the key id, to detect another key with the same id. `None` if
    /// there is no key with this id.
    pub fn canary(&self, id: &str) -> Option<String> {
        let key = self.keys.iter().find(|key| key.id == id)?;
        self.seal_by(key, &canary_place(id), b"canary").ok()
    }

    /// Whether the key `id` of these keys made the canary.
    pub(crate) fn opens_canary(&self, id: &str, canary: &str) -> bool {
        id_of(canary) == Some(id) && self.open(&canary_place(id), canary).is_ok()
    }
}

fn canary_place(id: &str) -> String {
    format!("seals/{id}/canary")
}

impl SealingKeys {
    /// Derives the token for `purpose` and the text `of` from the first key. Only a holder of that key can make the token.
    pub fn derive(&self, purpose: Purpose, of: &str) -> Result<DerivedToken, SealError> {
        let key = self.keys.first().ok_or(SealError::NoKeys)?;
        let token = hex::encode(hmac::sign(&key.derives, &message(purpose, of)));
        Ok(DerivedToken { key: key.id.clone(), token: Zeroizing::new(token) })
    }

    /// Whether one of the keys made the token `shown` for this purpose and text. Every wrong token takes the same time to refuse.
    pub fn verify(&self, purpose: Purpose, of: &str, shown: &str) -> bool {
        let Ok(shown) = hex::decode(shown) else { return false };
        let message = message(purpose, of);
        self.keys.iter().any(|key| hmac::verify(&key.derives, &message, &shown).is_ok())
    }
}

fn message(purpose: Purpose, of: &str) -> Vec<u8> {
    format!("{}\n{of}", purpose.as_str()).into_bytes()
}

/// A derived token. `Debug` prints the id of the key and not the token.
pub struct DerivedToken {
    /// The id of the key that made the token. The key must stay in the file as long as the token may be presented.
    pub key: String,
    /// 64 hexadecimal digits.
    pub token: Zeroizing<String>,
}

impl fmt::Debug for DerivedToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DerivedToken(by {}, …)", self.key)
    }
}

/// Whether the text is a sealed secret, by any key.
pub fn is_sealed(text: &str) -> bool {
    text.starts_with(PREFIX)
}

/// The id of the key that sealed a secret; `None` if the text is not sealed.
pub fn id_of(sealed: &str) -> Option<&str> {
    parts(sealed).map(|(id, _)| id)
}

/// Splits a sealed text into the id of the key and the encoded ciphertext.
fn parts(sealed: &str) -> Option<(&str, &str)> {
    let rest = sealed.strip_prefix(PREFIX).or_else(|| sealed.strip_prefix(OLD_PREFIX))?;
    rest.split_once(':')
}

/// Makes a new secret of 32 random bytes, encoded in URL-safe base64.
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

    /// The same key under another id, as earlier versions numbered keys.
    fn renamed(line: &str, id: &str) -> String {
        format!("{id}:{}", line.split_once(':').unwrap().1)
    }

    fn id(line: &str) -> String {
        line.split_once(':').unwrap().0.to_owned()
    }

    #[test]
    fn a_sealed_secret_opens_only_for_the_same_place() {
        let keys = keys();
        let sealed = keys.seal("c1/pki", b"secret").unwrap();
        assert!(!sealed.contains("secret"));
        assert_eq!(&*keys.open("c1/pki", &sealed).unwrap(), b"secret");
        assert_eq!(
            &*keys.open("c1/pki", sealed.strip_prefix("sealed:").unwrap()).unwrap(),
            b"secret"
        );
        assert_eq!(format!("{:?}", keys.open("c1/pki", &sealed).unwrap()), "DecryptedSecret(…)");
        assert!(matches!(keys.open("c2/pki", &sealed), Err(SealError::CannotOpen)));
        let mut spoiled = sealed.into_bytes();
        let last = spoiled.len() - 6;
        spoiled[last] = if spoiled[last] == b'A' { b'B' } else { b'A' };
        let spoiled = String::from_utf8(spoiled).unwrap();
        assert!(matches!(keys.open("c1/pki", &spoiled), Err(SealError::CannotOpen)));
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
        assert!(
            SealingKeys::parse(&other).unwrap().conflicts_with(&keys)
                && !keys.conflicts_with(&keys)
        );
    }

    #[test]
    fn a_derived_token_is_valid_for_one_purpose_and_text() {
        let (old, new) = (SealingKeys::generate().unwrap(), SealingKeys::generate().unwrap());
        let key = SealingKeys::parse(&old).unwrap();
        let derived = key.derive(Purpose::Claim, "c1").unwrap();
        assert_eq!(format!("{derived:?}"), format!("DerivedToken(by {}, …)", id(&old)));
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
    fn a_malformed_key_file_is_refused_with_the_line_number() {
        assert!(matches!(SealingKeys::parse("# none\n"), Err(SealError::NoKeys)));
        let key = renamed(&SealingKeys::generate().unwrap(), "");
        let illegal = ["", "a b", "a-b", "é"].map(|id| format!("{id}{key}"));
        for bad in ["1", "1:short", "1:AAAA"].into_iter().chain(illegal.iter().map(|it| it.trim()))
        {
            let read = SealingKeys::parse(&format!("\n{bad}"));
            assert!(matches!(read, Err(SealError::BadLine { line: 2 })), "{bad}");
        }
        assert_eq!(format!("{:?}", keys()), "SealingKeys(1)");
    }

    #[test]
    fn an_id_that_is_no_fingerprint_may_name_any_key() {
        let key = SealingKeys::generate().unwrap();
        // The last three differ from a fingerprint in length, in the first letter, and in a digit.
        for id in ["1", "k1", "k123456789abcdef01", "x0123456789abcdef", "k0123456789abcdeg"] {
            assert_eq!(SealingKeys::parse(&renamed(&key, id)).unwrap().current(), id);
        }
        let refused = SealingKeys::parse(&renamed(&key, "k0123456789abcdef"));
        assert!(matches!(refused, Err(SealError::WrongId { line: 1 })), "{refused:?}");
    }

    #[test]
    fn a_new_secret_has_32_bytes_and_is_never_the_same() {
        let (one, other) = (random().unwrap(), random().unwrap());
        assert_eq!(URL_SAFE_NO_PAD.decode(&*one).unwrap().len(), 32);
        assert_ne!(one, other);
    }

    /// Databases hold canaries, so their place is part of the stored format.
    #[test]
    fn a_canary_is_sealed_for_the_place_of_its_key() {
        let keys = SealingKeys::parse(&renamed(&SealingKeys::generate().unwrap(), "1")).unwrap();
        let sealed = |place: &str| keys.seal(place, b"canary").unwrap();
        assert!(keys.opens_canary("1", &sealed("seals/1/canary")));
        for place in ["", "seals/2/canary", "clusters/1/pki"] {
            assert!(!keys.opens_canary("1", &sealed(place)), "{place}");
        }
        assert_eq!(&*keys.open("seals/1/canary", &keys.canary("1").unwrap()).unwrap(), b"canary");
    }
}
