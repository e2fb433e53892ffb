//! Files and folders that only the service may read.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

/// Creates the folder, with mode 0700, if it does not exist.
pub fn make_private(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// Returns the content of the file. A missing file is first created with the content that `make` returns.
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

/// Replaces the content of a file atomically: after a crash the file holds either the old or the new content. A new file has mode 0600.
pub fn write_whole(file: &Path, bytes: &[u8]) -> io::Result<()> {
    let draft = file.with_extension("new");
    let mut open =
        OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&draft)?;
    open.write_all(bytes)?;
    open.sync_all()?;
    fs::rename(&draft, file)
}
