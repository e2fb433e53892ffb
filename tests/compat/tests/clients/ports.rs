//! Tests of `openstack baremetal port`.

use compat::{CommandLine, Service};
use serde_json::{Value, json};

#[test]
fn a_port_is_created_found_changed_and_deleted() {
    let service = Service::start();
    let mut client = CommandLine::start(&service.url);
    let node = client.json(&["node", "create", "--driver", "fake-hardware", "--name", "ported"]);
    let node = node["uuid"].as_str().expect("a uuid");
    let address = "52:54:00:AA:00:01";
    let kept = "52:54:00:aa:00:01";

    let port = client.json(&[
        "port",
        "create",
        address,
        "--node",
        node,
        "--pxe-enabled",
        "true",
        "--extra",
        "slot=1",
        "--local-link-connection",
        "switch_id=0a:1b:2c:3d:4e:5f",
        "--local-link-connection",
        "port_id=Ethernet3/1",
        "--physical-network",
        "physnet1",
    ]);
    assert_eq!(port["address"], kept);
    assert_eq!(port["node_uuid"], node);
    assert_eq!(port["pxe_enabled"], true);
    assert_eq!(port["extra"], json!({"slot": 1}));
    assert_eq!(port["physical_network"], "physnet1");
    assert_eq!(
        port["local_link_connection"],
        json!({"switch_id": "0a:1b:2c:3d:4e:5f", "port_id": "Ethernet3/1"})
    );
    let uuid = port["uuid"].as_str().expect("a uuid");

    assert_eq!(client.json(&["port", "show", uuid])["address"], kept);
    assert_eq!(client.json(&["port", "show", "--address", kept])["uuid"], uuid);
    let listed = json!([{"uuid": uuid, "address": kept}]);
    assert_eq!(client.json(&["port", "list", "--node", node]), listed);
    assert_eq!(client.json(&["port", "list", "--node", "ported"]), listed);
    assert_eq!(client.json(&["port", "list", "--address", kept]), listed);
    assert_eq!(client.json(&["port", "list", "--address", "52:54:00:aa:00:02"]), json!([]));
    assert_eq!(client.json(&["port", "list", "--long", "--node", node])[0]["node_uuid"], node);
    let fields =
        client.json(&["port", "list", "--node", node, "--fields", "address", "pxe_enabled"]);
    assert_eq!(fields, json!([{"address": kept, "pxe_enabled": true}]));

    client.done(&[
        "port",
        "set",
        uuid,
        "--address",
        "52:54:00:aa:00:03",
        "--pxe-disabled",
        "--extra",
        "row=2",
    ]);
    client.done(&["port", "unset", uuid, "--extra", "slot", "--physical-network"]);
    let port = client.json(&["port", "show", uuid]);
    assert_eq!(port["address"], "52:54:00:aa:00:03");
    assert_eq!(port["pxe_enabled"], false);
    assert_eq!(port["extra"], json!({"row": 2}));
    assert_eq!(port["physical_network"], Value::Null);

    assert_eq!(client.done(&["port", "delete", uuid]), format!("Deleted port {uuid}\n"));
    let said = client.refused(&["port", "show", uuid]);
    assert!(said.contains(&format!("Port {uuid} could not be found. (HTTP 404)")), "{said}");
    client.done(&["node", "delete", "ported"]);
}

#[test]
fn the_ports_of_a_node_are_deleted_with_it() {
    let service = Service::start();
    let mut client = CommandLine::start(&service.url);
    let node = client.json(&["node", "create", "--driver", "fake-hardware", "--name", "leaving"]);
    let node = node["uuid"].as_str().expect("a uuid");
    let port = client.json(&["port", "create", "52:54:00:aa:01:01", "--node", node]);
    client.done(&["node", "delete", "leaving"]);
    client.refused(&["port", "show", port["uuid"].as_str().expect("a uuid")]);
}

#[test]
fn an_invalid_port_is_refused() {
    let service = Service::start();
    let mut client = CommandLine::start(&service.url);
    let node = client.json(&["node", "create", "--driver", "fake-hardware", "--name", "portless"]);
    let node = node["uuid"].as_str().expect("a uuid");
    for (address, node) in [
        ("not-a-mac", node),
        ("52:54:00:aa:02:01", "00000000-0000-4000-8000-000000000000"),
        ("52:54:00:aa:02:01", "not-a-uuid"),
    ] {
        let said = client.refused(&["port", "create", address, "--node", node]);
        assert!(said.contains("(HTTP 400)"), "{address} {node}: {said}");
    }
    assert_eq!(client.json(&["port", "list", "--node", node]), json!([]));
    client.done(&["node", "delete", "portless"]);
}
