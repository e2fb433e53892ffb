//! Where the programs under test are.

use std::env;
use std::path::PathBuf;

/// The path of one of this workspace's programs, built with the same profile as the running test.
///
/// A test cannot depend on another package's program, so it has to be there already.
#[track_caller]
pub fn program(name: &str) -> PathBuf {
    let test = env::current_exe().expect("a running program knows its path");
    // target/PROFILE/deps/test-HASH
    let folder = test.ancestors().nth(2).expect("a test lies two folders below target");
    let path = folder.join(name);
    assert!(path.is_file(), "{} is not there: run `cargo build` first", path.display());
    path
}
