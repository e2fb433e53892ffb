//! The store of backups: objects of any size by path, written and read as streams.

mod directory;
mod object;
mod swift;

use openstack::Session;

use crate::settings::BackupPlace;
use directory::Directory;
pub use object::ObjectBytes;
pub(crate) use object::{BackupStoreError, BoxError};
use swift::Swift;

/// The store of backups.
pub(crate) enum BackupStore {
    Directory(Directory),
    Swift(Swift),
}

impl BackupStore {
    /// Makes the store; `None` if it is in a cloud and there is none. `session` is clusterd's own with the cloud.
    pub(crate) fn new(place: &BackupPlace, session: Option<&Session>) -> Option<Self> {
        Some(match place {
            BackupPlace::Directory(root) => BackupStore::Directory(Directory::new(root)),
            BackupPlace::Container(name) => BackupStore::Swift(Swift::new(session?, name)),
        })
    }

    /// Writes an object, and replaces an existing one. A write that fails leaves no object that can be read.
    pub(crate) async fn write(
        &self,
        path: &str,
        bytes: ObjectBytes,
    ) -> Result<(), BackupStoreError> {
        match self {
            BackupStore::Directory(directory) => directory.write(path, bytes).await,
            BackupStore::Swift(swift) => swift.write(path, bytes).await,
        }
    }

    /// Begins to read an object; `None` if there is none.
    pub(crate) async fn read(&self, path: &str) -> Result<Option<ObjectBytes>, BackupStoreError> {
        match self {
            BackupStore::Directory(directory) => directory.read(path).await,
            BackupStore::Swift(swift) => swift.read(path).await,
        }
    }

    /// Deletes an object; an object that is gone already is no error.
    pub(crate) async fn delete(&self, path: &str) -> Result<(), BackupStoreError> {
        match self {
            BackupStore::Directory(directory) => directory.delete(path).await,
            BackupStore::Swift(swift) => swift.delete(path).await,
        }
    }
}
