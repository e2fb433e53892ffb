//! The program finds what was planted: a search that never finds would be a test that cannot fail.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

use std::fs;
use std::path::Path;
use std::process::Command;

use left::canary;

fn left(path: &Path) -> (bool, String) {
    let run = Command::new(env!("CARGO_BIN_EXE_left")).arg(path).output().unwrap();
    (run.status.success(), String::from_utf8(run.stderr).unwrap())
}

#[test]
fn a_planted_canary_is_found_and_said_where() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("baremetald.log");
    fs::write(&log, "INFO all is well\n").unwrap();
    let (clean, said) = left(folder.path());
    assert!(clean && said.contains("in 1 files: 0 found"), "{said}");

    fs::write(&log, format!("WARN the BMC refused {}\n", canary::PLANTED)).unwrap();
    let (clean, said) = left(folder.path());
    assert!(!clean && said.contains("baremetald.log: holds"), "{said}");
}

#[test]
fn a_folder_that_is_not_there_is_no_clean_one() {
    let folder = tempfile::tempdir().unwrap();
    assert!(!left(&folder.path().join("none")).0);
}
