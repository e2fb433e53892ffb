//! A machine is installed, rebuilt, and undeployed.

use bmc_emulator::Firmware;
use bmc_emulator::PowerRequest::{ForceOff, On};
use lab::{Lab, Machine};
use machine_emulator::{BootSource, ConfigDrive, Content, Event, Stage};
use reqwest::Method;
use serde_json::json;

use crate::kill_points::{self, StateBefore};

#[tokio::test]
async fn a_machine_is_deployed_and_given_back() {
    let lab = Lab::start().await;
    let machine = lab.rack(Machine::redfish("r1u7")).await;
    machine.put_on_disk(0, Content::leftover());
    let node = lab.available(&machine).await;
    assert!(machine.disks_are_blank(), "an earlier owner's disk is erased before anyone gets it");

    let before = StateBefore::of(&lab, node, &machine).await;
    lab.install_with(node, left::canary::USER_DATA).await.reaches("active").await;
    machine.stage().wait_for(|stage| *stage == Stage::Installed).await.expect("it boots its disk");
    assert_eq!(machine.booted_from(), Some(BootSource::Disk));
    let disks = machine.disks();
    let [Content::Image { name, checksum, .. }] = &disks[..] else {
        panic!("the disk holds {:?}", machine.disks());
    };
    assert_eq!((name, checksum), (&lab.image().url, &lab.image().checksum));
    let events = before.happened(&machine);
    let shutdown = Event::Did("power_off".to_owned());
    assert_eq!(events.iter().filter(|event| **event == shutdown).count(), 1, "{events:#?}");
    assert_eq!(before.power(&machine), [On, ForceOff, On]);
    assert_eq!(before.requested_power(&machine), [On, On], "the agent shut the machine down");

    lab.provision(node, "deleted").await.reaches("available").await;
    assert!(machine.disks_are_blank());
    assert!(!machine.chassis().power().borrow().on, "nobody needs a clean machine to run");
}

/// The machine reads the image from the provisioning listener.
#[tokio::test]
async fn a_machine_is_installed_with_a_file_of_the_host() {
    let lab = Lab::start().await;
    let machine = lab.rack(Machine::redfish("r1u8")).await;
    let node = lab.available(&machine).await;
    let image = lab.image_in_folder("disk.raw", &[7; 1 << 20]);
    lab.choose(node, &image).await;
    lab.provision(node, "active").await.reaches("active").await;
    let disks = machine.disks();
    let [Content::Image { name, checksum, .. }] = &disks[..] else {
        panic!("the disk holds {disks:?}");
    };
    let url = lab.provisioning().join("images/disk.raw").expect("a URL");
    assert_eq!((name.as_str(), checksum), (url.as_str(), &image.checksum));
}

/// The agent gets the ids of the partitions that it made, because it installs the boot loader only then.
#[tokio::test]
async fn a_machine_is_installed_with_a_partition_image() {
    let lab = Lab::start().await;
    let machine = lab.rack(Machine::redfish("r1u5")).await;
    let node = lab.available(&machine).await;
    // A file system has no boot sector.
    let image = lab.images().put("root.raw", "raw", vec![7; 1 << 20]);
    let mut info = image.instance_info();
    info["image_type"] = json!("partition");
    lab.set(node, "/instance_info", info.clone()).await;
    let (path, body) = (format!("{}/states/provision", node.path()), json!({"target": "active"}));
    let refused = lab.api().send(Method::PUT, &path, Some(&body)).await;
    assert_eq!(refused.status, 400, "{refused:?}");
    let said = refused.body.to_string();
    assert!(said.contains("instance_info.root_gb: missing"), "{said}");

    info["root_gb"] = json!("10");
    lab.set(node, "/instance_info", info).await;
    let before = StateBefore::of(&lab, node, &machine).await;
    lab.provision(node, "active").await.reaches("active").await;
    machine.stage().wait_for(|stage| *stage == Stage::Installed).await.expect("it boots its disk");
    let ran =
        ["get_deploy_steps", "write_image", "get_partition_uuids", "install_bootloader", "sync"];
    assert_eq!(before.steps(&machine), ran);
}

/// No boot entry is asked for, because the program of the container makes it.
#[tokio::test]
async fn a_machine_is_installed_from_a_container() {
    let lab = Lab::start().await;
    let machine = lab.rack(Machine::redfish("r1u6")).await;
    let node = lab.available(&machine).await;
    lab.set(node, "/deploy_interface", json!("bootc")).await;
    let mut info = json!({
        "image_source": "oci://registry.example/os:without-bootc", "image_pull_secret": "ann:sesame",
        "bootc_authorized_keys": "ssh-ed25519 A",
    });
    lab.set(node, "/instance_info", info.clone()).await;
    lab.provision(node, "active").await.reaches("deploy failed").await;
    assert!(machine.stage().borrow().ne(&Stage::Installed));

    info["image_source"] = json!("oci://registry.example/os:1");
    lab.set(node, "/instance_info", info).await;
    let before = StateBefore::of(&lab, node, &machine).await;
    lab.provision(node, "active").await.reaches("active").await;
    machine.stage().wait_for(|stage| *stage == Stage::Installed).await.expect("it boots its disk");
    let ran = ["get_deploy_steps", "execute_bootc_install", "sync"];
    assert_eq!(before.steps(&machine), ran);
}

/// The node leaves the choice to its instances. Two boot their own image, and one is written to the disk.
#[tokio::test]
async fn an_instance_decides_how_its_machine_is_installed() {
    let lab = Lab::start().await;
    let machine = lab.rack(Machine::redfish("r1u10").without_tls()).await;
    let node = lab.available(&machine).await;
    lab.set(node, "/deploy_interface", json!("autodetect")).await;
    let iso = kill_points::live_iso(&lab, "live.iso");
    let is_live = |stage: &Stage| matches!(stage, Stage::Live(BootSource::Network, _));
    for info in [
        json!({"boot_iso": iso, "ironic_ramdisk_deploy": "true"}),
        json!({"boot_iso": iso, "deploy_interface": "ramdisk"}),
    ] {
        lab.set(node, "/instance_info", info).await;
        lab.provision(node, "active").await.reaches("active").await;
        machine.stage().wait_for(is_live).await.expect("it runs its own image");
        assert!(machine.disks_are_blank(), "nothing is written");
        lab.provision(node, "deleted").await.reaches("available").await;
    }

    lab.choose(node, lab.image()).await;
    lab.provision(node, "active").await.reaches("active").await;
    machine.stage().wait_for(|stage| *stage == Stage::Installed).await.expect("it boots its disk");
}

#[tokio::test]
async fn a_config_drive_may_be_at_a_url() {
    let lab = Lab::start().await;
    let machine = lab.rack(Machine::redfish("r1u9")).await;
    let node = lab.available(&machine).await;
    let drive = ConfigDrive::with_user_data(left::canary::USER_DATA).expect("a drive");
    let url = lab.images().put("drive", "raw", drive).url;
    lab.install_from(node, &url).await.reaches("active").await;
    let drive = machine.config_drive().expect("the machine has a config drive");
    assert_eq!(drive.user_data, left::canary::USER_DATA);

    let page = lab.images().put("page", "raw", "<html>").url;
    let error = lab.install_from(node, &page).await.fails("deploy failed").await;
    assert!(error.contains("/page: not base64"), "{error}");
}

#[tokio::test]
async fn a_machine_is_rebuilt_with_another_image() {
    let lab = Lab::start().await;
    let machine = lab.rack(Machine::redfish("r1u8").uefi()).await;
    assert_eq!(machine.spec().firmware, Firmware::Uefi);
    let node = lab.available(&machine).await;
    lab.provision(node, "active").await.reaches("active").await;

    let newer = lab.images().bootable("newer.raw");
    lab.choose(node, &newer).await;
    // The node is active before and after the rebuild, so the content of the disk is checked.
    lab.provision(node, "rebuild").await.reaches("active").await;
    let written = machine.disks();
    assert!(
        matches!(&written[..], [Content::Image { name, .. }] if *name == newer.url),
        "the disk holds {written:?}"
    );
}
