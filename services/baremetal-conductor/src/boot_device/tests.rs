//! Tests of the next boot of a machine, with an emulated BMC.

use baremetal_core::{DeployInterface, NodeUuid};
use bmc_emulator::{BootDevice as Device, OverrideDuration, Request};
use hardware::AllowedHosts;
use serde_json::json;

use super::*;
use crate::samples::{SampleMachine, conductor, settings};

/// Returns the last boot override that the machine's BMC accepted.
fn last_override(machine: &SampleMachine) -> Option<(Device, OverrideDuration)> {
    machine.machine.log().into_iter().rev().find_map(|entry| {
        let Request::Boot(device, lasting) = entry.request else { return None };
        Some((device, lasting))
    })
}

#[tokio::test]
async fn the_ramdisk_boots_by_the_boot_interface_of_the_node() {
    let context = conductor(settings()).await.context;
    for (interface, device) in [
        (BootInterface::Ipxe, Some(Device::Pxe)),
        (BootInterface::HttpIpxe, Some(Device::Http)),
        (BootInterface::VirtualMedia, Some(Device::Cdrom)),
        (BootInterface::IdracVirtualMedia, Some(Device::Cdrom)),
        (BootInterface::Fake, None),
    ] {
        let machine = SampleMachine::start().await;
        let (mut node, _) = machine.node();
        node.interfaces.boot = Some(interface);
        context.store.insert_node(&node).await.unwrap();
        let bmc = context.bmcs.of(&node).unwrap();
        context.boot_ramdisk(&node, &bmc).await.unwrap();
        let wanted = device.map(|device| (device, OverrideDuration::Once));
        assert_eq!(last_override(&machine), wanted, "{interface:?}");
        let medium = machine.machine.media().map(|url| url.to_string());
        match interface {
            BootInterface::VirtualMedia | BootInterface::IdracVirtualMedia => {
                let path = format!("http://10.0.0.1:8080/media/{}/", node.id);
                assert!(medium.as_ref().unwrap().starts_with(&path), "{medium:?}");
            }
            BootInterface::Ipxe | BootInterface::HttpIpxe | BootInterface::Fake => {
                assert_eq!(medium, None, "{interface:?}");
            }
        }
    }
}

#[tokio::test]
async fn the_disk_boots_from_then_on_and_the_virtual_cd_is_ejected() {
    let context = conductor(settings()).await.context;
    let someones = "http://10.0.0.9/other.iso".parse().unwrap();
    for (interface, keeps) in [(BootInterface::VirtualMedia, false), (BootInterface::Ipxe, true)] {
        let machine = SampleMachine::start().await;
        let (mut node, _) = machine.node();
        node.interfaces.boot = Some(interface);
        let bmc = context.bmcs.of(&node).unwrap();
        bmc.media.as_ref().unwrap().insert(&someones).await.unwrap();
        context.boot_disk(&node, &bmc).await.unwrap();
        assert_eq!(last_override(&machine), Some((Device::Disk, OverrideDuration::Always)));
        assert_eq!(machine.machine.media().is_some(), keeps, "{interface:?}");
    }
}

#[test]
fn only_ipmi_sets_the_boot_mode_with_the_boot_device() {
    let mut node = Node::new(NodeUuid::new_v4(), Driver::Ipmi, Default::default());
    node.boot_mode = Some(BootMode::Uefi);
    assert_eq!(boot_mode(&node), Some(BootMode::Uefi));
    node.properties.insert("capabilities".to_owned(), "boot_mode:bios".into());
    assert_eq!(boot_mode(&node), Some(BootMode::Bios), "the declared mode");
    node.driver = Driver::Redfish;
    assert_eq!(boot_mode(&node), None);
}

/// Settings that allow images at the addresses of the tests.
fn with_images() -> crate::settings::Settings {
    crate::settings::Settings { image_hosts: AllowedHosts::anywhere(), ..settings() }
}

#[tokio::test]
async fn the_own_iso_image_of_a_node_boots_instead_of_the_ramdisk() {
    let context = conductor(with_images()).await.context;
    let machine = SampleMachine::start().await;
    let (mut node, _) = machine.node();
    node.interfaces.boot = Some(BootInterface::VirtualMedia);
    let iso = "http://127.0.0.1:1/agent.iso";
    node.driver_info.insert("deploy_iso".to_owned(), iso.into());
    context.store.insert_node(&node).await.unwrap();
    let bmc = context.bmcs.of(&node).unwrap();
    context.boot_ramdisk(&node, &bmc).await.unwrap();
    assert_eq!(machine.machine.media().map(|url| url.to_string()).as_deref(), Some(iso));
    assert!(context.boot_of_work(&node).await.unwrap().is_some(), "the agent gets a token");

    let strict = conductor(settings()).await.context;
    strict.store.insert_node(&node).await.unwrap();
    let refused = strict.boot_ramdisk(&node, &bmc).await.unwrap_err().to_string();
    assert!(refused.starts_with("driver_info.deploy_iso: 127.0.0.1 is a loopback"), "{refused}");
}

#[tokio::test]
async fn the_image_of_the_user_boots_at_every_start() {
    let context = conductor(with_images()).await.context;
    let iso = "http://127.0.0.1:1/live.iso";
    for (interface, device, medium) in [
        (BootInterface::Ipxe, Device::Pxe, None),
        (BootInterface::HttpIpxe, Device::Http, None),
        (BootInterface::VirtualMedia, Device::Cdrom, Some(iso)),
    ] {
        let machine = SampleMachine::start().await;
        let (mut node, _) = machine.node();
        node.interfaces.boot = Some(interface);
        node.interfaces.deploy = Some(DeployInterface::Ramdisk);
        node.instance_info.insert("boot_iso".to_owned(), iso.into());
        let bmc = context.bmcs.of(&node).unwrap();
        context.boot_own_image(&node, &bmc).await.unwrap();
        assert_eq!(last_override(&machine), Some((device, OverrideDuration::Always)));
        let inserted = machine.machine.media().map(|url| url.to_string());
        assert_eq!(inserted.as_deref(), medium, "{interface:?}");
    }
}

#[test]
fn a_node_can_force_how_long_a_boot_device_lasts() {
    let mut node = Node::new(NodeUuid::new_v4(), Driver::Redfish, Default::default());
    for (forced, once, continuous) in [
        (json!("Default"), Persistence::Once, Persistence::Continuous),
        (json!("Always"), Persistence::Continuous, Persistence::Continuous),
        (json!("Never"), Persistence::Once, Persistence::Once),
        (json!(true), Persistence::Continuous, Persistence::Continuous),
        (json!("True"), Persistence::Continuous, Persistence::Continuous),
        (json!(false), Persistence::Once, Persistence::Continuous),
    ] {
        node.driver_info.insert("force_persistent_boot_device".to_owned(), forced.clone());
        let needed = [Persistence::Once, Persistence::Continuous];
        assert_eq!(needed.map(|it| persistence(&node, it)), [once, continuous], "{forced}");
    }
}
