//! Reads, replaces and locks the key file, and checks that only its owner can read it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use zeroize::Zeroizing;

/// Identifies one content of the key file without reading the file. Every change replaces the file, so a new content has a new inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    inode: u64,
    length: u64,
    changed: (i64, i64),
}

/// Returns the stamp of the file as it is on disk now.
pub(crate) fn stamp(path: &Path) -> io::Result<Stamp> {
    let seen = fs::metadata(path)?;
    Ok(Stamp { inode: seen.ino(), length: seen.len(), changed: (seen.ctime(), seen.ctime_nsec()) })
}

/// How strictly the owner of a key file is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Privacy {
    /// Only the owner has access, and the owner is the account that runs this program.
    OwnedByThisAccount,
    /// Only the owner has access; any account may be the owner.
    OwnedByAnyAccount,
}

/// Why a key file is not private enough to be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PrivacyViolation {
    /// The mode lets the group or others read or write the file. Holds the mode.
    ToOthers(u32),
    /// Another account owns the file. Holds the user id of the owner, then ours.
    OwnedBy(u32, u32),
}

/// Checks the mode and the owner of the file; `None` means that the file is private enough.
pub(crate) fn exposure(path: &Path, privacy: Privacy) -> io::Result<Option<PrivacyViolation>> {
    let seen = fs::metadata(path)?;
    let we = rustix::process::geteuid().as_raw();
    let mode = seen.mode() & 0o7777;
    Ok(if mode & 0o077 != 0 {
        Some(PrivacyViolation::ToOthers(mode))
    } else if privacy == Privacy::OwnedByThisAccount && seen.uid() != we {
        Some(PrivacyViolation::OwnedBy(seen.uid(), we))
    } else {
        None
    })
}

/// Reads the whole file into memory that is zeroed on drop.
pub(crate) fn read(path: &Path) -> io::Result<Zeroizing<String>> {
    let mut text = Zeroizing::new(String::new());
    File::open(path)?.read_to_string(&mut text)?;
    Ok(text)
}

/// Replaces the file atomically, and returns once the new content would survive a power cut.
pub(crate) fn write(path: &Path, text: &str) -> io::Result<()> {
    let draft = beside(path, "new");
    // A draft left over from a crash may have another mode, so the draft is always created anew.
    match fs::remove_file(&draft) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&draft, path)?;
    File::open(path.parent().unwrap_or(Path::new("/")))?.sync_all()
}

/// Locks the key file against other programs that would change the file, until the returned lock file is dropped.
pub(crate) fn lock(path: &Path) -> io::Result<File> {
    let lock = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(beside(path, "lock"))?;
    lock.lock()?;
    Ok(lock)
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    name.into()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_draft_left_over_from_a_crash_is_replaced_with_its_mode() {
        let folder = tempfile::tempdir().unwrap();
        let (path, draft) = (folder.path().join("seal.keys"), folder.path().join("seal.keys.new"));
        fs::write(&draft, "half of a").unwrap();
        fs::set_permissions(&draft, fs::Permissions::from_mode(0o644)).unwrap();
        write(&path, "whole").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "whole");
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o600);
        assert!(!draft.exists());
    }

    #[test]
    fn a_draft_that_cannot_be_removed_is_the_error() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("seal.keys.new")).unwrap();
        let refused = write(&folder.path().join("seal.keys"), "text").unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::IsADirectory);
    }
}
