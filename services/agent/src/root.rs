//! The directory tree in which the agent sees the machine.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

/// The parent directory of `/sys`, `/proc` and `/dev`: `/` on a machine, another directory for an emulated one.
#[derive(Clone, Debug)]
pub struct Root(PathBuf);

/// The most bytes of a file that are read. Every file of sysfs and procfs that the agent reads is shorter.
const LONGEST: u64 = 1 << 20;

impl Root {
    /// Makes the root of the machine below `folder`.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Root(folder.into())
    }

    /// Whether the root is the machine that the agent runs on: only then may the agent switch the machine off.
    pub fn is_this_machine(&self) -> bool {
        self.0 == Path::new("/")
    }

    /// Returns the place of `path`, which is absolute on the machine.
    pub fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = path.as_ref();
        self.0.join(path.strip_prefix("/").unwrap_or(path))
    }

    /// Returns the text of a file, trimmed; `None` if the file is missing or empty.
    pub fn text(&self, path: impl AsRef<Path>) -> Option<String> {
        let mut bytes = Vec::new();
        File::open(self.path(path)).ok()?.take(LONGEST).read_to_end(&mut bytes).ok()?;
        let text = String::from_utf8_lossy(&bytes);
        let text = text.trim_matches(|c: char| c.is_whitespace() || c == '\0');
        (!text.is_empty()).then(|| text.to_owned())
    }

    /// Returns the number in a file.
    pub fn number<T: std::str::FromStr>(&self, path: impl AsRef<Path>) -> Option<T> {
        self.text(path)?.parse().ok()
    }

    /// Returns the last part of a symbolic link's target: the driver of a device, its subsystem.
    pub fn link_name(&self, path: impl AsRef<Path>) -> Option<String> {
        let target = fs::read_link(self.path(path)).ok()?;
        target.file_name()?.to_str().map(str::to_owned)
    }

    /// Returns the names in a directory, sorted; empty if there is no such directory.
    pub fn names(&self, path: impl AsRef<Path>) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.path(path)) else { return Vec::new() };
        let mut names: Vec<String> =
            entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Folder;

    #[test]
    fn only_the_beginning_of_a_file_is_read() {
        let folder = Folder::new();
        let root = Root::new(folder.path());
        fs::write(root.path("/endless"), "begin").unwrap();
        // More than the memory of any machine. The rest of the file is NUL, which `text` trims.
        let file = File::options().append(true).open(root.path("/endless")).unwrap();
        file.set_len(1 << 43).unwrap();
        assert_eq!(root.text("/endless").as_deref(), Some("begin"));
        fs::write(root.path("/empty"), "\0\n").unwrap();
        assert_eq!(root.text("/empty"), None);
        assert_eq!(root.text("/missing"), None);
    }
}
