//! Live ISO images, custom deployments, and images that are refused.

use bmc_emulator::PowerRequest::{ForceOff, On};
use lab::{Lab, Machine};
use machine_emulator::{BootSource, Content, Stage};
use serde_json::{Value, json};

use super::host::no_ramdisk;
use super::operator::Operator;
use super::{image_with_checksum_file, lab, power_cycles, runs};
use crate::kill_points::{self, StateBefore};

/// The fields of a host that boots a live ISO image (`setLiveIsoUpdateOptsForNode`).
fn live_iso(lab: &Lab, name: &str) -> Value {
    json!({
        "boot_iso": kill_points::live_iso(lab, name), "image_source": null,
        "image_os_hash_value": null, "image_os_hash_algo": null, "image_checksum": null,
    })
}

#[tokio::test]
async fn a_host_runs_a_live_iso_and_then_an_image_on_its_disk() {
    let lab = lab().await;
    for (name, host, boot, source) in [
        ("r1u1", "live-1", "redfish-virtual-media", BootSource::Cd),
        ("r1u2", "live-2", "ipxe", BootSource::Network),
    ] {
        let machine = lab.rack(Machine::redfish(name).without_tls()).await;
        let mut operator = Operator::new(&lab, host);
        operator.registers(&machine, boot).await;
        operator.configures(no_ramdisk()).await;
        operator.provides().await;
        let is_live = |stage: &Stage| matches!(stage, Stage::Live(from, _) if *from == source);

        // The operator sends an empty config drive for a live ISO.
        let body = json!({"target": "active", "configdrive": {}});
        operator.deploys(live_iso(&lab, "live.iso"), Some("ramdisk"), body).await;
        operator.reaches("active").await;
        runs(&machine, is_live).await;
        assert!(machine.disks_are_blank(), "nothing is written");
        power_cycles(&operator, &machine).await;
        runs(&machine, is_live).await;
        operator.deprovisions().await;
        assert_eq!(machine.chassis().media(), None, "{boot}");

        // The default interface is chosen again, and the host boots its disk.
        let body = json!({"target": "active", "configdrive": operator.config_drive()});
        operator.deploys(image_with_checksum_file(&lab), None, body).await;
        let active = operator.reaches("active").await;
        assert_eq!(active["deploy_interface"], "direct");
        runs(&machine, |stage| *stage == Stage::Installed).await;
        operator.deletes().await;
    }
}

#[tokio::test]
async fn a_live_host_is_rebuilt_and_switched_off_without_cleaning() {
    let lab = lab().await;
    let machine = lab.rack(Machine::redfish("r1u3").without_tls()).await;
    let mut operator = Operator::new(&lab, "live-3");
    operator.registers(&machine, "redfish-virtual-media").await;
    operator.configures(no_ramdisk()).await;
    operator.provides().await;
    let node = lab::Node(operator.node.parse().expect("a UUID"));
    let before = StateBefore::of(&lab, node, &machine).await;
    let body = json!({"target": "active", "configdrive": {}});
    operator.deploys(live_iso(&lab, "first.iso"), Some("ramdisk"), body).await;
    operator.reaches("active").await;
    assert_eq!(before.states(&lab, node).await, ["deploying", "active"]);
    assert_eq!(before.requested_power(&machine), [On]);

    operator.chooses(live_iso(&lab, "second.iso"), Some("ramdisk")).await;
    let before = StateBefore::of(&lab, node, &machine).await;
    operator.provision(json!({"target": "rebuild"})).await;
    operator.reaches("active").await;
    assert_eq!(before.requested_power(&machine), [ForceOff, On]);
    let inserted = machine.chassis().media().expect("an image");
    assert!(inserted.path().ends_with("second.iso"), "{inserted}");

    let node = operator.node().await;
    let quick = super::operator::Updater::default().top(&node, "automated_clean", json!(false));
    operator.update(quick).await;
    operator.provision(json!({"target": "deleted"})).await;
    operator.reaches("available").await;
    assert_eq!(machine.chassis().media(), None, "the image is ejected without cleaning, too");
    assert!(!machine.chassis().power().borrow().on);
}

#[tokio::test]
async fn a_host_boots_a_kernel_and_a_ramdisk_of_its_user() {
    let lab = lab().await;
    let machine = lab.rack(Machine::redfish("r1u4").without_tls()).await;
    let mut operator = Operator::new(&lab, "live-4");
    operator.registers(&machine, "ipxe").await;
    operator.configures(no_ramdisk()).await;
    operator.provides().await;
    let kernel = lab.images().put("vmlinuz", "raw", vec![1; 100]);
    let ramdisk = lab.images().put("initrd", "raw", vec![2; 200]);
    let image = json!({
        "kernel": kernel.url, "ramdisk": ramdisk.url,
        "ramdisk_kernel_arguments": "console=ttyS0 quiet",
    });
    operator.deploys(image, Some("ramdisk"), json!({"target": "active"})).await;
    operator.reaches("active").await;
    let is_mine = |stage: &Stage| matches!(stage, Stage::Live(BootSource::Network, line) if line.ends_with("console=ttyS0 quiet"));
    runs(&machine, is_mine).await;
}

#[tokio::test]
async fn a_custom_agent_installs_a_host_by_its_own_step() {
    let lab = lab().await;
    let machine = lab.rack(Machine::redfish("r1u5").without_tls()).await;
    let mut operator = Operator::new(&lab, "custom-1");
    operator.registers(&machine, "ipxe").await;
    operator.configures(no_ramdisk()).await;
    operator.provides().await;
    let node = lab::Node(operator.node.parse().expect("a UUID"));
    let before = StateBefore::of(&lab, node, &machine).await;
    let image = json!({
        "boot_iso": null, "image_checksum": null, "image_source": null, "image_os_hash_algo": null,
        "image_os_hash_value": null, "image_disk_format": null, "image_pull_secret": null,
    });
    let step = json!({"interface": "deploy", "step": "install_live", "args": {}, "priority": 80});
    let drive = operator.config_drive();
    let body = json!({"target": "active", "configdrive": drive, "deploy_steps": [step]});
    operator.deploys(image, Some("custom-agent"), body).await;
    operator.reaches("active").await;
    let steps = ["get_deploy_steps", "install_live", "sync"];
    assert_eq!(before.steps(&machine), steps);
    runs(&machine, |stage| *stage == Stage::Installed).await;
    let disks = machine.disks();
    let Content::Image { config_drive: true, .. } = &disks[0] else { panic!("{disks:?}") };
}

#[tokio::test]
async fn images_that_cannot_be_deployed_are_refused_by_name() {
    let lab = lab().await;
    let machine = lab.rack(Machine::redfish("r1u6").without_tls()).await;
    let mut operator = Operator::new(&lab, "wrong-1");
    operator.registers(&machine, "redfish-virtual-media").await;
    operator.configures(no_ramdisk()).await;
    operator.provides().await;
    let reason = async |image: Value, deploy| {
        let verdict = operator.chooses(image, deploy).await["deploy"].clone();
        assert_eq!(verdict["result"], false);
        verdict["reason"].as_str().unwrap_or_default().to_owned()
    };
    let mut md5 = image_with_checksum_file(&lab);
    md5["image_checksum"] = json!("0".repeat(32));
    let why = reason(md5, None).await;
    assert!(why.contains("image_checksum: has 32 digits"), "{why}");
    let mut vmdk = image_with_checksum_file(&lab);
    vmdk["image_disk_format"] = json!("vmdk");
    let why = reason(vmdk, None).await;
    assert!(why.contains("image_disk_format: \"vmdk\" is neither raw nor qcow2"), "{why}");
    let mut mode = image_with_checksum_file(&lab);
    mode["capabilities"] = json!({"boot_mode": "legacy"});
    let why = reason(mode, None).await;
    assert!(why.contains("capabilities.boot_mode: must be bios or uefi"), "{why}");
    let mut none = live_iso(&lab, "live.iso");
    none["boot_iso"] = Value::Null;
    let why = reason(none, Some("ramdisk")).await;
    assert!(why.contains("boot_iso: missing"), "{why}");

    // A wrong file of checksums ends the deployment before anything is written.
    let mut image = image_with_checksum_file(&lab);
    let empty = lab.images().put("EMPTY", "raw", Vec::new());
    image["image_checksum"] = json!(empty.url);
    operator.deploys(image, None, json!({"target": "active"})).await;
    let failed = operator.until("a failure", |it| it["provision_state"] == "deploy failed").await;
    let why = failed["last_error"].as_str().unwrap_or_default();
    assert!(why.contains("EMPTY: the file is empty"), "{why}");
    assert!(machine.disks_are_blank());
}
