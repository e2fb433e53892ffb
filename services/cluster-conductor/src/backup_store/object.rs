//! The bytes of an object, and why they are not moved.

use std::error::Error;
use std::io;

use bytes::Bytes;
use futures::stream::BoxStream;
use openstack::CloudError;

/// The reason why a stream broke off.
pub(crate) type BoxError = Box<dyn Error + Send + Sync>;

/// The bytes of an object, as they arrive.
pub type ObjectBytes = BoxStream<'static, Result<Bytes, BoxError>>;

/// Why the store of backups did not do as asked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BackupStoreError {
    #[error("cannot write {path} in the store of backups")]
    Write { path: String, source: io::Error },
    #[error("cannot read {path} in the store of backups")]
    Read { path: String, source: io::Error },
    #[error("cannot delete {path} in the store of backups")]
    Delete { path: String, source: io::Error },
    /// The bytes to be written ended early.
    #[error("the transfer broke off")]
    BrokeOff(#[source] BoxError),
    #[error("the store of backups in the cloud does not do as asked")]
    Cloud(#[from] CloudError),
}
