//! Tests of everything that the agent does besides writing images.

#![expect(clippy::unwrap_used, reason = "an unwrap that fails fails the test")]

#[expect(dead_code, reason = "each test program uses its part of the harness")]
mod harness;

use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine as _;
use harness::images;
use harness::{Machine, Reply, Server, Setup, TOKEN, until};
use serde_json::{Value, json};

#[test]
fn an_inspection_reports_the_machine() {
    let machine = Machine::with(Setup {
        arguments: "ipa-inspection-callback-url=CONDUCTOR/v1/continue_inspection BOOTIF=01-52-54-00-78-00-01 \
                    ipa-inspection-collectors=default,logs"
            .to_owned(),
        ..Setup::default()
    });
    let found = machine.posted("/v1/continue_inspection");
    assert_eq!(found["boot_interface"], "52:54:00:78:00:01");
    let inventory = &found["inventory"];
    assert_eq!(inventory["interfaces"][0]["mac_address"], "52:54:00:78:00:01");
    assert_eq!(inventory["interfaces"][0]["has_carrier"], true);
    assert_eq!(inventory["cpu"]["count"], 2);
    assert_eq!(inventory["memory"]["total"], 2048 * 1024);
    assert_eq!(inventory["disks"][0]["size"], 32 << 20);
    assert_eq!(inventory["disks"][0]["serial"], "disk-1");
    assert_eq!(inventory["boot"]["current_boot_mode"], "bios");
    assert_eq!(found["root_disk"]["name"], "/dev/vda");
    assert_eq!(found["error"], Value::Null);
    assert!(found["logs"].as_str().unwrap().len() > 20);
}

/// Ironic without fast-track names nothing but the address of the inventory, and switches the machine off once it has the inventory.
#[test]
fn an_inspection_needs_no_address_of_the_conductor() {
    let mut started = Machine::launch(&Setup {
        arguments: "ipa-inspection-callback-url=CONDUCTOR/v1/continue_inspection".to_owned(),
        ..Setup::default()
    });
    let found = started.posted("/v1/continue_inspection");
    assert_eq!(found["inventory"]["disks"][0]["serial"], "disk-1");
    assert_eq!(started.ends_within(Duration::from_secs(2)), None);
}

#[test]
fn only_the_conductor_is_obeyed() {
    let machine = Machine::start();
    for query in ["", "agent_token=", "agent_token=wrong", &format!("agent_token={TOKEN}x")] {
        let (status, body) = machine.post(query, "standby.sync", json!({}));
        assert_eq!(status, 401, "{query}");
        assert_eq!(body["faultcode"], "Client");
        assert_eq!(machine.get(&format!("/v1/commands/?{query}")).0, 401);
    }
    assert_eq!(machine.get("/v1/status").1["version"], "13.0.0");
}

/// A conductor that was paused, or whose request was held up by the network, may send a command after another conductor took over.
#[test]
fn a_command_for_an_older_record_is_refused() {
    let machine = Machine::start();
    let sync = |version: &str| {
        let query = format!("wait=true&agent_token={TOKEN}{version}");
        machine.post(&query, "standby.sync", json!({}))
    };
    assert_eq!(sync("&record_version=7").0, 200);
    for late in [6, 7] {
        let (status, body) = sync(&format!("&record_version={late}"));
        assert_eq!(status, 409, "{body}");
        let why = format!(
            "sync was given for version {late} of the node's record, but the agent has a command for version 7"
        );
        assert_eq!(body["faultstring"], why);
    }
    assert_eq!(sync("&record_version=9").0, 200);
    // Ironic's conductor tells no version.
    assert_eq!(sync("").0, 200);
    assert_eq!(sync("&record_version=8").0, 409);
    let all = machine.get(&format!("/v1/commands/?agent_token={TOKEN}")).1;
    assert_eq!(all["commands"].as_array().unwrap().len(), 3);
}

#[test]
fn an_unknown_command_is_refused_with_a_reason() {
    let machine = Machine::start();
    let query = format!("wait=true&agent_token={TOKEN}");
    let (status, body) = machine.post(&query, "standby.dance", json!({}));
    assert_eq!(status, 400);
    assert_eq!(body["faultstring"], "unknown command \"standby.dance\"");
    let step = json!({"step": {"step": "write_image", "args": {"image_info": {}}}});
    let (status, body) = machine.post(&query, "deploy.execute_deploy_step", step);
    assert_eq!(status, 400);
    assert!(body["faultstring"].as_str().unwrap().contains("missing field `urls`"), "{body}");
    assert_eq!(machine.get(&format!("/v1/commands/none?agent_token={TOKEN}")).0, 404);
}

#[test]
fn steps_of_another_version_are_not_run() {
    let machine = Machine::start();
    let clean = machine.run("clean.get_clean_steps", json!({"node": {}, "ports": []}));
    let steps = &clean["command_result"]["clean_steps"]["GenericHardwareManager"];
    assert_eq!(steps[0]["step"], "erase_devices_metadata");
    let listed: Vec<_> = steps.as_array().unwrap().iter().map(|it| &it["step"]).collect();
    assert_eq!(listed[2..], ["delete_configuration", "create_configuration"]);
    let version = clean["command_result"]["hardware_manager_version"].clone();
    let deploy = machine.run("deploy.get_deploy_steps", json!({"node": {}, "ports": []}));
    let steps = &deploy["command_result"]["deploy_steps"]["GenericHardwareManager"];
    assert_eq!(steps[0]["step"], "write_image");
    assert_eq!(
        (&steps[1]["step"], &steps[1]["interface"]),
        (&json!("apply_configuration"), &json!("raid"))
    );

    let step = json!({"step": {"step": "erase_devices_metadata", "interface": "deploy"}, "clean_version": version});
    let ended = machine.run("clean.execute_clean_step", step.clone());
    assert_eq!(ended["command_status"], "SUCCEEDED");
    let mut other = step;
    other["clean_version"] = json!({"generic_hardware_manager": "0.1"});
    let ended = machine.run("clean.execute_clean_step", other);
    assert_eq!(ended["command_status"], "CLEAN_VERSION_MISMATCH");
}

#[test]
fn erasing_leaves_a_record_and_a_blank_disk() {
    let machine = Machine::start();
    let step = |name| json!({"step": {"step": name, "interface": "deploy"}});
    let ended = machine.run("clean.execute_clean_step", step("erase_devices_metadata"));
    let record = &ended["command_result"]["clean_result"][0];
    assert_eq!((&record["serial"], &record["method"]), (&json!("disk-1"), &json!("metadata")));
    let disk = machine.disk();
    harness::assert_unbootable(&disk);
    assert!(disk[10 << 20..].iter().any(|byte| *byte != 0));

    let ended = machine.run("clean.execute_clean_step", step("erase_devices"));
    assert_eq!(ended["command_result"]["clean_result"][0]["method"], "overwrite");
    assert_eq!(ended["command_progress"]["done_bytes"], 32 << 20);
    assert!(machine.disk().iter().all(|byte| *byte == 0));
}

#[test]
fn a_disk_that_the_node_skips_is_left_alone() {
    let machine = Machine::start();
    let before = machine.disk();
    let node = json!({"properties": {"skip_block_devices": [{"name": "/dev/vda"}]}});
    for name in ["erase_devices_metadata", "erase_devices"] {
        let step = json!({"step": {"step": name, "interface": "deploy"}, "node": node});
        let ended = machine.run("clean.execute_clean_step", step);
        assert_eq!(ended["command_status"], "SUCCEEDED", "{ended}");
        assert_eq!(ended["command_result"]["clean_result"], json!([]));
    }
    let info = images::info("http://127.0.0.1:9/image", "raw", &images::disk());
    let mut parameters = harness::write_image(info, Value::Null);
    parameters["node"] = node;
    let refused = machine.run("deploy.execute_deploy_step", parameters);
    harness::assert_failed(&refused, "DeviceNotFound", "the machine has no disk at all");

    let node = json!({"properties": {"skip_block_devices": "vda"}});
    let step = json!({"step": {"step": "erase_devices", "interface": "deploy"}, "node": node});
    let refused = machine.run("clean.execute_clean_step", step);
    let sentence = "skip_block_devices of the node's properties: it must be a list.";
    harness::assert_failed(&refused, "DeviceNotFound", sentence);
    assert!(machine.disk() == before);
}

#[test]
fn the_file_system_of_a_cluster_is_erased_on_demand_only() {
    let step = json!({"step": {"step": "erase_devices_metadata", "interface": "deploy"}});
    let with_vmfs = |arguments: &str| {
        let machine = Machine::with(Setup { arguments: arguments.to_owned(), ..Setup::default() });
        let mut disk = machine.disk();
        disk[446..462].copy_from_slice(&[0, 0, 0, 0, 0xfb, 0, 0, 0, 0, 8, 0, 0, 0, 8, 0, 0]);
        disk[510..512].copy_from_slice(&[0x55, 0xaa]);
        std::fs::write(machine.path("dev/vda"), &disk).unwrap();
        (machine, disk)
    };
    let (machine, disk) = with_vmfs("");
    let refused = machine.run("clean.execute_clean_step", step.clone());
    let sentence = "/dev/vda has the file system VMFS, which other machines may use now.";
    harness::assert_failed(&refused, "ProtectedDeviceError", sentence);
    assert!(machine.disk() == disk);

    let (machine, _) = with_vmfs("ipa-guard-special-filesystems=0");
    let ended = machine.run("clean.execute_clean_step", step);
    assert_eq!(ended["command_status"], "SUCCEEDED", "{ended}");
    harness::assert_unbootable(&machine.disk());
}

#[test]
fn a_long_command_reports_progress_and_excludes_others() {
    let machine = Machine::start();
    let served = images::disk();
    let (go_on, wait) = channel::<()>();
    let (bytes, wait) = (served.clone(), Arc::new(Mutex::new(wait)));
    let server = Server::start(move |request| {
        let mut reply = Reply::file(&request, &bytes);
        let wait = wait.clone();
        // The writer collects 4 MiB before it writes.
        let stall = move || wait.lock().unwrap().recv().unwrap_or_default();
        reply.stall = Some((6 << 20, Box::new(stall)));
        reply
    });
    let info = images::info(&server.url("/image"), "raw", &served);
    let parameters = harness::write_image(info, Value::Null);
    let query = format!("wait=false&agent_token={TOKEN}");
    let (_, started) = machine.post(&query, "deploy.execute_deploy_step", parameters);
    assert_eq!(started["command_status"], "RUNNING");
    let id = started["id"].as_str().unwrap();
    let half = until("half the image is written", || {
        let progress = machine.command(id)["command_progress"].clone();
        (progress["done_bytes"].as_u64() >= Some(4 << 20)).then_some(progress)
    });
    assert_eq!(half["total_bytes"], served.len() as u64);
    harness::assert_unbootable(&machine.disk());
    let (status, body) = machine.post(&query, "standby.sync", json!({}));
    assert_eq!(status, 409);
    assert_eq!(body["faultstring"], "the agent is busy with execute_deploy_step");

    go_on.send(()).unwrap();
    let ended = machine.get(&format!("/v1/commands/{id}?wait=true&agent_token={TOKEN}")).1;
    assert_eq!(ended["command_status"], "SUCCEEDED", "{ended}");
    machine.posted("/v1/heartbeat/node-1");
    let all = machine.get(&format!("/v1/commands/?agent_token={TOKEN}")).1;
    assert_eq!(all["commands"].as_array().unwrap().len(), 1);
}

#[test]
fn a_uefi_machine_gets_a_config_drive_and_a_boot_entry() {
    let machine = Machine::with(Setup { uefi: true, ..Setup::default() });
    let mut image = vec![0; 4 << 20];
    image[446..462].copy_from_slice(&[0, 0, 0, 0, 0xef, 0, 0, 0, 0, 8, 0, 0, 0, 8, 0, 0]);
    image[510..512].copy_from_slice(&[0x55, 0xaa]);
    let bytes = image.clone();
    let server = Server::start(move |request| Reply::file(&request, &bytes));
    let drive = base64::engine::general_purpose::STANDARD.encode(images::gzip(b"settings"));
    let info = images::info(&server.url("/image"), "raw", &image);
    let ended = machine.run("deploy.execute_deploy_step", harness::write_image(info, json!(drive)));
    assert_eq!(ended["command_status"], "SUCCEEDED", "{ended}");
    assert!(machine.disk()[31 << 20..].starts_with(b"settings"));

    let ended = machine.run("image.install_bootloader", json!({"root_uuid": null}));
    assert_eq!(ended["command_result"]["boot_entry"], "Boot0000", "{ended}");
    let order = "sys/firmware/efi/efivars/BootOrder-8be4df61-93ca-11d2-aa0d-00e098032b8c";
    assert_eq!(std::fs::read(machine.path(order)).unwrap(), [7, 0, 0, 0, 0, 0]);
}

#[test]
fn the_machine_powers_off_or_restarts_as_commanded() {
    let machine = Machine::start();
    assert_eq!(machine.run("standby.sync", json!({}))["command_status"], "SUCCEEDED");
    assert_eq!(machine.run("standby.power_off", json!({}))["command_status"], "SUCCEEDED");
    assert_eq!(machine.exit(), 0);
    let machine = Machine::start();
    machine.run("standby.run_image", json!({}));
    assert_eq!(machine.exit(), 64);
}

/// As ironic-python-agent does, the agent answers, and then ends with its API and its heartbeats.
#[test]
fn a_rescue_sets_the_password_and_ends_the_agent() {
    let machine = Machine::start();
    let refused = machine.run("rescue.finalize_rescue", json!({"hashed": true}));
    assert_eq!(refused["command_status"], "FAILED");
    assert_eq!(refused["command_error"]["type"], "RescueError");
    assert_eq!(machine.run("standby.sync", json!({}))["command_status"], "SUCCEEDED");
    let password = json!({"rescue_password": "$6$salt$hash", "hashed": true});
    let query = format!("wait=false&agent_token={TOKEN}");
    let (status, done) = machine.post(&query, "rescue.finalize_rescue", password);
    assert_eq!((status, &done["command_status"]), (200, &json!("SUCCEEDED")), "{done}");
    let shadow = std::fs::read_to_string(machine.path("etc/shadow")).unwrap();
    assert_eq!(shadow, "rescue:$6$salt$hash::0:99999:7:::\n");
    assert_eq!(machine.exit(), 65);
}

#[test]
fn logs_can_be_collected() {
    let machine = Machine::start();
    let ended = machine.run("log.collect_system_logs", json!({}));
    let packed = ended["command_result"]["system_logs"].as_str().unwrap();
    let packed = base64::engine::general_purpose::STANDARD.decode(packed).unwrap();
    let mut archive = Vec::new();
    let mut gzip = flate2::read::GzDecoder::new(packed.as_slice());
    std::io::Read::read_to_end(&mut gzip, &mut archive).unwrap();
    let text = String::from_utf8_lossy(&archive);
    assert!(text.contains("this machine is node node-1"));
    assert!(!text.contains(TOKEN));
}
