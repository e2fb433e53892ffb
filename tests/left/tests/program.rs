//! The program finds every planted text. A search that never finds anything would be a test that cannot fail.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

use std::fs;
use std::path::Path;
use std::process::Command;

use left::{canary, control};

fn left(path: &Path) -> (bool, String) {
    let run = Command::new(env!("CARGO_BIN_EXE_left")).arg(path).output().unwrap();
    (run.status.success(), String::from_utf8(run.stderr).unwrap())
}

#[test]
fn a_planted_canary_is_reported_with_its_file() {
    for canary in canary::ALL {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("baremetald.log");
        fs::write(&log, "INFO all is well\n").unwrap();
        fs::write(folder.path().join("planted"), control::planted()).unwrap();
        let (clean, said) = left(folder.path());
        assert!(clean && said.contains("searched 2 files") && said.contains(": 0 found"), "{said}");

        fs::write(&log, format!("WARN the BMC refused {canary}\n")).unwrap();
        let (clean, said) = left(folder.path());
        assert!(!clean && said.contains("baremetald.log: contains"), "{said}");
    }
}

#[test]
fn a_generated_secret_is_searched_for() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("left");
    let test = std::env::current_exe().unwrap();
    let keeps = Command::new(test)
        .args(["--exact", "keeps_files_for_another_test"])
        .env("BEDPLATE_LEFT", &folder)
        .output()
        .unwrap();
    assert!(keeps.status.success(), "{keeps:?}");
    let (clean, said) = left(&folder);
    assert!(clean && said.contains("1 generated secrets"), "{said}");
    fs::write(folder.join("log"), "x-auth-token: gAAAAAmade").unwrap();
    let (clean, said) = left(&folder);
    assert!(!clean && said.contains("log: contains \"gAAAAAmade\""), "{said}");
}

#[test]
fn a_folder_without_control_texts_fails() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("printed"), "test a ... ok\n").unwrap();
    let (clean, said) = left(folder.path());
    assert!(!clean && said.contains("nothing was kept"), "{said}");
    // The search fails if any single control text is missing.
    for control in control::ALL {
        let all: String = control::ALL.iter().filter(|it| **it != control).copied().collect();
        fs::write(folder.path().join("printed"), all).unwrap();
        let (clean, said) = left(folder.path());
        assert!(!clean && said.contains(control), "{said}");
    }
    fs::write(folder.path().join("printed"), control::planted()).unwrap();
    assert!(left(folder.path()).0);
}

/// Runs as a child process of `a_generated_secret_is_searched_for`, which sets `BEDPLATE_LEFT`. On its own this test keeps nothing and checks
/// nothing.
#[test]
fn keeps_files_for_another_test() {
    left::keep_text("note", b"nothing of worth");
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("state"), "nothing of worth").unwrap();
    left::keep(folder.path(), "service");
    left::add_secrets(["gAAAAAmade".to_owned(), "short".to_owned()]);
}

#[test]
fn a_missing_folder_fails() {
    let folder = tempfile::tempdir().unwrap();
    assert!(!left(&folder.path().join("none")).0);
}

#[test]
fn every_canary_is_used_by_a_test() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut sources = String::new();
    for layer in ["services", "tests"] {
        for member in fs::read_dir(workspace.join(layer)).unwrap() {
            let member = member.unwrap().path();
            if !member.ends_with("left") {
                read(&member, &mut sources);
            }
        }
    }
    let declared = include_str!("../src/canary.rs").lines();
    let names = declared.filter_map(|line| line.strip_prefix("pub const ")?.split(':').next());
    let names: Vec<&str> = names.filter(|name| *name != "ALL").collect();
    assert_eq!(names.len(), canary::ALL.len(), "{names:?}");
    for name in names.into_iter().filter(|name| !["PLANTED", "PRIVATE_KEY"].contains(name)) {
        assert!(sources.contains(&format!("canary::{name}")), "nobody is given {name}");
    }
}

fn read(folder: &Path, sources: &mut String) {
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            read(&path, sources);
        } else if path.extension().is_some_and(|it| it == "rs") {
            sources.push_str(&fs::read_to_string(&path).unwrap());
        }
    }
}
