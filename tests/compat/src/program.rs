//! Paths of the programs under test.

use std::env;
use std::path::PathBuf;

/// Returns the path of a program of this workspace, built with the same profile as the running test.
///
/// A test cannot depend on another package's program, so the program must have been built before.
#[track_caller]
pub fn program(name: &str) -> PathBuf {
    let test = env::current_exe().expect("a running program knows its path");
    // The test is target/PROFILE/deps/test-HASH.
    let folder = test.ancestors().nth(2).expect("a test lies two folders below target");
    let path = folder.join(name);
    assert!(path.is_file(), "{} is not there: run `cargo build` first", path.display());
    path
}
