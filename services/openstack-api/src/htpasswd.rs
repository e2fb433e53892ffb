//! Users and password hashes (bcrypt or argon2id) in the file format of Apache's `htpasswd`.

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use argon2::{Argon2, Params, PasswordHash, PasswordVerifier};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard, Semaphore};
use uuid::Uuid;

/// The users of a password file, with a cache of passwords that were already verified.
pub struct Htpasswd {
    users: HashMap<String, Hash>,
    /// Verified against if the name is unknown, so that the time of an answer does not reveal which names exist.
    decoy: Hash,
    /// Digests of accepted pairs by user name. Verifying a hash takes tens of milliseconds by design, which a client should not pay for
    /// every request.
    accepted: RwLock<HashMap<String, [u8; 32]>>,
    /// Locks of the pairs that are being verified, by digest, so that equal requests do not hash the same password in parallel.
    trying: Mutex<HashMap<[u8; 32], Arc<AsyncMutex<()>>>>,
    salt: [u8; 16],
    /// Limits how many passwords are hashed at once: more would take the processors away from authenticated callers.
    pub(crate) guesses: Arc<Semaphore>,
}

/// A password hash with its parameters.
#[derive(Clone)]
enum Hash {
    Bcrypt(String),
    /// The variant that RFC 9106 recommends.
    Argon2id(Box<PasswordHash>),
}

/// The permits of `Htpasswd::guesses`.
const GUESSES_AT_ONCE: usize = 2;

/// Why the password file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum HtpasswdError {
    #[error("cannot read the password file {path}")]
    Unreadable { path: PathBuf, source: std::io::Error },
    #[error("line {line} of the password file is not NAME:HASH")]
    Malformed {
        /// Counted from 1.
        line: usize,
    },
    /// The hash has an unknown format, or is cut off.
    #[error(
        "line {line} of the password file: the hash of {user:?} is neither bcrypt, as `htpasswd -B` writes it, nor argon2id ($argon2id$v=19$...)"
    )]
    UnknownHash {
        /// Counted from 1.
        line: usize,
        user: String,
    },
    /// A file without users is refused, because nobody could authenticate.
    #[error("the password file names no user")]
    Empty,
}

impl Htpasswd {
    /// Reads the password file at `path`.
    pub fn read(path: &Path) -> Result<Self, HtpasswdError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| HtpasswdError::Unreadable { path: path.to_owned(), source })?;
        Htpasswd::parse(&text)
    }

    /// Parses the text of a password file. Empty lines and lines that begin with `#` are skipped.
    pub fn parse(text: &str) -> Result<Self, HtpasswdError> {
        let mut users = HashMap::new();
        for (at, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let malformed = || HtpasswdError::Malformed { line: at + 1 };
            let (name, hash) = line.split_once(':').ok_or_else(malformed)?;
            if name.is_empty() {
                return Err(malformed());
            }
            let unknown = || HtpasswdError::UnknownHash { line: at + 1, user: name.to_owned() };
            users.insert(name.to_owned(), Hash::parse(hash).ok_or_else(unknown)?);
        }
        let decoy = users.values().next().cloned().ok_or(HtpasswdError::Empty)?;
        let salt = Uuid::new_v4().into_bytes();
        Ok(Htpasswd {
            users,
            decoy,
            accepted: RwLock::default(),
            trying: Mutex::default(),
            salt,
            guesses: Arc::new(Semaphore::new(GUESSES_AT_ONCE)),
        })
    }

    /// Whether this pair was verified before. Fast, because no password is hashed.
    pub(crate) fn is_known(&self, name: &str, password: &[u8]) -> bool {
        let digest = self.digest(name, password);
        let accepted = self.accepted.read().unwrap_or_else(|broken| broken.into_inner());
        accepted.get(name).is_some_and(|known| known.ct_eq(&digest).into())
    }

    /// Waits until no other request verifies the same pair. Drop the guard to let the next one continue.
    pub(crate) async fn lock_pair(&self, name: &str, password: &[u8]) -> OwnedMutexGuard<()> {
        let turn = {
            let mut trying = self.trying.lock().unwrap_or_else(PoisonError::into_inner);
            trying.retain(|_, turn| Arc::strong_count(turn) > 1);
            trying.entry(self.digest(name, password)).or_default().clone()
        };
        turn.lock_owned().await
    }

    /// Verifies the password of a user. Slow by design, so call this on a blocking thread.
    pub(crate) fn verify(&self, name: &str, password: &[u8]) -> bool {
        let known = self.users.get(name);
        let fits = known.unwrap_or(&self.decoy).fits(password);
        let good = fits && known.is_some();
        if good {
            let digest = self.digest(name, password);
            let mut accepted = self.accepted.write().unwrap_or_else(|broken| broken.into_inner());
            accepted.insert(name.to_owned(), digest);
        }
        good
    }

    fn digest(&self, name: &str, password: &[u8]) -> [u8; 32] {
        let mut hasher = Sha256::new();
        for part in [&self.salt[..], name.as_bytes(), b":", password] {
            hasher.update(part);
        }
        hasher.finalize().into()
    }
}

impl Hash {
    /// Parses a hash; `None` if the hash cannot be verified by this program.
    fn parse(text: &str) -> Option<Self> {
        if text.parse::<bcrypt::HashParts>().is_ok() {
            return Some(Hash::Bcrypt(text.to_owned()));
        }
        let hash = PasswordHash::new(text).ok()?;
        let whole = hash.salt.is_some() && hash.hash.is_some() && Params::try_from(&hash).is_ok();
        let is_argon2id = hash.algorithm == argon2::ARGON2ID_IDENT;
        (whole && is_argon2id).then(|| Hash::Argon2id(Box::new(hash)))
    }

    fn fits(&self, password: &[u8]) -> bool {
        match self {
            Hash::Bcrypt(hash) => bcrypt::verify(password, hash).unwrap_or(false),
            // The cost parameters are part of the hash.
            Hash::Argon2id(hash) => Argon2::default().verify_password(password, &**hash).is_ok(),
        }
    }
}

impl fmt::Debug for Htpasswd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Htpasswd({} users)", self.users.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_right_password_is_accepted_and_cached() {
        let hash = bcrypt::hash("s3cret", 4).unwrap();
        let file = Htpasswd::parse(&format!("# admins\n\nadmin:{hash}\n")).unwrap();
        assert!(!file.is_known("admin", b"s3cret"));
        assert!(file.verify("admin", b"s3cret"));
        assert!(file.is_known("admin", b"s3cret"));
        assert!(!file.is_known("admin", b"other"));
        assert!(!file.verify("admin", b"other"));
        assert!(!file.verify("nobody", b"s3cret"));
        assert!(!file.is_known("nobody", b"s3cret"));
    }

    /// From the test vectors of the reference implementation (`src/test.c`): "password" with the salt "somesalt".
    const ARGON2ID: &str =
        "$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4";

    #[test]
    fn argon2id_and_bcrypt_hashes_can_be_mixed() {
        let hash = bcrypt::hash("s3cret", 4).unwrap();
        let file = Htpasswd::parse(&format!("ann:{hash}\nbob:{ARGON2ID}\n")).unwrap();
        assert!(file.verify("bob", b"password"));
        assert!(file.is_known("bob", b"password"));
        for (name, password) in [("bob", "s3cret"), ("ann", "password"), ("bob", ""), ("c", "x")] {
            assert!(!file.verify(name, password.as_bytes()), "{name}: {password}");
        }
        assert!(file.verify("ann", b"s3cret"));
    }

    #[test]
    fn a_file_that_protects_nothing_is_refused() {
        assert!(matches!(Htpasswd::parse("# nobody\n"), Err(HtpasswdError::Empty)));
        for bad in ["admin", ":$2y$04$abc"] {
            let got = Htpasswd::parse(&format!("\n{bad}"));
            assert!(matches!(got, Err(HtpasswdError::Malformed { line: 2 })), "{bad}: {got:?}");
        }
    }

    #[test]
    fn a_hash_that_cannot_be_checked_is_refused_by_its_user() {
        let cut = &ARGON2ID[..40];
        let endless = ARGON2ID.replace("t=2", "t=0");
        let argon2i = ARGON2ID.replace("2id", "2i");
        let scrypt = "$scrypt$ln=16,r=8,p=1$aM15713r3Xsvxbi31lqr1Q$nFNh2CVHVjNldFVKDHDlm4CbdRSCdEBsjjJxD+iCs5E";
        for bad in ["plain", "$apr1$abc$def", "$2y$04$abc", cut, &endless, &argon2i, scrypt] {
            let got = Htpasswd::parse(&format!("\nann:{bad}")).unwrap_err();
            let said = format!("{got} {got:?}");
            assert!(said.starts_with("line 2 of the password file: the hash of \"ann\""), "{said}");
            assert!(!said.contains(bad), "{said}");
        }
    }

    #[test]
    fn debug_output_contains_no_secret() {
        let hash = bcrypt::hash("s3cret", 4).unwrap();
        let file = Htpasswd::parse(&format!("admin:{hash}")).unwrap();
        assert_eq!(format!("{file:?}"), "Htpasswd(1 users)");
    }
}
