//! Tests of the actions on a machine, with an emulated BMC.

use baremetal_core::{NodeIdent, Step, StepKind, StepName, StepRunner};
use bmc_emulator::{BootDevice as Device, OverrideDuration, Request};
use serde_json::json;

use super::*;
use crate::samples::{MAC, SampleMachine, conductor, settings};

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
            BootInterface::VirtualMedia => {
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

#[tokio::test]
async fn commands_have_the_names_and_parameters_of_the_agents_protocol() {
    let context = conductor(settings()).await.context;
    let machine = SampleMachine::start().await;
    let (mut node, port) = machine.node();
    node.boot_mode = Some(BootMode::Uefi);
    node.set_rescue_password("$6$salt$hash");
    context.store.insert_node(&node).await.unwrap();
    node = context.store.find_node(&NodeIdent::Id(node.id)).await.unwrap().unwrap();
    context.store.insert_port(&port).await.unwrap();
    let known = json!({
        "uuid": node.id, "properties": {}, "instance_info": {}, "driver_internal_info": {},
    });
    let ports = json!([{"uuid": port.id, "address": MAC.to_string()}]);
    for (command, name, params) in [
        (
            AgentCommand::ListSteps(StepKind::Clean),
            "clean.get_clean_steps",
            json!({"node": known, "ports": ports}),
        ),
        (
            AgentCommand::ListSteps(StepKind::Deploy),
            "deploy.get_deploy_steps",
            json!({"node": known, "ports": ports}),
        ),
        (
            AgentCommand::ListSteps(StepKind::Service),
            "service.get_service_steps",
            json!({"node": known, "ports": ports}),
        ),
        (
            AgentCommand::SetNextBoot,
            "image.install_bootloader",
            json!({"root_uuid": null, "target_boot_mode": "uefi"}),
        ),
        (AgentCommand::Sync, "standby.sync", json!({})),
        (
            AgentCommand::FinalizeRescue,
            "rescue.finalize_rescue",
            json!({"rescue_password": "$6$salt$hash", "hashed": true}),
        ),
        (AgentCommand::PowerOff, "standby.power_off", json!({})),
    ] {
        let (command, sent) = context.request_of(&node, command).await.unwrap();
        assert_eq!((command, json!(sent)), (name, params));
    }
    let args = json!({"raid_config": {"a": [1]}});
    for (kind, command, version) in [
        (StepKind::Clean, "clean.execute_clean_step", "clean_version"),
        (StepKind::Deploy, "deploy.execute_deploy_step", "deploy_version"),
        (StepKind::Service, "service.execute_service_step", "service_version"),
    ] {
        let step = Step {
            runner: StepRunner::Agent,
            kind,
            name: StepName { interface: Interface::Raid, step: "create_configuration".to_owned() },
            args: args.as_object().unwrap().clone(),
            priority: 0,
            reboots: false,
        };
        let work = node.work.as_mut().unwrap();
        work.tasks[work.cursor] = Task::Step(step);
        let (name, params) = context.step_of_work(&node).await.unwrap();
        assert_eq!(name, command);
        let want = json!({
            "step": {"interface": "raid", "step": "create_configuration", "args": args},
            "node": known, "ports": ports, version: null,
        });
        assert_eq!(json!(params), want);
        let sent = serde_json::to_string(&params).unwrap();
        let named = r#"{"step":{"interface":"raid","step":"create_configuration","args":{"#;
        assert!(sent.starts_with(named), "{sent}");
    }
}

#[test]
fn only_ipmi_sets_the_boot_mode_with_the_boot_device() {
    let mut node = Node::new(baremetal_core::NodeUuid::new_v4(), Driver::Ipmi, Default::default());
    node.boot_mode = Some(BootMode::Uefi);
    assert_eq!(boot_mode(&node), Some(BootMode::Uefi));
    node.driver = Driver::Redfish;
    assert_eq!(boot_mode(&node), None);
}

#[test]
fn an_image_is_named_by_its_file() {
    for (url, name) in [
        ("http://images/a/debian.raw", "debian.raw"),
        ("https://images/debian.qcow2?token=a/b#c/d", "debian.qcow2"),
        ("http://images/folder/", "folder"),
    ] {
        assert_eq!(name_in(url), name, "{url}");
    }
}
