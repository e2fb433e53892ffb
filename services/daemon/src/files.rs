//! Files that only the service may read.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

/// Makes a folder that only we can read, if it is not there.
pub fn make_private(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// What the file holds; what `make` gives is written to it first where it is not there.
pub fn keep_file<E: From<io::Error>>(
    file: &Path,
    make: impl FnOnce() -> Result<Vec<u8>, E>,
) -> Result<Vec<u8>, E> {
    match fs::read(file) {
        Ok(bytes) => Ok(bytes),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let bytes = make()?;
            write_whole(file, &bytes)?;
            Ok(bytes)
        }
        Err(error) => Err(error.into()),
    }
}

/// Writes a file that only we can read, whole or not at all: a crash amid the write leaves the one that was.
pub fn write_whole(file: &Path, bytes: &[u8]) -> io::Result<()> {
    let draft = file.with_extension("new");
    let mut open =
        OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&draft)?;
    open.write_all(bytes)?;
    open.sync_all()?;
    fs::rename(&draft, file)
}
