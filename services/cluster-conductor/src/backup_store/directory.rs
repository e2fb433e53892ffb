//! Backups in a directory, which may be a mounted share.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use futures::{StreamExt, TryStreamExt};
use tokio::fs::{self, DirBuilder, File, OpenOptions};
use tokio::io::AsyncWriteExt;
use tokio_util::io::ReaderStream;

use super::object::{BackupStoreError, BoxError, ObjectBytes};

/// How many bytes are read at once.
const PART: usize = 256 << 10;

/// A directory with backups. Only its owner may read what is written.
#[derive(Debug)]
pub(crate) struct Directory {
    root: PathBuf,
}

impl Directory {
    pub(super) fn new(root: &Path) -> Self {
        Directory { root: root.to_owned() }
    }

    /// Writes a file beside the whole one, and renames it when it is complete and on the disk.
    pub(super) async fn write(
        &self,
        path: &str,
        bytes: ObjectBytes,
    ) -> Result<(), BackupStoreError> {
        let part = self.part(path);
        let written = self.write_part(path, &part, bytes).await;
        if written.is_err() {
            let _ = fs::remove_file(&part).await;
        }
        written
    }

    async fn write_part(
        &self,
        path: &str,
        part: &Path,
        mut bytes: ObjectBytes,
    ) -> Result<(), BackupStoreError> {
        let failed = |source| BackupStoreError::Write { path: path.to_owned(), source };
        let whole = self.root.join(path);
        let folder = whole.parent().unwrap_or(&self.root);
        DirBuilder::new().recursive(true).mode(0o700).create(folder).await.map_err(failed)?;
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        let mut file = options.open(part).await.map_err(failed)?;
        while let Some(bytes) = bytes.next().await {
            let bytes = bytes.map_err(BackupStoreError::BrokeOff)?;
            file.write_all(&bytes).await.map_err(failed)?;
        }
        file.flush().await.map_err(failed)?;
        file.sync_all().await.map_err(failed)?;
        fs::rename(part, &whole).await.map_err(failed)?;
        // The folder may be new too.
        for folder in [folder, &self.root] {
            let folder = File::open(folder).await.map_err(failed)?;
            folder.sync_all().await.map_err(failed)?;
        }
        Ok(())
    }

    pub(super) async fn read(&self, path: &str) -> Result<Option<ObjectBytes>, BackupStoreError> {
        match File::open(self.root.join(path)).await {
            Ok(file) => {
                let parts = ReaderStream::with_capacity(file, PART);
                Ok(Some(parts.map_err(BoxError::from).boxed()))
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(source) => Err(BackupStoreError::Read { path: path.to_owned(), source }),
        }
    }

    /// Deletes a file, also one that was not written to its end, and its folder when that is empty.
    pub(super) async fn delete(&self, path: &str) -> Result<(), BackupStoreError> {
        let whole = self.root.join(path);
        for file in [&self.part(path), &whole] {
            let failed = |source| BackupStoreError::Delete { path: path.to_owned(), source };
            gone(fs::remove_file(file).await).map_err(failed)?;
        }
        if let Some(folder) = whole.parent().filter(|folder| **folder != self.root) {
            // It fails as long as other backups are in the folder.
            let _ = fs::remove_dir(folder).await;
        }
        Ok(())
    }

    fn part(&self, path: &str) -> PathBuf {
        self.root.join(format!("{path}.part"))
    }
}

/// A file that is gone already is no error.
fn gone(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use bytes::Bytes;
    use futures::stream;

    use super::*;

    fn bytes(parts: Vec<Result<&'static str, &'static str>>) -> ObjectBytes {
        let part = |part: Result<&'static str, &'static str>| {
            part.map(|text| Bytes::from_static(text.as_bytes())).map_err(BoxError::from)
        };
        stream::iter(parts.into_iter().map(part)).boxed()
    }

    async fn text(directory: &Directory, path: &str) -> Option<String> {
        let parts: Vec<Bytes> = directory.read(path).await.unwrap()?.try_collect().await.unwrap();
        Some(String::from_utf8(parts.concat()).unwrap())
    }

    fn files(root: &Path) -> usize {
        let folders = std::fs::read_dir(root).unwrap().flatten();
        folders.map(|folder| std::fs::read_dir(folder.path()).unwrap().count()).sum()
    }

    #[tokio::test]
    async fn an_object_is_there_when_all_of_it_was_written() {
        let root = tempfile::tempdir().unwrap();
        let directory = Directory::new(root.path());
        assert_eq!(text(&directory, "cluster/one").await, None);
        let broken = bytes(vec![Ok("half"), Err("the connection was closed")]);
        let error = directory.write("cluster/one", broken).await.unwrap_err();
        assert!(matches!(error, BackupStoreError::BrokeOff(_)), "{error}");
        assert_eq!((text(&directory, "cluster/one").await, files(root.path())), (None, 0));

        directory.write("cluster/one", bytes(vec![Ok("first "), Ok("version")])).await.unwrap();
        directory.write("cluster/one", bytes(vec![Ok("second")])).await.unwrap();
        assert_eq!(text(&directory, "cluster/one").await.as_deref(), Some("second"));
        let mode = |path: &str| {
            std::fs::metadata(root.path().join(path)).unwrap().permissions().mode() & 0o777
        };
        assert_eq!((mode("cluster"), mode("cluster/one")), (0o700, 0o600));
    }

    #[tokio::test]
    async fn the_folder_of_a_cluster_goes_with_its_last_object() {
        let root = tempfile::tempdir().unwrap();
        let directory = Directory::new(root.path());
        for path in ["cluster/one", "cluster/two"] {
            directory.write(path, bytes(vec![Ok("x")])).await.unwrap();
        }
        std::fs::write(root.path().join("cluster/two.part"), "y").unwrap();
        for (path, left) in [("cluster/one", true), ("cluster/two", false), ("cluster/two", false)]
        {
            directory.delete(path).await.unwrap();
            assert_eq!(root.path().join("cluster").exists(), left, "{path}");
        }
        assert!(root.path().exists());
    }
}
