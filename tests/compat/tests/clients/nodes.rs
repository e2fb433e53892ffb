//! Tests of `openstack baremetal node`: create, find, change and delete.

use compat::{CommandLine, Service};
use serde_json::{Value, json};

use crate::PRETEND;

fn create(client: &mut CommandLine, name: &str, more: &[&str]) -> Value {
    client.json(&[&["node", "create", "--name", name], PRETEND, more].concat())
}

fn names(list: &Value) -> Vec<&str> {
    let nodes = list.as_array().expect("a list");
    nodes.iter().map(|node| node["name"].as_str().unwrap_or("-")).collect()
}

#[test]
fn a_node_is_created_shown_and_deleted() {
    let service = Service::start();
    let mut client = CommandLine::start(&service.url);

    let node = create(
        &mut client,
        "created",
        &[
            "--property",
            "cpus=4",
            "--property",
            "local_gb=100",
            "--extra",
            "site=lab",
            "--resource-class",
            "baremetal",
            "--description",
            "top of the rack",
            "--driver-info",
            "redfish_address=https://192.0.2.1",
            "--driver-info",
            "redfish_password=secret",
        ],
    );
    assert_eq!(node["driver"], "fake-hardware");
    assert_eq!(node["provision_state"], "enroll");
    assert_eq!(node["maintenance"], false);
    assert_eq!(node["properties"], json!({"cpus": 4, "local_gb": 100}));
    assert_eq!(node["extra"], json!({"site": "lab"}));
    assert_eq!(node["resource_class"], "baremetal");
    assert_eq!(node["description"], "top of the rack");
    assert_eq!(
        node["driver_info"],
        json!({"redfish_address": "https://192.0.2.1", "redfish_password": "******"})
    );
    for unset in ["instance_uuid", "last_error", "target_provision_state", "chassis_uuid", "fault"]
    {
        assert_eq!(node[unset], Value::Null, "{unset}");
    }

    let uuid = node["uuid"].as_str().expect("a uuid");
    let mut by_name = client.json(&["node", "show", "created"]);
    let mut by_uuid = client.json(&["node", "show", uuid]);
    assert_eq!(by_name["uuid"], node["uuid"]);
    for node in [&mut by_name, &mut by_uuid] {
        // A power sync may happen between the two requests.
        node.as_object_mut().expect("an object").retain(|key, _| key != "updated_at");
    }
    assert_eq!(by_name, by_uuid);
    let fields = client.json(&["node", "show", "created", "--fields", "name", "resource_class"]);
    assert_eq!(fields, json!({"name": "created", "resource_class": "baremetal"}));

    assert_eq!(client.done(&["node", "delete", "created"]), "Deleted node created\n");
    let said = client.refused(&["node", "show", "created"]);
    assert!(said.starts_with("Node created could not be found. (HTTP 404)"), "{said}");
}

#[test]
fn nodes_are_listed_with_filters() {
    let service = Service::start();
    let mut client = CommandLine::start(&service.url);
    for (name, class) in [("one", "small"), ("two", "large"), ("three", "large")] {
        create(&mut client, name, &["--resource-class", class]);
    }

    let all = client.json(&["node", "list", "--sort", "name:asc"]);
    assert_eq!(names(&all), ["one", "three", "two"]);
    let mut columns: Vec<&String> = all[0].as_object().expect("an object").keys().collect();
    columns.sort();
    assert_eq!(
        columns,
        ["instance_uuid", "maintenance", "name", "power_state", "provision_state", "uuid"]
    );

    let mut list = |words: &[&str]| {
        let list = client.json(&[&["node", "list"], words].concat());
        names(&list).into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(list(&["--resource-class", "large", "--sort", "name:desc"]), ["two", "three"]);
    assert_eq!(list(&["--provision-state", "enroll", "--resource-class", "small"]), ["one"]);
    assert_eq!(list(&["--provision-state", "active"]), [""; 0]);
    assert_eq!(list(&["--driver", "fake-hardware", "--resource-class", "small"]), ["one"]);
    assert_eq!(list(&["--maintenance"]), [""; 0]);
    assert_eq!(list(&["--no-maintenance", "--resource-class", "small"]), ["one"]);
    assert_eq!(list(&["--associated"]), [""; 0]);
    assert_eq!(list(&["--unassociated", "--resource-class", "small"]), ["one"]);
    assert_eq!(list(&["--sort", "name:asc", "--limit", "1"]), ["one"]);
    assert_eq!(list(&["--sort", "name:asc", "--limit", "0"]), ["one", "three", "two"]);

    let fields = client.json(&["node", "list", "--fields", "name", "driver", "--sort", "name:asc"]);
    assert_eq!(fields[0], json!({"name": "one", "driver": "fake-hardware"}));
    let long = client.json(&["node", "list", "--long", "--sort", "name:asc"]);
    assert_eq!(
        long[0]["Resource Class"].as_str().or(long[0]["resource_class"].as_str()),
        Some("small")
    );
    let one = client.json(&["node", "show", "one", "--fields", "uuid"]);
    let after =
        ["node", "list", "--sort", "name:asc", "--marker", one["uuid"].as_str().expect("a uuid")];
    assert_eq!(names(&client.json(&after)), ["three", "two"]);
}

#[test]
fn a_node_is_changed_field_by_field() {
    let service = Service::start();
    let mut client = CommandLine::start(&service.url);
    create(&mut client, "changed", &["--property", "cpus=4", "--extra", "site=lab"]);
    let mut node = |words: &[&str]| {
        client.done(&[&["node"], words].concat());
        client.json(&["node", "show", "changed"])
    };

    let set = node(&[
        "set",
        "changed",
        "--property",
        "memory_mb=2048",
        "--extra",
        "row=7",
        "--description",
        "moved",
        "--resource-class",
        "gold",
        "--driver-info",
        "fake_password=secret",
        "--instance-info",
        "image_source=http://192.0.2.1/image",
        "--no-automated-clean",
    ]);
    assert_eq!(set["properties"], json!({"cpus": 4, "memory_mb": 2048}));
    assert_eq!(set["extra"], json!({"site": "lab", "row": 7}));
    assert_eq!(set["description"], "moved");
    assert_eq!(set["resource_class"], "gold");
    assert_eq!(set["driver_info"]["fake_password"], "******");
    assert_eq!(set["instance_info"], json!({"image_source": "http://192.0.2.1/image"}));
    assert_eq!(set["automated_clean"], false);

    let unset = node(&[
        "unset",
        "changed",
        "--property",
        "cpus",
        "--extra",
        "site",
        "--extra",
        "row",
        "--description",
        "--resource-class",
        "--driver-info",
        "fake_password",
        "--instance-info",
        "image_source",
    ]);
    assert_eq!(unset["properties"], json!({"memory_mb": 2048}));
    assert_eq!(unset["extra"], json!({}));
    assert_eq!(unset["description"], Value::Null);
    assert_eq!(unset["resource_class"], Value::Null);
    assert_eq!(unset["driver_info"], json!({}));
    assert_eq!(unset["instance_info"], json!({}));

    // A real Ironic answers 500 to the first, and 400 to the second if no caller has a project.
    if service.is_ours() {
        client.done(&["node", "unset", "changed", "--automated-clean"]);
        client.done(&["node", "set", "changed", "--owner", "someone"]);
        let node =
            client.json(&["node", "show", "changed", "--fields", "automated_clean", "owner"]);
        assert_eq!(node, json!({"automated_clean": null, "owner": "someone"}));
    }

    let renamed = client.run(&["node", "set", "changed", "--name", "renamed"]);
    assert_eq!(renamed.code, 0, "{}", renamed.stderr);
    assert_eq!(client.json(&["node", "show", "renamed"])["name"], "renamed");
}

#[test]
fn a_node_is_put_into_maintenance_with_a_reason() {
    let service = Service::start();
    let mut client = CommandLine::start(&service.url);
    create(&mut client, "serviced", &[]);

    client.done(&["node", "maintenance", "set", "serviced", "--reason", "a fan is loud"]);
    let node = client.json(&["node", "show", "serviced"]);
    assert_eq!(
        (&node["maintenance"], &node["maintenance_reason"]),
        (&json!(true), &json!("a fan is loud"))
    );
    assert_eq!(names(&client.json(&["node", "list", "--maintenance"])), ["serviced"]);

    client.done(&["node", "maintenance", "unset", "serviced"]);
    let node = client.json(&["node", "show", "serviced"]);
    assert_eq!((&node["maintenance"], &node["maintenance_reason"]), (&json!(false), &Value::Null));
}

#[test]
fn a_console_is_enabled_shown_and_disabled() {
    let service = Service::start();
    let mut client = CommandLine::start(&service.url);
    let node = create(&mut client, "seen", &["--console-interface", "fake"]);
    let off = json!({"console_enabled": false, "console_info": null});
    assert_eq!(client.json(&["node", "console", "show", "seen"]), off);

    client.done(&["node", "console", "enable", "seen"]);
    let shown = client.json(&["node", "console", "show", "seen"]);
    assert_eq!(shown["console_enabled"], true);
    assert_eq!(shown["console_info"]["type"], "websocket");
    let url = shown["console_info"]["url"].as_str().expect("a URL");
    let id = node["uuid"].as_str().expect("an id");
    assert!(url.starts_with("ws://"), "{url}");
    assert!(url.ends_with(&format!("/bedplate/v1/nodes/{id}/console")), "{url}");
    assert_eq!(client.json(&["node", "show", "seen"])["console_enabled"], true);

    client.done(&["node", "console", "disable", "seen"]);
    assert_eq!(client.json(&["node", "console", "show", "seen"]), off);

    create(&mut client, "unseen", &["--console-interface", "no-console"]);
    let refused = client.run(&["node", "console", "enable", "unseen"]);
    assert_ne!(refused.code, 0);
    assert!(refused.stderr.contains("no-console"), "{}", refused.stderr);
}

#[test]
fn a_node_has_traits() {
    let service = Service::start();
    let mut client = CommandLine::start(&service.url);
    create(&mut client, "traited", &[]);
    let traits = |client: &mut CommandLine| client.json(&["node", "trait", "list", "traited"]);

    client.done(&["node", "add", "trait", "traited", "CUSTOM_GPU", "HW_CPU_X86_VMX"]);
    assert_eq!(
        traits(&mut client),
        json!([{"traits": "CUSTOM_GPU"}, {"traits": "HW_CPU_X86_VMX"}])
    );
    assert_eq!(
        client.json(&["node", "show", "traited"])["traits"],
        json!(["CUSTOM_GPU", "HW_CPU_X86_VMX"])
    );
    client.done(&["node", "remove", "trait", "traited", "CUSTOM_GPU"]);
    assert_eq!(traits(&mut client), json!([{"traits": "HW_CPU_X86_VMX"}]));
    client.done(&["node", "remove", "trait", "traited", "--all"]);
    assert_eq!(traits(&mut client), json!([]));

    let said = client.refused(&["node", "add", "trait", "traited", "no trait"]);
    assert!(said.contains("(HTTP 400)"), "{said}");
}

#[test]
fn impossible_requests_are_refused_with_a_reason() {
    let service = Service::start();
    let mut client = CommandLine::start(&service.url);
    create(&mut client, "there", &[]);
    let mut refused = |words: &[&str], status: &str, reason: &str| {
        let said = client.refused(words);
        assert!(said.contains(status) && said.contains(reason), "{words:?}: {said}");
    };

    refused(&["node", "create", "--driver", "typewriter"], "(HTTP 400)", "typewriter");
    refused(&["node", "create", "--driver", "fake-hardware", "--name", "a b"], "(HTTP 400)", "a b");
    refused(
        &["node", "create", "--driver", "fake-hardware", "--uuid", "one"],
        "(HTTP 400)",
        "uuid",
    );
    refused(&["node", "show", "elsewhere"], "(HTTP 404)", "Node elsewhere could not be found.");
    refused(&["node", "delete", "elsewhere"], "(HTTP 404)", "elsewhere");
    refused(&["node", "set", "there", "--driver", "typewriter"], "(HTTP 400)", "typewriter");
    refused(
        &["node", "provide", "there"],
        "(HTTP 400)",
        "requested action \"provide\" can not be performed on node",
    );
    refused(&["node", "deploy", "there"], "(HTTP 400)", "while it is in state \"enroll\"");
    // The client itself refuses these.
    refused(&["node", "list", "--sort", "colour:asc"], "", "colour");
    refused(&["node", "list", "--fields", "colour"], "", "colour");
}
