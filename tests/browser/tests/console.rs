//! Tests of the console of `bedplate dev` in a browser.
#![expect(clippy::unwrap_used, reason = "an unwrap that fails fails the test")]

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

const HOME: &str = env!("CARGO_MANIFEST_DIR");

/// `bedplate dev` and its child processes, until the value is dropped.
struct Dev(Child);

impl Drop for Dev {
    fn drop(&mut self) {
        // This signal makes `bedplate dev` end its children; a kill would leave them running.
        let _ = Command::new("kill").arg(self.0.id().to_string()).status();
        let _ = self.0.wait();
    }
}

/// Returns the path of a program of this workspace, built with the same profile.
fn program(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let path = test.ancestors().nth(2).unwrap().join(name);
    assert!(path.is_file(), "{} is not there: run `cargo build` first", path.display());
    path
}

/// Returns the Python interpreter of the environment with Playwright, which is created at its first use.
fn python() -> PathBuf {
    let made = Command::new(Path::new(HOME).join("../real/venv.sh"))
        .arg(Path::new(HOME).join("requirements.txt"))
        .stderr(Stdio::inherit())
        .output()
        .unwrap();
    assert!(made.status.success(), "no Python environment: python3 with venv and PyPI are needed");
    Path::new(String::from_utf8(made.stdout).unwrap().trim()).join("bin/python")
}

#[test]
fn every_page_and_wizard_works_in_a_browser() {
    if !peers::installed("chromium") {
        return peers::skip("browser", "chromium is not installed");
    }
    let python = python();
    let folder = tempfile::tempdir().unwrap();
    let from = Path::new(HOME).join("../../deploy/dev");
    let mut child = Command::new(program("bedplate"))
        .args(["dev", "--from"])
        .arg(from)
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let _dev = Dev(child);
    let mut reported = String::new();
    while !reported.contains("In a browser: http://127.0.0.1:9510/") {
        let read = output.read_line(&mut reported).unwrap();
        assert!(read > 0, "bedplate dev ended: {reported}");
    }
    // `bedplate dev` continues to print, and must not block on a full pipe.
    std::thread::spawn(move || std::io::copy(&mut output.by_ref(), &mut std::io::sink()));
    let looked = Command::new(python)
        .arg(Path::new(HOME).join("browser/console.py"))
        .arg("-v")
        .env("CONSOLE", "http://127.0.0.1:9510")
        .env("STATE", folder.path().join(".state/dev"))
        .stdin(Stdio::null())
        .status()
        .unwrap();
    assert!(looked.success(), "the browser's tests failed");
}
