//! `make test` reports what it skips, and never says that all passed after a skip.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;
use tidy::{assert_none, root, text_files};

/// `make` for these tests: each target does what its name says.
const MAKE: &str = r#"#!/bin/sh
case "$2" in
  passes) ;;
  hides) echo "SKIPPED browser: chromium is not installed" >>"$BEDPLATE_SKIPPED" ;;
  prints) echo "  SKIPPED: a rack, for it needs root" ;;
  does-both)
    echo "SKIPPED groff: it is not installed" >>"$BEDPLATE_SKIPPED"
    cat "$BEDPLATE_SKIPPED" ;;
  cannot-check) echo "NOT CHECKED: advisories, because their repository cannot be reached" ;;
  fails) exit 1 ;;
esac
"#;

struct Run {
    passed: bool,
    printed: String,
}

/// The account that runs `make test`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Runner {
    Person,
    Root,
    /// Root, with `CI` set.
    Ci,
}

impl Run {
    /// Runs these stages.
    fn of(stages: &[&str], runner: Runner) -> Run {
        let user = if runner == Runner::Person { 1000 } else { 0 };
        let folder = tempfile::tempdir().expect("a folder for the programs and logs of a run");
        program(&folder, "make", MAKE);
        program(&folder, "id", &format!("#!/bin/sh\necho {user}\n"));
        let path = std::env::var("PATH").expect("a PATH");
        let mut run = Command::new(root().join("tests/run.sh"));
        run.args(stages)
            .env("PATH", format!("{}:{path}", folder.path().display()))
            .env("BEDPLATE_LOGS", folder.path().join("log"));
        match runner {
            Runner::Ci => run.env("CI", "true"),
            Runner::Person | Runner::Root => run.env_remove("CI"),
        };
        let output = run.output().expect("bash runs the script");
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        Run { passed: output.status.success(), printed }
    }

    #[track_caller]
    fn ends(&self, passed: bool, last: &str) {
        assert_eq!(self.passed, passed, "{}", self.printed);
        assert_eq!(self.printed.lines().last(), Some(last), "{}", self.printed);
    }
}

fn program(folder: &TempDir, name: &str, text: &str) {
    let path: &Path = &folder.path().join(name);
    fs::write(path, text).expect("the program is written");
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("it can be run");
}

#[test]
fn a_run_without_a_skip_passes() {
    Run::of(&["passes", "passes | passes"], Runner::Ci).ends(true, "make test: all of it passed");
}

#[test]
fn a_skip_is_reported_whether_the_target_prints_it_or_not() {
    for (target, reason) in [
        ("hides", "SKIPPED browser: chromium is not installed"),
        ("prints", "SKIPPED: a rack, for it needs root"),
        ("does-both", "SKIPPED groff: it is not installed"),
    ] {
        let run = Run::of(&["passes", target], Runner::Person);
        run.ends(true, "make test: what was tried passed; 1 skipped");
        assert!(run.printed.lines().any(|line| line == reason), "{}", run.printed);
        Run::of(&["passes", target], Runner::Root)
            .ends(true, "make test: what was tried passed; 1 skipped");
        Run::of(&["passes", target], Runner::Ci).ends(false, "make test: FAILED");
    }
}

#[test]
fn a_run_that_could_not_check_everything_passes_and_says_so() {
    let run = Run::of(&["passes", "cannot-check"], Runner::Ci);
    run.ends(true, "make test: all tests passed; see above for what was NOT CHECKED");
    let reason = "NOT CHECKED: advisories, because their repository cannot be reached";
    let repeated = run.printed.lines().filter(|line| *line == reason).count();
    assert_eq!(repeated, 2, "by the target, and below the table: {}", run.printed);
    let skipped = Run::of(&["cannot-check", "hides"], Runner::Person);
    skipped.ends(true, "make test: what was tried passed; 1 skipped");
}

#[test]
fn a_failure_ends_the_run_after_its_stage() {
    let run = Run::of(&["fails passes", "hides"], Runner::Person);
    run.ends(false, "make test: FAILED");
    let row = |name: &str| run.printed.lines().find(|line| line.starts_with(name));
    assert!(row("passes ").is_some_and(|row| row.ends_with("passed")), "{}", run.printed);
    assert!(row("hides ").is_some_and(|row| row.ends_with("not run")), "{}", run.printed);
}

#[test]
fn no_test_is_ignored() {
    let files = text_files().into_iter().filter(|file| file.path.ends_with(".rs"));
    let ignored = files.flat_map(|file| {
        let lines = file.text.lines().enumerate();
        let found = lines.filter(|(_, line)| {
            let line = line.trim_start();
            ["#[ignore", "#[should_panic"].iter().any(|attribute| line.starts_with(attribute))
        });
        found.map(|(at, _)| format!("{}:{}", file.path, at + 1)).collect::<Vec<_>>()
    });
    assert_none("tests that are ignored or want a panic", ignored);
}
