//! Backups in a container of Swift, in clusterd's own project.

use futures::{StreamExt, TryStreamExt};
use openstack::Session;
use openstack::object_store::{containers, objects};

use super::object::{BackupStoreError, BoxError, ObjectBytes};

/// A container of Swift with backups. An object is at most 5 GB large, unless the cloud has another limit.
pub(crate) struct Swift {
    session: Session,
    container: String,
}

impl Swift {
    pub(super) fn new(session: &Session, container: &str) -> Self {
        Swift { session: session.clone(), container: container.to_owned() }
    }

    pub(super) async fn write(
        &self,
        path: &str,
        bytes: ObjectBytes,
    ) -> Result<(), BackupStoreError> {
        // This also renews the token, because the stream can be sent only once.
        containers::create(&self.session, &self.container).await?;
        Ok(objects::write(&self.session, &self.container, path, bytes).await?)
    }

    pub(super) async fn read(&self, path: &str) -> Result<Option<ObjectBytes>, BackupStoreError> {
        let download = objects::read(&self.session, &self.container, path).await?;
        Ok(download.map(|it| it.into_stream().map_err(BoxError::from).boxed()))
    }

    pub(super) async fn delete(&self, path: &str) -> Result<(), BackupStoreError> {
        Ok(objects::delete(&self.session, &self.container, path).await?)
    }
}
