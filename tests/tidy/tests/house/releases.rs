//! Checks that the list of releases, the changelog and the version of the workspace agree.

use std::fs;

use tidy::{assert_none, root};

/// A version, which is compared by its numbers.
type Version = [u32; 3];

/// A line of `deploy/releases.txt`.
struct Release<'t> {
    line: &'t str,
    version: Option<Version>,
    commit: &'t str,
}

fn version(text: &str) -> Option<Version> {
    let numbers: Option<Vec<u32>> = text.split('.').map(|part| part.parse().ok()).collect();
    numbers?.try_into().ok()
}

fn releases(text: &str) -> Vec<Release<'_>> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let read = |line| {
        let (number, commit) = str::split_once(line, ' ').unwrap_or((line, ""));
        Release { line, version: version(number), commit }
    };
    lines.map(read).collect()
}

/// The reasons why the releases do not fit the changelog and the version of the workspace.
fn objections(releases: &[Release<'_>], changelog: &str, workspace: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut newer = version(workspace);
    for Release { line, version, commit } in releases {
        let is_commit = commit.len() == 40 && commit.chars().all(|it| it.is_ascii_hexdigit());
        if version.is_none() || !is_commit {
            wrong.push(format!("{line:?} is not a version and a commit"));
        }
        if *version >= newer {
            wrong.push(format!("{line:?} is not older than the line before, or than Cargo.toml"));
        }
        newer = *version;
        let number = line.split(' ').next().unwrap_or_default();
        let section = changelog.split_once(&format!("\n## {number} - ")).map(|(_, rest)| rest);
        let section = section.and_then(|rest| rest.split("\n## ").next());
        if !section.is_some_and(|text| text.contains("Step back:")) {
            wrong.push(format!("CHANGELOG.md has no section of {number} with its step back"));
        }
    }
    wrong
}

#[test]
fn releases_have_sections_and_are_older_than_the_workspace() {
    let read = |path| fs::read_to_string(root().join(path)).expect("the file is there");
    let (listed, changelog, manifest) =
        (read("deploy/releases.txt"), read("CHANGELOG.md"), read("Cargo.toml"));
    let package = manifest.split("[workspace.package]\nversion = \"").nth(1);
    let workspace = package.and_then(|rest| rest.split('"').next()).expect("a version");
    assert!(version(workspace).is_some(), "{workspace}");
    assert!(changelog.contains("\n## Unreleased\n"), "CHANGELOG.md has no section for changes");
    assert_none("wrong releases", objections(&releases(&listed), &changelog, workspace));
}

#[test]
fn a_wrong_release_is_found() {
    let commit = "0123456789abcdef0123456789abcdef01234567";
    let changelog = "# C\n\n## Unreleased\n\n## 0.2.0 - 2027-01-02\n\nStep back: possible.\n\n## 0.1.0 - 2026-12-01\n\nStep back: none.\n";
    let count =
        |text: &str, workspace: &str| objections(&releases(text), changelog, workspace).len();
    let both = format!("# two\n0.2.0 {commit}\n0.1.0 {commit}\n");
    assert_eq!(count(&both, "0.3.0"), 0);
    assert_eq!(count("# none\n", "0.1.0"), 0);
    assert_eq!(count(&both, "0.2.0"), 1, "the workspace has the version of a release");
    assert_eq!(count(&format!("0.1.0 {commit}\n0.2.0 {commit}\n"), "0.3.0"), 1);
    assert_eq!(count("0.1.0 abc\n", "0.3.0"), 1);
    assert_eq!(count(&format!("0.2.1 {commit}\n"), "0.3.0"), 1, "it has no section");
}
