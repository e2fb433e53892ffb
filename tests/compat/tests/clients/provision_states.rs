//! Tests of `openstack baremetal node …` from enrolling a machine to deploying and undeploying it.

use compat::{CommandLine, Service};
use serde_json::{Value, json};

use crate::PRETEND;

fn enrolled(client: &mut CommandLine, name: &str) {
    client.done(&[&["node", "create", "--name", name], PRETEND].concat());
}

fn available(client: &mut CommandLine, name: &str) {
    enrolled(client, name);
    client.done(&["node", "manage", name, "--wait", "60"]);
    client.done(&["node", "provide", name, "--wait", "60"]);
}

fn field(client: &mut CommandLine, name: &str, field: &str) -> Value {
    client.json(&["node", "show", name, "--fields", field])[field].take()
}

#[test]
fn a_node_passes_through_all_provision_states() {
    let service = Service::start();
    let mut client = CommandLine::start(&service.url);
    let node = "traveller";
    enrolled(&mut client, node);

    client.done(&["node", "manage", node, "--wait", "60"]);
    assert_eq!(field(&mut client, node, "provision_state"), "manageable");
    client.done(&["node", "inspect", node, "--wait", "60"]);
    assert_eq!(field(&mut client, node, "provision_state"), "manageable");
    assert_ne!(field(&mut client, node, "inspection_finished_at"), Value::Null);
    client.done(&["node", "provide", node, "--wait", "60"]);
    assert_eq!(field(&mut client, node, "provision_state"), "available");

    client.done(&[
        "node",
        "set",
        node,
        "--instance-info",
        "image_source=http://192.0.2.1/image.raw",
        "--instance-info",
        "image_os_hash_algo=sha256",
        "--instance-info",
        &format!("image_os_hash_value={}", "0".repeat(64)),
    ]);
    client.done(&[
        "node",
        "deploy",
        node,
        "--wait",
        "60",
        "--config-drive",
        "{\"meta_data\": {\"hostname\": \"traveller\"}}",
    ]);
    let shown = client.json(&["node", "show", node]);
    assert_eq!(shown["provision_state"], "active");
    assert_eq!(shown["target_provision_state"], Value::Null);
    assert_eq!(shown["last_error"], Value::Null);
    assert_eq!(shown["reservation"], Value::Null);

    // A real Ironic without authentication answers 500 to rebuild, and its fake deploy leaves the power as it is.
    if service.is_ours() {
        assert_eq!(shown["power_state"], "power on");
        client.done(&["node", "rebuild", node, "--wait", "60"]);
        assert_eq!(field(&mut client, node, "provision_state"), "active");
    }

    client.done(&["node", "undeploy", node, "--wait", "60"]);
    let shown = client.json(&["node", "show", node]);
    assert_eq!(shown["provision_state"], "available");
    assert_eq!(shown["instance_info"], json!({}));
    assert_eq!(shown["instance_uuid"], Value::Null);

    let history = client.json(&["node", "history", "list", node]);
    let events = history.as_array().expect("a list");
    assert!(!events.is_empty(), "nothing was written down");
    let uuid = events[0]["uuid"].as_str().expect("a uuid");
    let event = client.json(&["node", "history", "get", node, uuid]);
    assert_eq!(event["uuid"], uuid);
    assert_eq!(event["event"], events[0]["event"]);

    client.done(&["node", "manage", node, "--wait", "60"]);
    client.done(&["node", "delete", node]);
}

#[test]
fn several_nodes_are_moved_by_one_command() {
    let service = Service::start();
    let mut client = CommandLine::start(&service.url);
    for name in ["first", "second", "third"] {
        enrolled(&mut client, name);
    }
    client.done(&["node", "manage", "first", "second", "third", "--wait", "60"]);
    client.done(&["node", "provide", "first", "second", "third", "--wait", "60"]);
    let list = client.json(&[
        "node",
        "list",
        "--provision-state",
        "available",
        "--sort",
        "name:asc",
        "--fields",
        "name",
    ]);
    assert_eq!(list, json!([{"name": "first"}, {"name": "second"}, {"name": "third"}]));
    assert_eq!(
        client.done(&["node", "delete", "first", "second", "third"]),
        "Deleted node first\nDeleted node second\nDeleted node third\n"
    );
}

#[test]
fn a_node_without_inspection_has_no_inventory() {
    let service = Service::start();
    let mut client = CommandLine::start(&service.url);
    enrolled(&mut client, "unknown");
    let said = client.refused(&["node", "inventory", "save", "unknown"]);
    assert!(said.contains("(HTTP 404)"), "{said}");
}

#[test]
fn power_is_switched() {
    let service = Service::start();
    let mut client = CommandLine::start(&service.url);
    available(&mut client, "switched");
    let wait_for_power = |client: &mut CommandLine, state: &str| {
        compat::wait::wait_for(state, std::time::Duration::from_secs(60), || {
            (field(client, "switched", "power_state") == state).then_some(())
        });
    };
    for (words, state) in [
        (&["node", "power", "on", "switched"][..], "power on"),
        (&["node", "power", "off", "switched"], "power off"),
        (&["node", "power", "on", "switched", "--power-timeout", "30"], "power on"),
        (&["node", "power", "off", "switched", "--soft", "--power-timeout", "30"], "power off"),
        (&["node", "reboot", "switched"], "power on"),
        (&["node", "reboot", "switched", "--soft", "--power-timeout", "30"], "power on"),
    ] {
        client.done(words);
        wait_for_power(&mut client, state);
    }
}

#[test]
fn the_boot_device_is_chosen() {
    let service = Service::start();
    let mut client = CommandLine::start(&service.url);
    available(&mut client, "booted");
    let supported = client.json(&["node", "boot", "device", "show", "booted", "--supported"]);
    let supported = supported["supported_boot_devices"].as_str().expect("a list in a cell");
    assert!(supported.contains("pxe"), "{supported}");

    client.done(&["node", "boot", "device", "set", "booted", "pxe", "--persistent"]);
    let shown = client.json(&["node", "boot", "device", "show", "booted"]);
    assert_eq!(shown["boot_device"], "pxe");
    assert!(shown["persistent"].is_boolean(), "{shown}");
    let said = client.refused(&["node", "boot", "device", "set", "booted", "wanboot"]);
    assert!(said.contains("(HTTP 400)"), "{said}");
}

#[test]
fn a_node_is_validated_interface_by_interface() {
    let service = Service::start();
    let mut client = CommandLine::start(&service.url);
    enrolled(&mut client, "validated");
    client.done(&["node", "set", "validated", "--raid-interface", "no-raid"]);
    let validated = client.json(&["node", "validate", "validated"]);
    let row = |interface: &str| {
        let rows = validated.as_array().expect("a table");
        let row = rows.iter().find(|row| row["Interface"] == interface);
        row.unwrap_or_else(|| panic!("no {interface} in {validated}"))["Result"].clone()
    };
    for interface in ["boot", "deploy", "inspect", "management", "network", "power", "storage"] {
        assert_eq!(row(interface), true, "{interface}");
    }
    for interface in ["bios", "console", "firmware", "rescue"] {
        assert_eq!(row(interface), true, "{interface}");
    }
    assert_eq!(row("raid"), false);
}

#[test]
fn a_node_in_use_is_adopted_unchanged() {
    let service = Service::start();
    let mut client = CommandLine::start(&service.url);
    enrolled(&mut client, "adopted");
    client.done(&["node", "manage", "adopted", "--wait", "60"]);
    client.done(&["node", "adopt", "adopted", "--wait", "60"]);
    assert_eq!(field(&mut client, "adopted", "provision_state"), "active");
}

#[test]
fn an_unknown_clean_step_is_refused() {
    let service = Service::start();
    // A real Ironic answers 500.
    if !service.is_ours() {
        return;
    }
    let mut client = CommandLine::start(&service.url);
    enrolled(&mut client, "cleaned");
    client.done(&["node", "manage", "cleaned", "--wait", "60"]);
    let said =
        client.refused(&["node", "clean", "cleaned", "--clean-steps", "[{\"step\": \"erase\"}]"]);
    assert!(said.contains("(HTTP 400)"), "{said}");
    assert_eq!(field(&mut client, "cleaned", "provision_state"), "manageable");
}
