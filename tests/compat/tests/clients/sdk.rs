//! Tests of openstacksdk's bare metal proxy, which Ansible's modules, Bifrost, metalsmith and Nova use.

use std::path::Path;
use std::process::{Command, Stdio};

use compat::{Service, python};

#[test]
fn openstacksdk_passes_through_all_provision_states() {
    let service = Service::start();
    let run = Command::new(python::interpreter())
        .args(["-W", "ignore"])
        .arg(Path::new(python::HOME).join("clients/sdk.py"))
        .arg("--verbose")
        .env("ENDPOINT", &service.url)
        .stdin(Stdio::null())
        .output()
        .expect("Python can be started");
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
}
