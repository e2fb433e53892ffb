//! Users and the hashes of their passwords, bcrypt or argon2id, in the file format of Apache's `htpasswd`.

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use argon2::{Argon2, Params, PasswordHash, PasswordVerifier};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard, Semaphore};
use uuid::Uuid;

/// Who may call, and the proof of each.
pub struct Htpasswd {
    users: HashMap<String, Hash>,
    /// Hashed when the name is unknown, so that an answer takes as long either way.
    decoy: Hash,
    /// Digests of what was accepted: to hash takes tens of milliseconds by design, which no request should pay twice.
    accepted: RwLock<HashMap<String, [u8; 32]>>,
    /// What is being tried, by its digest.
    trying: Mutex<HashMap<[u8; 32], Arc<AsyncMutex<()>>>>,
    salt: [u8; 16],
    /// How many guesses are tried at once: more would take the processors from those who are let in.
    pub(crate) guesses: Arc<Semaphore>,
}

/// A hash of a password, with all it takes to try one.
#[derive(Clone)]
enum Hash {
    Bcrypt(String),
    /// Of the variant that RFC 9106 recommends.
    Argon2id(Box<PasswordHash>),
}

/// See `Htpasswd::guesses`.
const GUESSES_AT_ONCE: usize = 2;

/// Why the file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum HtpasswdError {
    /// It cannot be read.
    #[error("cannot read the password file {path}")]
    Unreadable {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A line is no `name:hash`.
    #[error("line {line} of the password file is not NAME:HASH")]
    Malformed {
        /// Which line, from 1.
        line: usize,
    },
    /// Nothing here can check such a hash, or it is cut short.
    #[error(
        "line {line} of the password file: the hash of {user:?} is neither bcrypt, as `htpasswd -B` writes it, nor argon2id ($argon2id$v=19$...)"
    )]
    UnknownHash {
        /// Which line, from 1.
        line: usize,
        /// Whose.
        user: String,
    },
    /// Nobody could call.
    #[error("the password file names no user")]
    Empty,
}

impl Htpasswd {
    /// Reads the file at `path`.
    pub fn read(path: &Path) -> Result<Self, HtpasswdError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| HtpasswdError::Unreadable { path: path.to_owned(), source })?;
        Htpasswd::parse(&text)
    }

    /// Reads the text of such a file. Empty lines and lines that begin with `#` are skipped.
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

    /// Whether this pair was accepted before.
    pub(crate) fn is_known(&self, name: &str, password: &[u8]) -> bool {
        let digest = self.digest(name, password);
        let accepted = self.accepted.read().unwrap_or_else(|broken| broken.into_inner());
        accepted.get(name).is_some_and(|known| known.ct_eq(&digest).into())
    }

    /// Waits until nobody else tries this pair; nobody else does as long as this is kept.
    pub(crate) async fn alone(&self, name: &str, password: &[u8]) -> OwnedMutexGuard<()> {
        let turn = {
            let mut trying = self.trying.lock().unwrap_or_else(PoisonError::into_inner);
            trying.retain(|_, turn| Arc::strong_count(turn) > 1);
            trying.entry(self.digest(name, password)).or_default().clone()
        };
        turn.lock_owned().await
    }

    /// Whether the file has this pair. Slow: not for the threads that serve.
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
    /// Reads a hash that can be tried; `None` for any other.
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
            // How much work it is, the hash says.
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
    fn the_right_password_is_accepted_and_then_known() {
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

    /// Of the test vectors of the reference implementation (`src/test.c`): "password", salted with "somesalt".
    const ARGON2ID: &str =
        "$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4";

    #[test]
    fn argon2id_stands_beside_bcrypt() {
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
    fn nothing_secret_is_printed() {
        let hash = bcrypt::hash("s3cret", 4).unwrap();
        let file = Htpasswd::parse(&format!("admin:{hash}")).unwrap();
        assert_eq!(format!("{file:?}"), "Htpasswd(1 users)");
    }
}
