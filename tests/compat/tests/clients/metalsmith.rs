//! Tests of `metalsmith`: reserves a node by an allocation, installs it from an image's URL, lists it and releases it.

use std::path::Path;
use std::process::Command;

use compat::{Cloud, Service, python};
use serde_json::{Value, json};

/// Runs a command that must succeed; returns its output.
#[track_caller]
fn metalsmith(clouds: &Path, words: &[&str]) -> String {
    let program = python::tool("metalsmith-requirements.txt", "metalsmith");
    let output = Command::new(program)
        .args(["--os-cloud", "admin"])
        .args(words)
        .env_clear()
        .env("OS_CLIENT_CONFIG_FILE", clouds)
        .env("HOME", "/nonexistent")
        .output()
        .expect("metalsmith can be started");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "metalsmith {}\n{said}", words.join(" "));
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn a_node_is_reserved_installed_listed_and_released() {
    let cloud = Cloud::start();
    let service = Service::machines_with(&cloud.keystone());
    cloud.register("baremetal", &service.url);
    let mut admin = cloud.client("admin");
    let mut create = vec!["baremetal", "node", "create", "--driver", "fake-hardware"];
    create.extend(["--name", "n", "--resource-class", "gpu"]);
    for interface in ["boot", "deploy", "inspect", "management", "power"] {
        create.extend([format!("--{interface}-interface").leak(), "fake"]);
    }
    admin.done(&create);
    admin.done(&["baremetal", "node", "manage", "n", "--wait", "60"]);
    admin.done(&["baremetal", "node", "add", "trait", "n", "CUSTOM_FAST"]);
    admin.done(&["baremetal", "node", "provide", "n", "--wait", "60"]);
    admin.done(&["baremetal", "node", "power", "off", "n"]);

    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("key.pub");
    std::fs::write(&key, "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ2 ann@desk\n").unwrap();
    let clouds = cloud.clouds_yaml();
    let image = "http://images.example/system.raw";
    let wish = ["deploy", "--resource-class", "gpu", "--trait", "CUSTOM_FAST"];
    let checksum = "5d41402abc4b2a76b9719d911017c592";
    let what = ["--image", image, "--image-checksum", checksum, "--hostname", "job"];
    let who = ["--ssh-public-key", key.to_str().unwrap(), "--wait", "60"];
    metalsmith(&clouds, &[&wish[..], &what, &who].concat());

    let listed = metalsmith(&clouds, &["--format", "json", "list"]);
    let listed: Value = serde_json::from_str(&listed).unwrap();
    let (job, node) = (&listed["job"], admin.json(&["baremetal", "node", "show", "n"]));
    assert_eq!((&job["state"], &job["uuid"]), (&json!("active"), &node["uuid"]));
    assert_eq!(job["allocation"]["traits"], json!(["CUSTOM_FAST"]));
    assert_eq!(node["allocation_uuid"], job["allocation"]["id"]);
    assert_eq!(node["instance_info"]["image_source"], image);
    assert_eq!(node["instance_info"]["configdrive"], "******");

    metalsmith(&clouds, &["undeploy", "job", "--wait", "60"]);
    let node = admin.json(&["baremetal", "node", "show", "n"]);
    assert_eq!(
        (&node["provision_state"], &node["allocation_uuid"]),
        (&json!("available"), &json!(null))
    );
    assert_eq!(admin.json(&["baremetal", "allocation", "list"]), json!([]));
}
