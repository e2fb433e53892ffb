//! Files and folders that only the service may read.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use serde::Serialize;
use tokio::time::{Instant, sleep};

/// How long a process that ends may hold its lock.
const LOCK_TIMEOUT: Duration = Duration::from_secs(2);

/// Creates the folder, with mode 0700, if it does not exist.
pub fn create_private_folder(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// Returns the content of the file. A missing file is first created with the content that `make` returns.
pub fn read_or_create<E: From<io::Error>>(
    file: &Path,
    make: impl FnOnce() -> Result<Vec<u8>, E>,
) -> Result<Vec<u8>, E> {
    match fs::read(file) {
        Ok(bytes) => Ok(bytes),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let bytes = make()?;
            replace_file(file, &bytes)?;
            Ok(bytes)
        }
        Err(error) => Err(error.into()),
    }
}

/// Replaces the content of a file atomically: after a crash the file holds either the old or the new content. The file has mode 0600
/// afterwards.
pub fn replace_file(file: &Path, bytes: &[u8]) -> io::Result<()> {
    let draft = file.with_extension("new");
    // A draft that an earlier crash left behind keeps its mode when it is opened again, so the draft is always a new file.
    match fs::remove_file(&draft) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let mut open = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
    open.write_all(bytes)?;
    open.sync_all()?;
    fs::rename(&draft, file)?;
    // The new name is on the disk only once its folder is.
    File::open(folder_of(file))?.sync_all()
}

/// Writes the addresses of the service's listeners to `listeners.json` in the state folder, atomically: a reader never sees half a file.
pub fn write_listeners(state: &Path, listeners: &impl Serialize) -> io::Result<()> {
    replace_file(&state.join("listeners.json"), &serde_json::to_vec(listeners)?)
}

/// Locks a SQLite file, which only one process may use, or without one the state folder, until the returned value is dropped or the process
/// ends. Returns `None` for a file in a folder that does not exist, which cannot be opened either.
///
/// # Errors
///
/// Another process uses them.
pub async fn lock_state(
    program: &str,
    database: Option<PathBuf>,
    state: &Path,
) -> anyhow::Result<Option<File>> {
    let (mut file, used) = match database {
        Some(database) => {
            let used = format!("the database {}", database.display());
            (database.into_os_string(), used)
        }
        None => {
            (state.join(program).into_os_string(), format!("the state folder {}", state.display()))
        }
    };
    // A file of its own: SQLite's own locks end when any handle of its file is closed.
    file.push(".lock");
    let file = PathBuf::from(file);
    match lock_file(&file).await {
        Ok(Some(lock)) => Ok(Some(lock)),
        Ok(None) => bail!("another {program} uses {used}; stop it first"),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("cannot lock {}", file.display())),
    }
}

/// Returns a name for the locked file that no other file has, also none on another host: a process with the same name has ended. A process that
/// cannot see the name of the boot of its host has a random name.
pub fn instance_name(lock: Option<&File>) -> String {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id");
    match (boot, lock.map(File::metadata)) {
        (Ok(boot), Some(Ok(file))) => format!("{}/{}/{}", boot.trim(), file.dev(), file.ino()),
        (Ok(_) | Err(_), Some(_) | None) => {
            format!("{:016x}", RandomState::new().hash_one(std::process::id()))
        }
    }
}

/// Locks the file, which is created if it is missing, until the returned value is dropped or the process ends. Returns `None` if another
/// process, or another service of this process, holds the lock.
async fn lock_file(file: &Path) -> io::Result<Option<File>> {
    let open = OpenOptions::new().append(true).create(true).mode(0o600).open(file)?;
    let deadline = Instant::now() + LOCK_TIMEOUT;
    loop {
        match open.try_lock() {
            Ok(()) => return Ok(Some(open)),
            Err(TryLockError::WouldBlock) if Instant::now() < deadline => {
                sleep(Duration::from_millis(50)).await;
            }
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
}

/// Returns the folder of a file; a bare name is in the working directory.
fn folder_of(file: &Path) -> &Path {
    file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn mode(file: &Path) -> u32 {
        fs::metadata(file).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn a_draft_left_by_a_crash_does_not_change_the_mode_of_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let [file, draft] = ["key.pem", "key.new"].map(|name| folder.path().join(name));
        fs::write(&draft, "half of a longer secr").unwrap();
        fs::set_permissions(&draft, fs::Permissions::from_mode(0o644)).unwrap();
        replace_file(&file, b"secret").unwrap();
        assert_eq!((fs::read(&file).unwrap(), mode(&file)), (b"secret".to_vec(), 0o600));
        assert!(!draft.exists());
    }

    #[test]
    fn a_link_in_place_of_the_draft_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let [file, draft, other] = ["key.pem", "key.new", "other"].map(|it| folder.path().join(it));
        fs::write(&other, "theirs").unwrap();
        symlink(&other, &draft).unwrap();
        replace_file(&file, b"secret").unwrap();
        assert_eq!(fs::read(&other).unwrap(), b"theirs");
        assert!(fs::symlink_metadata(&file).unwrap().is_file());
    }

    #[tokio::test(start_paused = true)]
    async fn a_file_is_locked_once_until_the_lock_is_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("lock");
        let held = lock_file(&file).await.unwrap().unwrap();
        assert_eq!(mode(&file), 0o600);
        assert!(lock_file(&file).await.unwrap().is_none());
        let name = instance_name(Some(&held));
        drop(held);
        let again = lock_file(&file).await.unwrap();
        assert_eq!(instance_name(again.as_ref()), name, "its process has ended");
        let other = lock_file(&folder.path().join("other")).await.unwrap();
        assert_ne!(instance_name(other.as_ref()), name);
    }

    #[test]
    fn the_folder_of_a_bare_name_is_the_working_directory() {
        assert_eq!(folder_of(Path::new("listeners.json")), Path::new("."));
        assert_eq!(folder_of(Path::new("/var/lib/key.pem")), Path::new("/var/lib"));
    }
}
