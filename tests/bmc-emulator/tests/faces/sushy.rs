//! sushy, OpenStack's Redfish client, drives every profile. sushy is installed only into the build folder.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::rack::{PASSWORD, PROFILES, TestMachine, USER};

const VERSION: &str = "5.14.0";

/// A Python with sushy, installed at the first use. `None` without Python or without a package index.
fn python() -> Option<PathBuf> {
    let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("sushy-{VERSION}"));
    let python = home.join("bin/python");
    let has_sushy = |python: &Path| {
        Command::new(python)
            .args(["-c", "import sushy"])
            .output()
            .is_ok_and(|run| run.status.success())
    };
    if has_sushy(&python) {
        return Some(python);
    }
    Command::new("python3")
        .args(["-m", "venv"])
        .arg(&home)
        .output()
        .ok()
        .filter(|run| run.status.success())?;
    let install = format!("sushy=={VERSION}");
    Command::new(&python).args(["-m", "pip", "install", "--quiet", &install]).output().ok()?;
    has_sushy(&python).then_some(python)
}

#[tokio::test]
async fn sushy_drives_every_profile() {
    let Some(python) = tokio::task::spawn_blocking(python).await.unwrap() else {
        let reason =
            format!("sushy {VERSION} cannot be installed from a Python package index here");
        return peers::skip("sushy_drives_every_profile", reason);
    };
    for profile in PROFILES {
        let bench = TestMachine::redfish(profile).await;
        let mut command = Command::new(&python);
        command.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/faces/sushy_drives.py"));
        command.args([&bench.url(""), USER, PASSWORD, profile]);
        let run = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
        assert!(run.status.success(), "{profile}\n{}", String::from_utf8_lossy(&run.stderr));
        assert!(bench.machine.power().borrow().on, "{profile}");
    }
}
