//! Tests of `openstack baremetal allocation`.

use compat::{CommandLine, Service};
use serde_json::{Value, json};

/// Creates a node that is available for allocations.
fn available(client: &mut CommandLine, name: &str) -> Value {
    let pretend = ["boot", "deploy", "inspect", "management", "power"]
        .map(|kind| [format!("--{kind}-interface"), "fake".to_owned()]);
    let create = ["node", "create", "--driver", "fake-hardware", "--resource-class", "gpu"];
    let words = create.into_iter().chain(["--name", name]);
    let words: Vec<&str> = words.chain(pretend.iter().flatten().map(String::as_str)).collect();
    let node = client.json(&words);
    client.done(&["node", "manage", "--wait", "60", name]);
    client.done(&["node", "add", "trait", name, "CUSTOM_FAST"]);
    client.done(&["node", "provide", "--wait", "60", name]);
    // Only a node with a known power state is allocated.
    client.done(&["node", "power", "off", name]);
    node["uuid"].clone()
}

#[test]
fn a_node_is_allocated_used_and_released() {
    let service = Service::start();
    let mut client = CommandLine::start(&service.url);
    let node = available(&mut client, "n1");

    let create = ["allocation", "create", "--wait", "--resource-class", "gpu", "--name", "job"];
    let wish = ["--trait", "CUSTOM_FAST", "--candidate-node", "n1", "--extra", "for=me"];
    let made = client.json(&[&create[..], &wish].concat());
    assert_eq!((&made["state"], &made["node_uuid"]), (&json!("active"), &node));
    assert_eq!(
        (&made["candidate_nodes"], &made["traits"]),
        (&json!([node]), &json!(["CUSTOM_FAST"]))
    );
    assert_eq!((&made["extra"], &made["resource_class"]), (&json!({"for": "me"}), &json!("gpu")));
    let shown = client.json(&["node", "show", "n1"]);
    assert_eq!(
        (&shown["allocation_uuid"], &shown["instance_uuid"]),
        (&made["uuid"], &made["uuid"])
    );

    assert_eq!(client.json(&["allocation", "show", "job"])["uuid"], made["uuid"]);
    for filter in [&["--state", "active"], &["--node", "n1"], &["--resource-class", "gpu"]] {
        let listed = client.json(&[&["allocation", "list", "--long"], &filter[..]].concat());
        assert_eq!(listed.as_array().expect("a list").len(), 1, "{filter:?}");
    }
    assert_eq!(client.json(&["allocation", "list", "--state", "error"]), json!([]));

    client.done(&["allocation", "set", "job", "--name", "other", "--extra", "x=1"]);
    assert_eq!(
        client.json(&["allocation", "show", "other"])["extra"],
        json!({"for": "me", "x": 1})
    );
    client.done(&["allocation", "unset", "other", "--name", "--extra", "x"]);
    let uuid = made["uuid"].as_str().expect("a uuid");
    let shown = client.json(&["allocation", "show", uuid]);
    assert_eq!((&shown["name"], &shown["extra"]), (&Value::Null, &json!({"for": "me"})));

    client.done(&["node", "deploy", "--wait", "60", "n1"]);
    client.refused(&["allocation", "delete", uuid]);
    client.done(&["node", "undeploy", "--wait", "60", "n1"]);
    assert_eq!(client.json(&["allocation", "list"]), json!([]));
    assert_eq!(client.json(&["node", "show", "n1"])["instance_uuid"], Value::Null);
}

#[test]
fn an_allocation_without_a_matching_node_is_in_error() {
    let service = Service::start();
    let mut client = CommandLine::start(&service.url);
    client.done(&["allocation", "create", "--resource-class", "none", "--name", "vain"]);
    client.refused(&["allocation", "create", "--wait", "--resource-class", "none"]);
    let shown = client.json(&["allocation", "show", "vain"]);
    assert_eq!((&shown["state"], &shown["node_uuid"]), (&json!("error"), &Value::Null));
    let why = shown["last_error"].as_str().expect("a reason");
    assert!(why.contains("no available nodes match the resource class none"), "{why}");
    let twin = ["allocation", "create", "--resource-class", "none", "--name", "vain"];
    client.refused(&twin);
    client.done(&["allocation", "delete", "vain"]);
    client.refused(&["allocation", "show", "vain"]);
}
