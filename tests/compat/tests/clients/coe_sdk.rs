//! Tests of openstacksdk's container infrastructure proxy, which Ansible's modules use.

use std::path::Path;
use std::process::{Command, Stdio};

use compat::{Service, python};

#[test]
fn openstacksdk_asks_for_clusters() {
    let service = Service::clusters();
    let run = Command::new(python::interpreter())
        .args(["-W", "ignore"])
        .arg(Path::new(python::HOME).join("clients/coe_sdk.py"))
        .arg("--verbose")
        .env("ENDPOINT", &service.url)
        .stdin(Stdio::null())
        .output()
        .expect("Python can be started");
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
}
