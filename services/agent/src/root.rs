//! The folder below which the machine is seen.

use std::fs;
use std::path::{Path, PathBuf};

/// Where `/sys`, `/proc` and `/dev` are looked for: `/` on a machine, elsewhere a pretended one.
#[derive(Clone, Debug)]
pub struct Root(PathBuf);

/// More than any file of sysfs or procfs that the agent reads, and no more than it wants to hold.
const LONGEST: usize = 1 << 20;

impl Root {
    /// The machine below `folder`.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Root(folder.into())
    }

    /// Whether this is the machine the agent runs on, so that switching it off means just that.
    pub fn is_this_machine(&self) -> bool {
        self.0 == Path::new("/")
    }

    /// Where `path`, absolute on the machine, lies.
    pub fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = path.as_ref();
        self.0.join(path.strip_prefix("/").unwrap_or(path))
    }

    /// The text of a file without the white space around it; `None` if there is none or it is empty.
    pub fn text(&self, path: impl AsRef<Path>) -> Option<String> {
        let bytes = fs::read(self.path(path)).ok()?;
        let text = String::from_utf8_lossy(bytes.get(..LONGEST).unwrap_or(&bytes));
        let text = text.trim_matches(|c: char| c.is_whitespace() || c == '\0');
        (!text.is_empty()).then(|| text.to_owned())
    }

    /// A number a file holds.
    pub fn number<T: std::str::FromStr>(&self, path: impl AsRef<Path>) -> Option<T> {
        self.text(path)?.parse().ok()
    }

    /// The last part of what a symbolic link points to: the driver of a device, its subsystem.
    pub fn link_name(&self, path: impl AsRef<Path>) -> Option<String> {
        let target = fs::read_link(self.path(path)).ok()?;
        target.file_name()?.to_str().map(str::to_owned)
    }

    /// The names in a folder, sorted; empty if there is no such folder.
    pub fn names(&self, path: impl AsRef<Path>) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.path(path)) else { return Vec::new() };
        let mut names: Vec<String> =
            entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        names
    }
}
