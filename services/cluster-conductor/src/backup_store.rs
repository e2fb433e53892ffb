//! The store of backups: objects of any size by path, written and read as streams.

mod directory;
mod object;

use crate::settings::BackupPlace;
use directory::Directory;
pub use object::ObjectBytes;
pub(crate) use object::{BackupStoreError, BoxError};

/// The store of backups.
pub(crate) enum BackupStore {
    Directory(Directory),
}

impl BackupStore {
    pub(crate) fn new(place: &BackupPlace) -> Self {
        match place {
            BackupPlace::Directory(root) => BackupStore::Directory(Directory::new(root)),
        }
    }

    /// Writes an object, and replaces an existing one. A write that fails leaves no object that can be read.
    pub(crate) async fn write(
        &self,
        path: &str,
        bytes: ObjectBytes,
    ) -> Result<(), BackupStoreError> {
        match self {
            BackupStore::Directory(directory) => directory.write(path, bytes).await,
        }
    }

    /// Begins to read an object; `None` if there is none.
    pub(crate) async fn read(&self, path: &str) -> Result<Option<ObjectBytes>, BackupStoreError> {
        match self {
            BackupStore::Directory(directory) => directory.read(path).await,
        }
    }

    /// Deletes an object; an object that is gone already is no error.
    pub(crate) async fn delete(&self, path: &str) -> Result<(), BackupStoreError> {
        match self {
            BackupStore::Directory(directory) => directory.delete(path).await,
        }
    }
}
