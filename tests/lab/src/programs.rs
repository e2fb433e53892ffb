//! The programs that a test starts: those of this tree, or those of another build, such as the last release.

use std::path::PathBuf;

/// Where the programs are.
#[derive(Clone, Debug, Default)]
pub struct Programs {
    /// `None` stands for the programs that were built with the test.
    folder: Option<PathBuf>,
}

impl Programs {
    /// The programs of another build.
    pub fn in_folder(folder: PathBuf) -> Programs {
        Programs { folder: Some(folder) }
    }

    /// The path of a program.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.as_ref().map_or_else(|| compat::program(name), |folder| folder.join(name))
    }
}
