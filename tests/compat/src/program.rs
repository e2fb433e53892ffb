//! Paths of the programs under test.

use std::env;
use std::path::PathBuf;

/// Returns the path of a program of this workspace, built with the same profile as the running test or program.
///
/// A test cannot depend on another package's program, so the program must have been built before.
#[track_caller]
pub fn program(name: &str) -> PathBuf {
    let own = env::current_exe().expect("a running program knows its path");
    // A test is target/PROFILE/deps/test-HASH, and a program is target/PROFILE/program.
    let folder = own.parent().expect("a program lies in a folder");
    let folder = folder.parent().filter(|_| folder.ends_with("deps")).unwrap_or(folder);
    let path = folder.join(name);
    assert!(path.is_file(), "{} is not there: run `cargo build` first", path.display());
    path
}
