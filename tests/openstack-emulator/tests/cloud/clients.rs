//! The public clients use all services, unmodified.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use openstack_emulator::{Emulator, Settings, Times};

const HOME: &str = env!("CARGO_MANIFEST_DIR");

/// A Python with the clients, installed at the first use. `None` without Python or without a package index.
fn python() -> Option<PathBuf> {
    let mut venv = Command::new(Path::new(HOME).join("../real/venv.sh"));
    venv.arg(Path::new(HOME).join("requirements.txt"))
        .stdin(Stdio::null())
        .stderr(Stdio::inherit());
    let made = venv.output().ok().filter(|made| made.status.success())?;
    Some(Path::new(String::from_utf8(made.stdout).ok()?.trim()).join("bin/python"))
}

async fn drive(script: &str) {
    let Some(python) = tokio::task::spawn_blocking(python).await.unwrap() else {
        return peers::skip(script, "the public clients cannot be installed from a package index");
    };
    // Slow enough that a client in Python sees a load balancer in PENDING_UPDATE.
    let times = Times { load_balancer_child: 400, ..Times::default() };
    let settings = Settings { times, ..Settings::default() };
    let emulator = Emulator::start(settings).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let clouds = folder.path().join("clouds.yaml");
    std::fs::write(&clouds, emulator.cloud.clouds_yaml()).unwrap();
    let mut command = Command::new(python);
    command.arg(Path::new(HOME).join("tests/cloud").join(script));
    // The environment of the caller must not influence the test.
    command
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", "/nonexistent");
    command.env("OS_CLIENT_CONFIG_FILE", &clouds);
    let run = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
    let (out, err) = (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    assert!(run.status.success(), "{out}\n{err}");
    let alice = emulator
        .cloud
        .objects(openstack_emulator::Kind::Project)
        .into_iter()
        .find(|one| one.text("name") == "tenant-a")
        .unwrap();
    emulator.cloud.wait_until(|cloud| cloud.objects_of(&alice.id).is_empty().then_some(())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn openstacksdk_drives_everything_and_leaves_nothing() {
    drive("drive_sdk.py").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_line_drives_everything_and_leaves_nothing() {
    drive("drive_cli.py").await;
}
