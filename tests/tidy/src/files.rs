//! The files of the house.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A file that is text.
pub struct TextFile {
    /// Where it is, from the root on.
    pub path: String,
    /// What it holds.
    pub text: String,
}

/// The folder everything is in.
pub fn root() -> &'static Path {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.ancestors().nth(2).expect("this crate is two folders below the root")
}

/// Every file that is tracked, or would be if it were added; from the root on, sorted.
pub fn files() -> Vec<String> {
    // Whoever owns the checkout, reading its list of files runs nothing of it.
    let listed = Command::new("git")
        .args(["-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others"])
        .args(["--exclude-standard", "--deduplicate"])
        .current_dir(root())
        .output()
        .expect("git is installed");
    assert!(listed.status.success(), "git ls-files: {}", String::from_utf8_lossy(&listed.stderr));
    let listed = String::from_utf8(listed.stdout).expect("names of files are UTF-8");
    let mut files: Vec<String> = listed.split_terminator('\0').map(str::to_owned).collect();
    // A file that was deleted and not yet committed is listed and not there.
    files.retain(|file| root().join(file).exists());
    files.sort();
    files
}

/// Those of them that are text.
pub fn text_files() -> Vec<TextFile> {
    let read = |path: String| {
        let file: PathBuf = root().join(&path);
        let text = String::from_utf8(std::fs::read(file).ok()?).ok()?;
        Some(TextFile { path, text })
    };
    files().into_iter().filter_map(read).collect()
}
