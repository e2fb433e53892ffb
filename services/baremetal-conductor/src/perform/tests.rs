//! Tests of the actions on a machine, with an emulated BMC.

use baremetal_core::{
    DeployInterface, Driver, InspectInterface, NetworkChanges, NodeIdent, NodeUuid, RaidInterface,
    Step, StepKind, StepName, StepRunner,
};
use hardware::{Inventory, MacAddress, Nic};
use serde_json::json;

use super::*;
use crate::samples::{MAC, SampleMachine, conductor, settings};

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
        (AgentCommand::ListPartitions, "standby.get_partition_uuids", json!({})),
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
    let disks = json!({"logical_disks": [{"raid_level": "1", "size_gb": "MAX"}]});
    node.interfaces.raid = Some(RaidInterface::Agent);
    node.target_raid_config = disks.as_object().unwrap().clone();
    let known = json!({
        "uuid": node.id, "properties": {}, "instance_info": {}, "driver_internal_info": {},
        "target_raid_config": disks, "raid_config": {},
    });
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
            children: None,
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
    node.target_raid_config.clear();
    let Err(ActionError::Machine(problem)) = context.step_of_work(&node).await else {
        panic!("the step needs a target");
    };
    assert!(problem.cause.contains("has no target RAID configuration"), "{}", problem.cause);
}

#[tokio::test]
async fn the_networks_of_a_machine_change_without_its_bmc() {
    let context = conductor(settings()).await.context;
    let mut node = Node::new(NodeUuid::new_v4(), Driver::Redfish, context.now());
    node.provision_state = State::Active;
    node.network_changes = NetworkChanges { binds: true, ..NetworkChanges::default() };
    let needs_bmc = context.perform(&node, Action::BootDisk).await;
    let Err(ActionError::Machine(problem)) = needs_bmc else { panic!("the node names no BMC") };
    assert!(problem.cause.contains("redfish_address"), "{}", problem.cause);

    let changed = context.perform(&node, Action::ChangeNetworks).await;
    let Ok(ActionOutcome::NetworksChanged(changed)) = changed else { panic!("it needs no BMC") };
    assert!(changed.network_changes.are_done());
    for action in [Action::BindVifs, Action::ReleaseVifs, Action::DetachVifs, Action::Disconnect] {
        let done = context.perform(&node, action).await;
        assert!(matches!(done, Ok(ActionOutcome::TaskDone(_))), "{}", action.name());
    }
}

#[tokio::test]
async fn a_machine_with_too_many_addresses_gets_no_more_ports_than_a_node_may_have() {
    let context = conductor(settings()).await.context;
    let mut node = Node::new(NodeUuid::new_v4(), Driver::Redfish, context.now());
    node.interfaces.inspect = Some(InspectInterface::Agent);
    context.store.insert_node(&node).await.unwrap();
    let nic = |n: u16| {
        let [high, low] = n.to_be_bytes();
        let mac = MacAddress::new([2, 0, 0, 1, high, low]);
        Nic { name: format!("eth{n}"), mac, speed_mbps: None, link_up: None }
    };
    let inventory = Inventory { nics: (0..300).map(nic).collect(), ..Inventory::default() };
    let read = context.take_bmc_inventory(&node, &inventory).await;
    assert!(matches!(read, Ok(ActionOutcome::TaskDone(_))));
    assert_eq!(context.store.ports_of(node.id).await.unwrap().len(), 256);
}

#[tokio::test]
async fn a_custom_agent_gets_the_whole_instance_while_it_deploys() {
    use DeployInterface::{CustomAgent, Direct};

    let context = conductor(settings()).await.context;
    let mut node = Node::new(NodeUuid::new_v4(), Driver::Redfish, context.now());
    let info = json!({"configdrive": {"user_data": "x"}, "root_device": {"name": "sda"}, "x": 1});
    node.instance_info = info.as_object().unwrap().clone();
    context.store.insert_node(&node).await.unwrap();
    node = context.store.find_node(&NodeIdent::Id(node.id)).await.unwrap().unwrap();
    let (all, hints) = (vec!["configdrive", "root_device", "x"], vec!["root_device"]);
    for (deploy, state, want) in [
        (CustomAgent, State::Deploying, &all),
        (CustomAgent, State::DeployWait, &all),
        (CustomAgent, State::CleanWait, &hints),
        (Direct, State::DeployWait, &hints),
    ] {
        node.interfaces.deploy = Some(deploy);
        node.provision_state = state;
        let given = context.instance_for_agent(&node).await.unwrap();
        assert_eq!(given.keys().collect::<Vec<_>>(), *want, "{deploy:?} {state}");
        assert!(given.get("configdrive").is_none_or(Value::is_string), "it is built");
    }
}

#[tokio::test]
async fn a_partition_image_is_described_with_each_field_that_agents_read() {
    let context = conductor(settings()).await.context;
    let mut node = Node::new(NodeUuid::new_v4(), Driver::Redfish, context.now());
    let info = json!({
        "image_source": "http://images/root.raw", "image_checksum": "0".repeat(64),
        "image_type": "partition", "root_gb": "2", "capabilities": {"disk_label": "gpt"},
    });
    node.instance_info = info.as_object().unwrap().clone();
    context.store.insert_node(&node).await.unwrap();
    node = context.store.find_node(&NodeIdent::Id(node.id)).await.unwrap().unwrap();
    node.provision_state = State::DeployWait;
    let (_, sent) = context.request_of(&node, AgentCommand::WriteImage).await.unwrap();
    let sent = json!(sent);
    let image = sent["step"]["args"]["image_info"].as_object().unwrap();
    for (field, want) in [
        ("image_type", json!("partition")),
        ("root_mb", json!(2048)),
        ("swap_mb", json!(0)),
        ("ephemeral_mb", json!(0)),
        ("ephemeral_format", json!(null)),
        ("preserve_ephemeral", json!(false)),
        ("disk_label", json!("gpt")),
    ] {
        assert_eq!(image.get(field), Some(&want), "{field}");
    }
    let given = &sent["node"]["instance_info"];
    assert_eq!(given, &json!({"capabilities": {"disk_label": "gpt"}}));
}

#[tokio::test]
async fn an_image_of_the_folder_is_read_from_this_service() {
    let image_folder = Some("/srv/images".into());
    let context = conductor(crate::Settings { image_folder, ..settings() }).await.context;
    let sent = async |source: &str| {
        let mut node = Node::new(NodeUuid::new_v4(), Driver::Redfish, context.now());
        let info = json!({"image_source": source, "image_checksum": "0".repeat(64)});
        node.instance_info = info.as_object().unwrap().clone();
        context.store.insert_node(&node).await.unwrap();
        node = context.store.find_node(&NodeIdent::Id(node.id)).await.unwrap().unwrap();
        node.provision_state = State::DeployWait;
        context.request_of(&node, AgentCommand::WriteImage).await
    };
    let (_, params) = sent("file:///srv/images/debian/12.qcow2").await.unwrap();
    let params = json!(params);
    let image = &params["step"]["args"]["image_info"];
    assert_eq!(image["urls"], json!(["http://10.0.0.1:8080/images/debian/12.qcow2"]));
    assert_eq!(image["id"], "12.qcow2");
    assert_eq!(image["disk_format"], "qcow2");
    let refused = sent("file:///etc/shadow").await.err().unwrap().to_string();
    assert!(refused.starts_with("instance_info.image_source: a file of the"), "{refused}");
}

#[tokio::test]
async fn an_agent_gets_the_root_of_an_image_on_software_raid() {
    let context = conductor(settings()).await.context;
    let mut node = Node::new(NodeUuid::new_v4(), Driver::Redfish, context.now());
    let root = "6f9619ff-8b86-d011-b42d-00c04fc964ff";
    node.instance_info.insert("image_rootfs_uuid".to_owned(), root.into());
    for (controller, want) in [("hardware", json!(null)), ("software", json!(root))] {
        let disks = json!([{"controller": controller}]);
        node.raid_config.insert("logical_disks".to_owned(), disks);
        let params = context.next_boot(&node).await.unwrap();
        assert_eq!(params["root_uuid"], want, "{controller}");
    }
}

#[tokio::test]
async fn a_container_is_described_as_ironic_python_agent_reads_it() {
    let context = conductor(settings()).await.context;
    let mut node = Node::new(NodeUuid::new_v4(), Driver::Redfish, context.now());
    let info = json!({
        "image_source": "oci://registry.example/os:1", "image_pull_secret": "ann:sesame", "root_device": {"name": "sda"},
        "bootc_authorized_keys": "ssh-ed25519 A", "bootc_tpm2_luks": "true", "x": 1,
    });
    node.instance_info = info.as_object().unwrap().clone();
    node.interfaces.deploy = Some(DeployInterface::Bootc);
    context.store.insert_node(&node).await.unwrap();
    node = context.store.find_node(&NodeIdent::Id(node.id)).await.unwrap().unwrap();
    node.provision_state = State::DeployWait;
    let (name, sent) = context.request_of(&node, AgentCommand::WriteImage).await.unwrap();
    let sent = json!(sent);
    assert_eq!(name, "deploy.execute_deploy_step");
    // `ann:sesame`, twice in base64.
    let args = json!({
        "image_source": "oci://registry.example/os:1", "configdrive": null,
        "oci_pull_secret": "WVc1dU9uTmxjMkZ0WlE9PQ==",
    });
    let step = json!({"interface": "deploy", "step": "execute_bootc_install", "args": args});
    assert_eq!(sent["step"], step);
    let given = json!({
        "root_device": {"name": "sda"}, "bootc_authorized_keys": "ssh-ed25519 A", "bootc_tpm2_luks": true,
    });
    assert_eq!(sent["node"]["instance_info"], given);
    node.provision_state = State::CleanWait;
    let given = context.instance_for_agent(&node).await.unwrap();
    assert_eq!(given.keys().collect::<Vec<_>>(), ["root_device"]);
}

/// A BMC that can change no boot setting.
struct NoBootSettings;

#[async_trait::async_trait]
impl bmc::BootSettings for NoBootSettings {
    async fn read(&self) -> Result<hardware::PowerAndBootSettings, BmcError> {
        Err(BmcError::Unsupported { what: "show boot settings".to_owned() })
    }

    async fn request(&self, _: BootSetting) -> Result<(), BmcError> {
        Err(BmcError::Unsupported { what: "change boot settings".to_owned() })
    }

    async fn request_keys(&self, _: hardware::SecureBootKeys) -> Result<(), BmcError> {
        Err(BmcError::Unsupported { what: "change keys".to_owned() })
    }
}

#[tokio::test]
async fn a_boot_setting_that_a_bmc_cannot_change_is_unsupported() {
    let context = conductor(settings()).await.context;
    let machine = SampleMachine::start().await;
    let (node, _) = machine.node();
    let connector = redfish::Connector::new(b"", hardware::AllowedHosts::anywhere()).unwrap();
    let settings: std::sync::Arc<dyn bmc::BootSettings> = std::sync::Arc::new(NoBootSettings);
    let bmc = Bmc { boot_settings: Some(settings), ..connector.bmc(machine.target.clone()) };
    let changed = context.change_boot_setting(&node, &bmc, BootSetting::SecureBoot(true)).await;
    let Err(ActionError::Machine(problem)) = changed else { panic!("it was changed") };
    assert_eq!(problem.reason, Reason::Unsupported);
}

#[tokio::test]
async fn a_command_for_an_agent_without_an_address_fails() {
    let context = conductor(settings()).await.context;
    let (node, _) = SampleMachine::start().await.node();
    context.store.insert_node(&node).await.unwrap();
    let given = || context.give(&node, name::SYNC, CommandParams::of(Map::new()));
    assert!(matches!(given().await, Ok(None)), "nothing has booted");
    context.await_foreign_boot(&node).await.unwrap();
    let Err(ActionError::Machine(problem)) = given().await else { panic!("it was given") };
    assert_eq!(problem.cause, "the agent has not reported its address");
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
