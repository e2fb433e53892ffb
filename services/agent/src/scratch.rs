//! A folder for one test, gone after it.

use std::path::{Path, PathBuf};

/// A folder below the system's own for such things.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        let path = std::env::temp_dir().join(format!("agent-{}", uuid::Uuid::new_v4()));
        std::fs::create_dir_all(&path).expect("a folder can be made");
        Folder(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
