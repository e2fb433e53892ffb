//! The state folder: only one `bedplate dev` uses it at a time, and the next run continues with its content.

use std::fs::{self, File, TryLockError};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use tokio::time::{Instant, sleep};

/// How long child processes of a killed run may take to end.
const PATIENCE: Duration = Duration::from_secs(3);

/// The file with the completed chapters, one on each line.
const TOLD: &str = "told";

/// A locked state folder.
pub(super) struct Folder {
    path: PathBuf,
    lock: File,
}

/// The chapters of the demonstration, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DemoStep {
    /// The rack is enrolled and inspected.
    Inspected,
    /// The rack's nodes are hypervisors of the cloud.
    Joined,
    /// A tenant has a cluster.
    Cluster,
    /// A tenant has a VM.
    Machine,
}

impl DemoStep {
    const fn as_str(self) -> &'static str {
        match self {
            DemoStep::Inspected => "inspected",
            DemoStep::Joined => "joined",
            DemoStep::Cluster => "cluster",
            DemoStep::Machine => "machine",
        }
    }
}

impl Folder {
    /// Creates the folder if it is missing, and locks it. Returns an error if another run holds the lock.
    pub(super) async fn take(path: &Path) -> anyhow::Result<Folder> {
        fs::create_dir_all(path).with_context(|| format!("cannot create {}", path.display()))?;
        let lock = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
        let deadline = Instant::now() + PATIENCE;
        loop {
            match lock.try_lock() {
                Ok(()) => return Ok(Folder { path: path.to_owned(), lock }),
                Err(TryLockError::WouldBlock) if Instant::now() < deadline => {
                    sleep(Duration::from_millis(50)).await;
                }
                Err(TryLockError::WouldBlock) => bail!(
                    "another `bedplate dev` uses the state folder {}. Hint: stop it with Ctrl-C",
                    path.display()
                ),
                Err(TryLockError::Error(why)) => {
                    return Err(why).with_context(|| format!("cannot lock {}", path.display()));
                }
            }
        }
    }

    /// Returns a handle to the lock for a child process to inherit.
    pub(super) fn lock(&self) -> anyhow::Result<File> {
        self.lock.try_clone().context("cannot duplicate the lock of the state folder")
    }

    /// Removes everything in the folder.
    pub(super) fn clear(&self) -> anyhow::Result<()> {
        let cannot = || format!("cannot empty {}", self.path.display());
        for entry in fs::read_dir(&self.path).with_context(cannot)? {
            let entry = entry.with_context(cannot)?;
            let is_folder = entry.file_type().with_context(cannot)?.is_dir();
            let path = entry.path();
            let removed =
                if is_folder { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
            removed.with_context(|| format!("cannot remove {}", path.display()))?;
        }
        Ok(())
    }

    /// Whether the folder is empty, so that no earlier run used it.
    pub(super) fn is_new(&self) -> anyhow::Result<bool> {
        let mut entries = fs::read_dir(&self.path)
            .with_context(|| format!("cannot read {}", self.path.display()))?;
        Ok(entries.next().is_none())
    }

    /// Whether an earlier run or this one completed a chapter.
    pub(super) fn is_complete(&self, chapter: DemoStep) -> anyhow::Result<bool> {
        let path = self.path.join(TOLD);
        let text = match fs::read_to_string(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
            read => read.with_context(|| format!("cannot read {}", path.display()))?,
        };
        Ok(text.lines().any(|line| line == chapter.as_str()))
    }

    pub(super) fn mark_complete(&self, chapter: DemoStep) -> anyhow::Result<()> {
        let path = self.path.join(TOLD);
        let file = File::options().create(true).append(true).open(&path);
        let written = file.and_then(|mut file| writeln!(file, "{}", chapter.as_str()));
        written.with_context(|| format!("cannot write {}", path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_run_has_the_folder_at_a_time_and_the_next_finds_completed_chapters() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("dev");
        let first = Folder::take(&path).await.unwrap();
        assert!(first.is_new().unwrap() && !first.is_complete(DemoStep::Joined).unwrap());
        first.mark_complete(DemoStep::Joined).unwrap();
        // A child process keeps the lock for a while.
        let shared = first.lock().unwrap();
        drop(first);
        assert!(File::open(&path).unwrap().try_lock().is_err());
        drop(shared);
        let second = Folder::take(&path).await.unwrap();
        assert!(second.is_complete(DemoStep::Joined).unwrap());
        assert!(!second.is_complete(DemoStep::Cluster).unwrap());
        second.clear().unwrap();
        assert!(second.is_new().unwrap());
    }
}
