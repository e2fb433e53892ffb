//! A key file that may change while the program runs.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use tracing::{info, warn};

use crate::file::{self, Stamp};
use crate::{Derived, Opened, Purpose, SealError, SealingKeys, id_of};

/// The keys of a service, as its key file has them now. Prints none of them.
pub struct Keyring {
    /// None, where the keys were handed in: those never change.
    path: Option<PathBuf>,
    held: RwLock<Held>,
}

struct Held {
    keys: Arc<SealingKeys>,
    stamp: Option<Stamp>,
}

/// Why a key file cannot be used, or not be changed. It is as it was.
#[derive(Debug, thiserror::Error)]
pub enum KeyFileError {
    /// It cannot be read.
    #[error("cannot read the key file {}", path.display())]
    Unreadable {
        /// Which file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// It cannot be written.
    #[error("cannot write the key file {}", path.display())]
    Unwritable {
        /// Which file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// It is no key file.
    #[error("cannot use {}", path.display())]
    Bad {
        /// Which file.
        path: PathBuf,
        /// Why not.
        source: SealError,
    },
    /// No new key can be made.
    #[error("cannot make a key")]
    Make(#[source] SealError),
    /// There is no file.
    #[error("these keys are in no file")]
    NoFile,
    /// The key that seals is needed.
    #[error("key {id} is the one that seals: rotate first")]
    Seals {
        /// Which.
        id: String,
    },
}

impl From<SealingKeys> for Keyring {
    /// Keys that never change.
    fn from(keys: SealingKeys) -> Self {
        Keyring { path: None, held: RwLock::new(Held { keys: Arc::new(keys), stamp: None }) }
    }
}

impl Keyring {
    /// The keys in this file. If it is not there, it is made with one key.
    pub fn open(path: &Path) -> Result<Self, KeyFileError> {
        let unreadable = |source| KeyFileError::Unreadable { path: path.to_owned(), source };
        if !path.try_exists().map_err(unreadable)? {
            let unwritable = |source| KeyFileError::Unwritable { path: path.to_owned(), source };
            let _lock = file::lock(path).map_err(unwritable)?;
            // Another program may have been faster.
            if !path.try_exists().map_err(unreadable)? {
                let text = SealingKeys::generate().map_err(KeyFileError::Make)?;
                file::write(path, &text).map_err(unwritable)?;
            }
        }
        let held = read(path)?;
        Ok(Keyring { path: Some(path.to_owned()), held: RwLock::new(held) })
    }

    /// The keys as the file has them now. While it cannot be read, those that it had.
    pub fn keys(&self) -> Arc<SealingKeys> {
        let held = self.held();
        let Some(path) = &self.path else { return held };
        let stamp = file::stamp(path).ok();
        if stamp.is_some()
            && self.held.read().unwrap_or_else(PoisonError::into_inner).stamp == stamp
        {
            return held;
        }
        self.look_again(path).unwrap_or_else(|error| {
            warn!("going on with the keys that were: {error}");
            held
        })
    }

    /// Seals `secret` by the key that is now the first, to be opened for the same `place` only.
    pub fn seal(&self, place: &str, secret: &[u8]) -> Result<String, SealError> {
        self.keys().seal(place, secret)
    }

    /// Opens what was sealed for `place`.
    pub fn open_sealed(&self, place: &str, sealed: &str) -> Result<Opened, SealError> {
        self.holding(sealed).open(place, sealed)
    }

    /// Keys that open what was sealed by this one, if the file has it at all.
    fn holding(&self, sealed: &str) -> Arc<SealingKeys> {
        let held = self.held();
        let known = id_of(sealed).is_none_or(|id| held.holds(id));
        if known { held } else { self.keys() }
    }

    /// What only a holder of the first key can make for this purpose of this text.
    pub fn derive(&self, purpose: Purpose, of: &str) -> Result<Derived, SealError> {
        self.keys().derive(purpose, of)
    }

    /// Whether one of the keys made `shown` for this purpose of this text. Every wrong answer takes the same time.
    pub fn verify(&self, purpose: Purpose, of: &str, shown: &str) -> bool {
        self.held().verify(purpose, of, shown) || {
            // Another program may have made it by a key that is newer than ours.
            let (held, now) = (self.held(), self.keys());
            !Arc::ptr_eq(&held, &now) && now.verify(purpose, of, shown)
        }
    }

    /// Writes a new key into the file, which seals from now on; the answer is its id. The others stay.
    pub fn rotate(&self) -> Result<String, KeyFileError> {
        let (id, _) = self.change(|keys, text| {
            let id = keys.next_id();
            let line = SealingKeys::generate_as(&id).map_err(KeyFileError::Make)?;
            Ok((id, zeroize::Zeroizing::new(format!("{}{text}", *line))))
        })?;
        info!(key.id = id, "key {id} seals from now on");
        Ok(id)
    }

    /// Takes a key out of the file, if it is there.
    pub fn retire(&self, id: &str) -> Result<(), KeyFileError> {
        let (changed, _) = self.change(|keys, text| {
            if keys.current() == id {
                return Err(KeyFileError::Seals { id: id.to_owned() });
            }
            let is_it =
                |line: &&str| line.trim().split_once(':').is_some_and(|(known, _)| known == id);
            let rest = text.lines().filter(|line| !is_it(line)).flat_map(|line| [line, "\n"]);
            Ok((keys.holds(id), zeroize::Zeroizing::new(rest.collect())))
        })?;
        if changed {
            info!(key.id = id, "key {id} is gone");
        }
        Ok(())
    }

    /// Replaces the file's text by what `by` makes of it.
    fn change<T>(
        &self,
        by: impl FnOnce(&SealingKeys, &str) -> Result<(T, zeroize::Zeroizing<String>), KeyFileError>,
    ) -> Result<(T, Arc<SealingKeys>), KeyFileError> {
        let path = self.path.as_deref().ok_or(KeyFileError::NoFile)?;
        let unwritable = |source| KeyFileError::Unwritable { path: path.to_owned(), source };
        let unreadable = |source| KeyFileError::Unreadable { path: path.to_owned(), source };
        let _lock = file::lock(path).map_err(unwritable)?;
        let text = file::read(path).map_err(unreadable)?;
        let bad = |source| KeyFileError::Bad { path: path.to_owned(), source };
        let (told, text) = by(&SealingKeys::parse(&text).map_err(bad)?, &text)?;
        file::write(path, &text).map_err(unwritable)?;
        Ok((told, self.look_again(path)?))
    }

    fn look_again(&self, path: &Path) -> Result<Arc<SealingKeys>, KeyFileError> {
        let now = read(path)?;
        let keys = now.keys.clone();
        *self.held.write().unwrap_or_else(PoisonError::into_inner) = now;
        Ok(keys)
    }

    fn held(&self) -> Arc<SealingKeys> {
        self.held.read().unwrap_or_else(PoisonError::into_inner).keys.clone()
    }
}

fn read(path: &Path) -> Result<Held, KeyFileError> {
    let unreadable = |source| KeyFileError::Unreadable { path: path.to_owned(), source };
    // The stamp first: what is replaced between the two is read again.
    let stamp = file::stamp(path).map_err(unreadable)?;
    let text = file::read(path).map_err(unreadable)?;
    let keys = SealingKeys::parse(&text)
        .map_err(|source| KeyFileError::Bad { path: path.to_owned(), source })?;
    Ok(Held { keys: Arc::new(keys), stamp: Some(stamp) })
}

impl fmt::Debug for Keyring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Keyring({})", self.held().ids().collect::<Vec<_>>().join(", "))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn ids(keyring: &Keyring) -> Vec<String> {
        keyring.keys().ids().map(str::to_owned).collect()
    }

    #[test]
    fn a_file_is_made_and_is_its_owners_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("seal.keys");
        let ring = Keyring::open(&path).unwrap();
        assert_eq!(ids(&ring), ["1"]);
        ring.rotate().unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(format!("{ring:?}"), "Keyring(2, 1)");
    }

    #[test]
    fn what_another_program_rotated_is_taken_up() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("seal.keys");
        let (one, two) = (Keyring::open(&path).unwrap(), Keyring::open(&path).unwrap());
        let old = two.seal("p", b"old").unwrap();
        assert_eq!(one.rotate().unwrap(), "2");

        let new = one.seal("p", b"new").unwrap();
        assert!(new.starts_with("sealed:v1:2:"));
        assert_eq!(&*two.open_sealed("p", &new).unwrap(), b"new");
        assert_eq!(&*one.open_sealed("p", &old).unwrap(), b"old");
        assert!(two.seal("p", b"s").unwrap().starts_with("sealed:v1:2:"));

        let token = one.derive(Purpose::Report, "m").unwrap();
        assert_eq!(token.key, "2");
        assert!(two.verify(Purpose::Report, "m", &token.token));
    }

    #[test]
    fn a_key_that_seals_is_not_retired_and_another_leaves_the_rest() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("seal.keys");
        let ring = Keyring::open(&path).unwrap();
        let sealed = ring.seal("p", b"s").unwrap();
        assert!(matches!(ring.retire("1"), Err(KeyFileError::Seals { .. })));
        ring.rotate().unwrap();
        ring.rotate().unwrap();
        assert_eq!(ids(&ring), ["3", "2", "1"]);
        ring.retire("1").unwrap();
        assert_eq!(ids(&ring), ["3", "2"]);
        assert!(matches!(ring.open_sealed("p", &sealed), Err(SealError::UnknownKey { .. })));
        ring.retire("1").unwrap();
        assert_eq!(ids(&ring), ["3", "2"]);
    }

    #[test]
    fn a_file_that_was_spoiled_leaves_the_keys_that_were() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("seal.keys");
        let ring = Keyring::open(&path).unwrap();
        let sealed = ring.seal("p", b"s").unwrap();
        fs::write(&path, "nonsense").unwrap();
        assert_eq!(&*ring.open_sealed("p", &ring.seal("p", b"t").unwrap()).unwrap(), b"t");
        assert_eq!(&*ring.open_sealed("p", &sealed).unwrap(), b"s");
        assert!(matches!(ring.rotate(), Err(KeyFileError::Bad { .. })));
        fs::remove_file(&path).unwrap();
        assert_eq!(&*ring.open_sealed("p", &sealed).unwrap(), b"s");
    }

    #[test]
    fn comments_stay_and_keys_in_no_file_never_change() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("seal.keys");
        let text = SealingKeys::generate().unwrap();
        fs::write(&path, format!("# ours\n{}", *text)).unwrap();
        Keyring::open(&path).unwrap().rotate().unwrap();
        let lines = fs::read_to_string(&path).unwrap();
        assert!(lines.starts_with("2:") && lines.contains("\n# ours\n1:"));

        let fixed = Keyring::from(SealingKeys::parse(&text).unwrap());
        assert!(matches!(fixed.rotate(), Err(KeyFileError::NoFile)));
    }
}
