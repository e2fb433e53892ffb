//! The files of the repository.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A text file of the repository.
pub struct TextFile {
    /// The path, relative to the root.
    pub path: String,
    pub text: String,
}

/// The root folder of the repository.
pub fn root() -> &'static Path {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.ancestors().nth(2).expect("this crate is two folders below the root")
}

/// Every file that git tracks or would track, relative to the root, sorted.
pub fn files() -> Vec<String> {
    // Listing files executes nothing of the checkout, so the owner of the checkout does not matter.
    let listed = Command::new("git")
        .args(["-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others"])
        .args(["--exclude-standard", "--deduplicate"])
        .current_dir(root())
        .output()
        .expect("git is installed");
    assert!(listed.status.success(), "git ls-files: {}", String::from_utf8_lossy(&listed.stderr));
    let listed = String::from_utf8(listed.stdout).expect("names of files are UTF-8");
    let mut files: Vec<String> = listed.split_terminator('\0').map(str::to_owned).collect();
    // git lists a file that was deleted but not committed, although it does not exist.
    files.retain(|file| root().join(file).exists());
    files.sort();
    files
}

/// The files that are UTF-8 text.
pub fn text_files() -> Vec<TextFile> {
    let read = |path: String| {
        let file: PathBuf = root().join(&path);
        let text = String::from_utf8(std::fs::read(file).ok()?).ok()?;
        Some(TextFile { path, text })
    };
    files().into_iter().filter_map(read).collect()
}
