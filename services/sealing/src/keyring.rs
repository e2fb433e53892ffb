//! A key file that may change while the program runs.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use tracing::{info, warn};

use crate::file::{self, Privacy, PrivacyViolation, Stamp};
use crate::{
    DecryptedSecret, DerivedToken, KeyMismatch, NewKey, Purpose, RegisteredKey, SealError,
    SealingKeys, id_of,
};

/// The keys of a service, read again whenever the key file was replaced. `Debug` prints only the ids of the keys.
pub struct Keyring {
    /// `None` if the keys were handed in as text; such keys never change.
    path: Option<PathBuf>,
    held: RwLock<LoadedKeys>,
}

struct LoadedKeys {
    keys: Arc<SealingKeys>,
    stamp: Option<Stamp>,
}

/// The place that new keys are sealed for.
const NEW_KEY: &str = "new sealing key";

/// Why a key file cannot be used or changed. The file is left as it was.
#[derive(Debug, thiserror::Error)]
pub enum KeyFileError {
    #[error("cannot read the key file {}", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("cannot write the key file {}", path.display())]
    Unwritable { path: PathBuf, source: io::Error },
    /// The content is not a key file.
    #[error("cannot use {}", path.display())]
    Bad { path: PathBuf, source: SealError },
    #[error(
        "the key file {} can be read or written by other accounts than its owner (mode {mode:o}): run chmod 600 on it, and rotate the keys if somebody may have read the file",
        path.display()
    )]
    ReadByOthers { path: PathBuf, mode: u32 },
    #[error("the key file {} is owned by user {owner}, but this service runs as user {we}: run chown on the file", path.display())]
    NotOurs {
        path: PathBuf,
        owner: u32,
        /// The user id that this service runs as.
        we: u32,
    },
    /// The file is missing while records are sealed by its keys. A new file would open none of the records, so no new file is made.
    #[error(
        "the key file {} is missing, and {needed} records in the database are sealed by its key {id}: restore the file from its backup; a new key could not open these records",
        path.display()
    )]
    Missing {
        path: PathBuf,
        /// The id of one of the lost keys.
        id: String,
        /// How many records are sealed by that key.
        needed: u64,
    },
    /// The file exists, but lacks a key that the database needs.
    #[error("cannot use the key file {}", path.display())]
    Lost { path: PathBuf, source: KeyMismatch },
    #[error("the key file {} now holds a different key under a known id: restore the file from its backup", path.display())]
    KeyReplaced { path: PathBuf },
    #[error("cannot make a key")]
    Make(#[source] SealError),
    /// The thread that changes the file has ended early, by a panic or because the service stops.
    #[error("the change of the key file broke off")]
    BrokeOff(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The keyring was made from text, so there is no file to change.
    #[error("these keys were not read from a file, so they cannot be changed")]
    NoFile,
    /// A process that shares the database does not have the new key.
    #[error(
        "conductor {process} on this database has not added the new key, so nothing is sealed with it: try again, or stop that conductor and copy the key file to it"
    )]
    NotEverywhere {
        /// The host name of the conductor.
        process: String,
    },
    /// The key to retire is the key that seals; only an older key can be retired.
    #[error("key {id} is the key that seals and cannot be retired: rotate the keys first")]
    Seals { id: String },
}

impl From<SealingKeys> for Keyring {
    /// Wraps keys that never change and are in no file.
    fn from(keys: SealingKeys) -> Self {
        Keyring { path: None, held: RwLock::new(LoadedKeys { keys: Arc::new(keys), stamp: None }) }
    }
}

impl From<SealingKeys> for Arc<Keyring> {
    fn from(keys: SealingKeys) -> Self {
        Arc::new(Keyring::from(keys))
    }
}

impl Keyring {
    /// Opens the key file at `path` and checks that the file holds every key that `known` says the database needs. Makes the file with one
    /// new key if the file is missing and nothing is sealed yet.
    ///
    /// # Errors
    ///
    /// `Missing` or `Lost` if records are sealed by keys that the file does not hold. No file is made in that case.
    pub fn open(path: &Path, known: &[RegisteredKey]) -> Result<Self, KeyFileError> {
        let unreadable = |source| KeyFileError::Unreadable { path: path.to_owned(), source };
        if !path.try_exists().map_err(unreadable)? {
            if let Some(key) = known.iter().find(|key| key.needed > 0) {
                let (id, needed) = (key.id.clone(), key.needed);
                return Err(KeyFileError::Missing { path: path.to_owned(), id, needed });
            }
            let unwritable = |source| KeyFileError::Unwritable { path: path.to_owned(), source };
            let _lock = file::lock(path).map_err(unwritable)?;
            // Another program may have made the file before this one got the lock.
            if !path.try_exists().map_err(unreadable)? {
                let text = SealingKeys::generate().map_err(KeyFileError::Make)?;
                file::write(path, &text).map_err(unwritable)?;
                info!("created the key file {}: back it up", path.display());
            }
        }
        let held = read(path, Privacy::OwnedByThisAccount)?;
        let lost = |source| KeyFileError::Lost { path: path.to_owned(), source };
        held.keys.check(known).map_err(lost)?;
        Ok(Keyring { path: Some(path.to_owned()), held: RwLock::new(held) })
    }

    /// Checks that the file, if there is one, can be used as a key file, and makes nothing. The caller may run as another account than the
    /// service (root runs `bedplate doctor`), so the owner is not compared.
    pub fn check_file(path: &Path) -> Result<(), KeyFileError> {
        let unreadable = |source| KeyFileError::Unreadable { path: path.to_owned(), source };
        if path.try_exists().map_err(unreadable)? {
            read(path, Privacy::OwnedByAnyAccount)?;
        }
        Ok(())
    }

    /// Returns the keys that the file holds now, or the keys that were read last if the file cannot be read.
    pub fn keys(&self) -> Arc<SealingKeys> {
        let held = self.held();
        let Some(path) = &self.path else { return held };
        let stamp = file::stamp(path).ok();
        if stamp.is_some()
            && self.held.read().unwrap_or_else(PoisonError::into_inner).stamp == stamp
        {
            return held;
        }
        self.reload(path).unwrap_or_else(|error| {
            warn!("cannot read the key file again, keeping the keys read before: {error}");
            held
        })
    }

    /// Seals `secret` with the first key, so that the secret can only be opened for the same `place`.
    pub fn seal(&self, place: &str, secret: &[u8]) -> Result<String, SealError> {
        self.keys().seal(place, secret)
    }

    /// Opens a secret that was sealed for `place`.
    pub fn open_sealed(&self, place: &str, sealed: &str) -> Result<DecryptedSecret, SealError> {
        self.keys_for(sealed).open(place, sealed)
    }

    /// Returns keys that include the key which sealed `sealed`. Reads the file again only if that key is unknown so far.
    fn keys_for(&self, sealed: &str) -> Arc<SealingKeys> {
        let held = self.held();
        let known = id_of(sealed).is_none_or(|id| held.holds(id));
        if known { held } else { self.keys() }
    }

    /// Derives the token for `purpose` and the text `of` from the first key. Only a holder of that key can make the token.
    pub fn derive(&self, purpose: Purpose, of: &str) -> Result<DerivedToken, SealError> {
        self.keys().derive(purpose, of)
    }

    /// Whether one of the keys made the token `shown` for this purpose and text. Every wrong token takes the same time to refuse.
    pub fn verify(&self, purpose: Purpose, of: &str, shown: &str) -> bool {
        // Another program may have made the token with a key that was rotated in after the last read.
        self.held().verify(purpose, of, shown) || self.keys().verify(purpose, of, shown)
    }

    /// Adds a new first key to the file and returns the id of the new key. The older keys stay, to open what they sealed.
    pub fn rotate(&self) -> Result<String, KeyFileError> {
        let (id, _) = self.change(|_, text| {
            let line = SealingKeys::generate().map_err(KeyFileError::Make)?;
            let id = SealingKeys::parse(&line).map_err(KeyFileError::Make)?.current().to_owned();
            Ok((id, zeroize::Zeroizing::new(format!("{}{text}", *line))))
        })?;
        info!(key.id = id, "key {id} seals from now on");
        Ok(id)
    }

    /// Seals a new key with the current one, so that other programs with the current key can add it.
    pub fn seal_key(&self, key: &NewKey) -> Result<String, SealError> {
        self.seal(NEW_KEY, key.line.as_bytes())
    }

    /// Opens a new key that another program has sealed.
    pub fn open_key(&self, sealed: &str) -> Result<NewKey, SealError> {
        NewKey::of(self.open_sealed(NEW_KEY, sealed)?.text()?)
    }

    /// Adds a key at the end of the file, where it opens and does not seal; does nothing if the file holds the key.
    pub fn add(&self, key: &NewKey) -> Result<(), KeyFileError> {
        self.change(|keys, text| {
            let ends = text.is_empty() || text.ends_with('\n');
            let line = if keys.holds(&key.id) { "" } else { key.line.as_str() };
            let end = if ends { "" } else { "\n" };
            Ok(((), zeroize::Zeroizing::new([text, end, line].concat())))
        })?;
        Ok(())
    }

    /// Makes a key of the file the first one, which seals; does nothing if the file does not hold the key.
    pub fn seal_with(&self, id: &str) -> Result<(), KeyFileError> {
        self.change(|_, text| {
            let is_it = |line: &&str| line.trim().split_once(':').is_some_and(|(it, _)| it == id);
            let first = text.lines().filter(is_it);
            let rest = text.lines().filter(|line| !is_it(line));
            let lines = first.chain(rest).flat_map(|line| [line, "\n"]);
            Ok(((), zeroize::Zeroizing::new(lines.collect())))
        })?;
        Ok(())
    }

    /// Removes a key from the file; does nothing if the file does not hold the key.
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
            info!(key.id = id, "key {id} was retired");
        }
        Ok(())
    }

    /// Replaces the text of the file by the text that `by` returns, under the lock.
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
        let (reported, text) = by(&SealingKeys::parse(&text).map_err(bad)?, &text)?;
        file::write(path, &text).map_err(unwritable)?;
        Ok((reported, self.reload(path)?))
    }

    fn reload(&self, path: &Path) -> Result<Arc<SealingKeys>, KeyFileError> {
        let now = read(path, Privacy::OwnedByThisAccount)?;
        if now.keys.conflicts_with(&self.held()) {
            return Err(KeyFileError::KeyReplaced { path: path.to_owned() });
        }
        let keys = now.keys.clone();
        *self.held.write().unwrap_or_else(PoisonError::into_inner) = now;
        Ok(keys)
    }

    fn held(&self) -> Arc<SealingKeys> {
        self.held.read().unwrap_or_else(PoisonError::into_inner).keys.clone()
    }
}

fn read(path: &Path, privacy: Privacy) -> Result<LoadedKeys, KeyFileError> {
    let unreadable = |source| KeyFileError::Unreadable { path: path.to_owned(), source };
    let owned = || path.to_owned();
    match file::exposure(path, privacy).map_err(unreadable)? {
        None => {}
        Some(PrivacyViolation::ToOthers(mode)) => {
            return Err(KeyFileError::ReadByOthers { path: owned(), mode });
        }
        Some(PrivacyViolation::OwnedBy(owner, we)) => {
            return Err(KeyFileError::NotOurs { path: owned(), owner, we });
        }
    }
    // The stamp is taken before the text: if the file is replaced between the two, the next use sees another stamp and reads again.
    let stamp = file::stamp(path).map_err(unreadable)?;
    let text = file::read(path).map_err(unreadable)?;
    let keys = SealingKeys::parse(&text)
        .map_err(|source| KeyFileError::Bad { path: path.to_owned(), source })?;
    Ok(LoadedKeys { keys: Arc::new(keys), stamp: Some(stamp) })
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

    fn open(path: &Path) -> Keyring {
        Keyring::open(path, &[]).unwrap()
    }

    fn known(ring: &Keyring, needed: u64) -> Vec<RegisteredKey> {
        let keys = ring.keys();
        let one = |id: &str| RegisteredKey {
            id: id.to_owned(),
            canary: keys.canary(id),
            needed,
            sample: None,
        };
        keys.ids().map(one).collect()
    }

    #[test]
    fn a_new_file_is_readable_by_its_owner_only() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("seal.keys");
        let ring = open(&path);
        let first = ids(&ring)[0].clone();
        let second = ring.rotate().unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(format!("{ring:?}"), format!("Keyring({second}, {first})"));
    }

    #[test]
    fn a_new_key_is_told_to_another_file_and_seals_when_both_have_it() {
        let folder = tempfile::tempdir().unwrap();
        let [one, other] = ["one.keys", "other.keys"].map(|name| folder.path().join(name));
        let first = open(&one);
        fs::copy(&one, &other).unwrap();
        let second = open(&other);
        let (key, before) = (NewKey::generate().unwrap(), ids(&first));
        let told = first.seal_key(&key).unwrap();
        assert!(!told.contains(&key.line[key.id.len()..]));
        first.add(&key).unwrap();
        for _ in 0..2 {
            second.add(&second.open_key(&told).unwrap()).unwrap();
        }
        let both = [before[0].clone(), key.id.clone()];
        assert_eq!([ids(&first), ids(&second)], [both.to_vec(), both.to_vec()]);
        first.seal_with(&key.id).unwrap();
        let sealed = first.seal("p", b"s").unwrap();
        assert_eq!(&*second.open_sealed("p", &sealed).unwrap(), b"s");
        second.seal_with(&key.id).unwrap();
        assert_eq!(ids(&second), [key.id.clone(), before[0].clone()]);
        second.seal_with("unknown").unwrap();
        assert_eq!(ids(&second), ids(&first));
        let stranger = open(&folder.path().join("stranger.keys"));
        assert!(stranger.open_key(&told).is_err());
    }

    #[test]
    fn a_lost_file_is_not_replaced_while_something_is_sealed_by_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("seal.keys");
        let ring = open(&path);
        let (text, needed, before) = (fs::read(&path).unwrap(), known(&ring, 2), ids(&ring));
        fs::remove_file(&path).unwrap();
        let refused = Keyring::open(&path, &needed).unwrap_err();
        assert!(matches!(refused, KeyFileError::Missing { needed: 2, .. }), "{refused}");
        let said = refused.to_string();
        assert!(said.contains(&path.display().to_string()) && said.contains("backup"), "{said}");
        assert!(!path.exists());
        // A file with another key is refused too, although the file is in the right place.
        let stranger = open(&folder.path().join("other.keys"));
        fs::copy(folder.path().join("other.keys"), &path).unwrap();
        let refused = Keyring::open(&path, &needed).unwrap_err();
        assert!(matches!(refused, KeyFileError::Lost { .. }), "{refused}");
        fs::write(&path, &text).unwrap();
        Keyring::open(&path, &needed).unwrap();
        // With nothing sealed, a new file is made.
        fs::remove_file(&path).unwrap();
        let anew = Keyring::open(&path, &known(&stranger, 0)).unwrap();
        assert_ne!(ids(&anew), before);
    }

    #[test]
    fn a_file_that_others_can_read_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("seal.keys");
        let ring = open(&path);
        let allow = |mode| fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        for mode in [0o640, 0o604, 0o620, 0o660, 0o644] {
            allow(mode);
            let refused = Keyring::open(&path, &[]).unwrap_err();
            assert!(matches!(refused, KeyFileError::ReadByOthers { .. }), "{mode:o}: {refused}");
            assert!(Keyring::check_file(&path).is_err());
        }
        // A running program keeps using the keys that it has read.
        assert_eq!(ring.keys().ids().count(), 1);
        allow(0o400);
        open(&path);
        Keyring::check_file(&path).unwrap();
    }

    #[test]
    fn a_file_of_another_account_is_refused() {
        if !rustix::process::geteuid().is_root() {
            return peers::skip("a_file_of_another_account", "needs root, to give a file away");
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("seal.keys");
        open(&path);
        std::os::unix::fs::chown(&path, Some(65534), None).unwrap();
        let refused = Keyring::open(&path, &[]).unwrap_err();
        assert!(matches!(refused, KeyFileError::NotOurs { owner: 65534, .. }), "{refused}");
        // The check from outside accepts any owner, since root usually runs the check.
        Keyring::check_file(&path).unwrap();
    }

    #[test]
    fn a_key_that_another_program_rotated_is_picked_up() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("seal.keys");
        let (one, two) = (open(&path), open(&path));
        let old = two.seal("p", b"old").unwrap();
        let id = one.rotate().unwrap();

        let new = one.seal("p", b"new").unwrap();
        assert!(new.starts_with(&format!("sealed:v1:{id}:")));
        assert_eq!(&*two.open_sealed("p", &new).unwrap(), b"new");
        assert_eq!(&*one.open_sealed("p", &old).unwrap(), b"old");
        assert!(two.seal("p", b"s").unwrap().starts_with(&format!("sealed:v1:{id}:")));

        let token = one.derive(Purpose::Report, "m").unwrap();
        assert_eq!(token.key, id);
        assert!(two.verify(Purpose::Report, "m", &token.token));
    }

    #[test]
    fn a_token_of_a_key_just_rotated_in_is_valid_and_every_other_token_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("seal.keys");
        let (one, two) = (open(&path), open(&path));
        let token = |ring: &Keyring| ring.derive(Purpose::Report, "m").unwrap().token;
        let stranger = token(&open(&folder.path().join("other.keys")));
        assert!(!two.verify(Purpose::Report, "m", &stranger));
        one.rotate().unwrap();
        // Here the ring reads the file again, and still refuses the token.
        assert!(!two.verify(Purpose::Report, "m", &stranger));
        one.rotate().unwrap();
        assert!(two.verify(Purpose::Report, "m", &token(&one)));
    }

    #[test]
    fn the_sealing_key_cannot_be_retired_and_retiring_another_keeps_the_rest() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("seal.keys");
        let ring = open(&path);
        let first = ids(&ring)[0].clone();
        let sealed = ring.seal("p", b"s").unwrap();
        assert!(matches!(ring.retire(&first), Err(KeyFileError::Seals { .. })));
        let (second, third) = (ring.rotate().unwrap(), ring.rotate().unwrap());
        assert_eq!(ids(&ring), [&*third, &*second, &*first]);
        ring.retire(&first).unwrap();
        assert_eq!(ids(&ring), [&*third, &*second]);
        assert!(matches!(ring.open_sealed("p", &sealed), Err(SealError::UnknownKey { .. })));
        ring.retire(&first).unwrap();
        assert_eq!(ids(&ring), [third, second]);
    }

    #[test]
    fn a_corrupt_file_leaves_the_keys_read_before_in_use() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("seal.keys");
        let ring = open(&path);
        let sealed = ring.seal("p", b"s").unwrap();
        fs::write(&path, "nonsense").unwrap();
        assert_eq!(&*ring.open_sealed("p", &ring.seal("p", b"t").unwrap()).unwrap(), b"t");
        assert_eq!(&*ring.open_sealed("p", &sealed).unwrap(), b"s");
        assert!(matches!(ring.rotate(), Err(KeyFileError::Bad { .. })));
        fs::remove_file(&path).unwrap();
        assert_eq!(&*ring.open_sealed("p", &sealed).unwrap(), b"s");
    }

    /// A key file with a numeric id, as earlier versions wrote it.
    fn numbered() -> String {
        format!("1:{}", SealingKeys::generate().unwrap().split_once(':').unwrap().1)
    }

    #[test]
    fn another_key_under_the_id_of_a_used_key_is_not_picked_up() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("seal.keys");
        file::write(&path, &numbered()).unwrap();
        let ring = open(&path);
        let sealed = ring.seal("p", b"s").unwrap();
        file::write(&path, &numbered()).unwrap();
        let after = ring.seal("p", b"t").unwrap();
        assert_eq!(&*ring.open_sealed("p", &sealed).unwrap(), b"s");
        assert_eq!(&*ring.open_sealed("p", &after).unwrap(), b"t");
        assert!(matches!(ring.rotate(), Err(KeyFileError::KeyReplaced { .. })));
    }

    #[test]
    fn keys_of_earlier_versions_go_on_and_comments_stay() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("seal.keys");
        let text = numbered();
        file::write(&path, &format!("# ours\n{text}")).unwrap();
        let ring = open(&path);
        let sealed = ring.seal("p", b"s").unwrap();
        assert!(sealed.starts_with("sealed:v1:1:"));
        let id = ring.rotate().unwrap();
        let lines = fs::read_to_string(&path).unwrap();
        assert!(lines.starts_with(&format!("{id}:")) && lines.contains("\n# ours\n1:"));
        assert_eq!(&*open(&path).open_sealed("p", &sealed).unwrap(), b"s");

        let fixed = Keyring::from(SealingKeys::parse(&text).unwrap());
        assert!(matches!(fixed.rotate(), Err(KeyFileError::NoFile)));
    }
}
