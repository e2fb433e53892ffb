//! Users and their bcrypt hashes, in the file format of Apache's `htpasswd -B`.

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::RwLock;

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use tokio::sync::Semaphore;
use uuid::Uuid;

/// Who may call, and the proof of each.
pub struct Htpasswd {
    users: HashMap<String, String>,
    /// Hashed when the name is unknown, so that an answer takes as long either way.
    decoy: String,
    /// Digests of what bcrypt has accepted: it takes tens of milliseconds by design, which no request should pay twice.
    accepted: RwLock<HashMap<String, [u8; 32]>>,
    salt: [u8; 16],
    /// How many guesses are tried at once: more would take the processors from those who are let in.
    pub(crate) guesses: Semaphore,
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
    #[error(
        "line {line} of the password file is not NAME:HASH with a bcrypt hash, as `htpasswd -B` writes it"
    )]
    Malformed {
        /// Which line, from 1.
        line: usize,
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
            hash.parse::<bcrypt::HashParts>().map_err(|_| malformed())?;
            if name.is_empty() {
                return Err(malformed());
            }
            users.insert(name.to_owned(), hash.to_owned());
        }
        let decoy = users.values().next().cloned().ok_or(HtpasswdError::Empty)?;
        let salt = Uuid::new_v4().into_bytes();
        Ok(Htpasswd {
            users,
            decoy,
            accepted: RwLock::default(),
            salt,
            guesses: Semaphore::new(GUESSES_AT_ONCE),
        })
    }

    /// Whether bcrypt has accepted this pair before.
    pub(crate) fn is_known(&self, name: &str, password: &[u8]) -> bool {
        let digest = self.digest(name, password);
        let accepted = self.accepted.read().unwrap_or_else(|broken| broken.into_inner());
        accepted.get(name).is_some_and(|known| known.ct_eq(&digest).into())
    }

    /// Whether bcrypt accepts this pair. Slow: not for the threads that serve.
    pub(crate) fn verify(&self, name: &str, password: &[u8]) -> bool {
        let known = self.users.get(name);
        let fits = bcrypt::verify(password, known.unwrap_or(&self.decoy)).unwrap_or(false);
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

    #[test]
    fn a_file_that_protects_nothing_is_refused() {
        assert!(matches!(Htpasswd::parse("# nobody\n"), Err(HtpasswdError::Empty)));
        for bad in ["admin", "admin:plain", "admin:$apr1$abc$def", ":$2y$04$abc"] {
            let got = Htpasswd::parse(&format!("\n{bad}"));
            assert!(matches!(got, Err(HtpasswdError::Malformed { line: 2 })), "{bad}: {got:?}");
        }
    }

    #[test]
    fn nothing_secret_is_printed() {
        let hash = bcrypt::hash("s3cret", 4).unwrap();
        let file = Htpasswd::parse(&format!("admin:{hash}")).unwrap();
        assert_eq!(format!("{file:?}"), "Htpasswd(1 users)");
    }
}
