//! The key file: replaced whole, by one program at a time, for its owner's eyes only.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use zeroize::Zeroizing;

/// What tells one content of the file from another without reading it: it is replaced whole, so each is another file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    inode: u64,
    length: u64,
    changed: (i64, i64),
}

/// The file as it is now.
pub(crate) fn stamp(path: &Path) -> io::Result<Stamp> {
    let seen = fs::metadata(path)?;
    Ok(Stamp { inode: seen.ino(), length: seen.len(), changed: (seen.ctime(), seen.ctime_nsec()) })
}

/// Whose eyes a key file is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Privacy {
    /// Its owner's alone, and the owner is who runs this program.
    Ours,
    /// Its owner's alone.
    Owners,
}

/// What is wrong with who owns the file and who may read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exposed {
    /// Its group or others may read or write it: its mode.
    ToOthers(u32),
    /// Another account owns it: that, and ours.
    OwnedBy(u32, u32),
}

/// Whether nobody else can read the file.
pub(crate) fn exposure(path: &Path, privacy: Privacy) -> io::Result<Option<Exposed>> {
    let seen = fs::metadata(path)?;
    let we = rustix::process::geteuid().as_raw();
    let mode = seen.mode() & 0o7777;
    Ok(if mode & 0o077 != 0 {
        Some(Exposed::ToOthers(mode))
    } else if privacy == Privacy::Ours && seen.uid() != we {
        Some(Exposed::OwnedBy(seen.uid(), we))
    } else {
        None
    })
}

/// The file's text.
pub(crate) fn read(path: &Path) -> io::Result<Zeroizing<String>> {
    let mut text = Zeroizing::new(String::new());
    File::open(path)?.read_to_string(&mut text)?;
    Ok(text)
}

/// Writes the file, whole or not at all, and returns when it would outlast a power cut.
pub(crate) fn write(path: &Path, text: &str) -> io::Result<()> {
    let draft = beside(path, "new");
    // One that was left half written may have other rights.
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

/// Until this is dropped, no other program changes the file.
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
