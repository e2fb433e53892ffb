//! Wire tests of discoveries, their acceptance, and of BMCs that belong to one node.

use baremetal_core::{Discovery, DiscoveryId};
use serde_json::{Value, json};

use crate::api::{Api, ID, NEWEST};

const MAC: &str = "52:54:00:00:00:01";
const ACCEPT: &str = "/bedplate/v1/discoveries/525400000001/accept";

/// Stores the report of a machine's agent.
async fn discover(api: &Api) {
    let at = "2026-01-02T03:04:05Z".parse().unwrap();
    let data = json!({
        "inventory": {
            "interfaces": [{
                "name": "eth0", "mac_address": MAC, "has_carrier": true,
                "lldp": [[1, "04020000000700"], [2, "0545746831"], [5, "746f72"]],
            }],
            "bmc_address": "192.0.2.9", "memory": {"physical_mb": 2048},
        },
        "plugin_data": {"boot_interface": MAC},
    });
    let id = DiscoveryId::Machine(MAC.parse().unwrap());
    let found = Discovery { id, first_seen_at: at, last_seen_at: at, data: Some(data), node: None };
    api.store.save_discovery(&found).await.unwrap();
}

#[tokio::test]
async fn discovered_machines_are_listed_and_deleted() {
    let api = Api::start().await;
    let id = MAC.parse().unwrap();
    api.store.touch_discovery(id, "2026-01-02T03:04:05Z".parse().unwrap()).await.unwrap();
    api.get("/bedplate/v1/discoveries").await.has(200).is(r#"{"discoveries": [{
            "id": "52:54:00:00:00:01", "kind": "machine", "mac": "52:54:00:00:00:01",
            "first_seen_at": "2026-01-02T03:04:05.000000+00:00",
            "last_seen_at": "2026-01-02T03:04:05.000000+00:00",
            "bmc_addresses": [], "neighbours": [], "refused": null, "data": null
        }]}"#);
    api.send("DELETE", "/bedplate/v1/discoveries/525400000001", NEWEST, "").await.has(204);
    api.get("/bedplate/v1/discoveries").await.is(r#"{"discoveries": []}"#);
    let why = "id: \"zz\" is neither a MAC address nor the address and port of a BMC";
    api.send("DELETE", "/bedplate/v1/discoveries/zz", NEWEST, "").await.refuses(400, why);
}

#[tokio::test]
async fn a_discovery_shows_its_switch_and_its_bmc() {
    let api = Api::start().await;
    discover(&api).await;
    let listed = api.get("/bedplate/v1/discoveries").await.has(200).json();
    let found = &listed["discoveries"][0];
    assert_eq!(found["bmc_addresses"], json!(["192.0.2.9"]));
    let neighbour = json!({
        "interface": "eth0", "mac": MAC, "switch_id": "02:00:00:00:07:00", "port_id": "Eth1",
        "switch_name": "tor",
    });
    assert_eq!(found["neighbours"], json!([neighbour]));
}

#[tokio::test]
async fn a_discovery_that_rules_refused_tells_why() {
    let api = Api::start().await;
    discover(&api).await;
    let found = api.store.find_discovery(MAC.parse().unwrap()).await.unwrap().unwrap();
    let refused = found.with_refusal("not ours".to_owned());
    api.store.update_discovery_data(&refused).await.unwrap();
    let listed = api.get("/bedplate/v1/discoveries").await.has(200).json();
    assert_eq!(listed["discoveries"][0]["refused"], "not ours");
}

#[tokio::test]
async fn a_discovery_is_accepted_into_a_node_once() {
    let api = Api::start().await;
    discover(&api).await;
    let body = json!({
        "name": "r1u1", "resource_class": "large",
        "driver_info": {"redfish_username": "admin", "redfish_password": "s3cret"},
    });
    let accepted = api.send("POST", ACCEPT, NEWEST, &body.to_string()).await.has(200).json();
    assert_eq!((&accepted["name"], &accepted["result"]), (&json!("r1u1"), &json!("accepted")));
    let again = api.send("POST", ACCEPT, NEWEST, "{}").await.has(200).json();
    assert_eq!((&again["uuid"], &again["result"]), (&accepted["uuid"], &json!("present")));
    api.get("/bedplate/v1/discoveries").await.is(r#"{"discoveries": []}"#);

    let node = api.get("/v1/nodes/r1u1").await.has(200).json();
    assert_eq!(node["provision_state"], "enroll");
    assert_eq!(node["properties"]["memory_mb"], 2048);
    assert_eq!(node["resource_class"], "large");
    let info = json!({
        "redfish_address": "https://192.0.2.9", "redfish_username": "admin",
        "redfish_password": "******",
    });
    assert_eq!(node["driver_info"], info);
    let ports = api.get("/v1/nodes/r1u1/ports/detail").await.has(200).json();
    assert_eq!(ports["ports"].as_array().unwrap().len(), 1);
    let link = json!({"switch_id": "02:00:00:00:07:00", "port_id": "Eth1", "switch_info": "tor"});
    assert_eq!(ports["ports"][0]["local_link_connection"], link);
    let inventory = api.get("/v1/nodes/r1u1/inventory").await.has(200).json();
    assert_eq!(inventory["inventory"]["bmc_address"], "192.0.2.9");
    let history = api.get("/v1/nodes/r1u1/history").await.has(200).json();
    assert_eq!(history["history"].as_array().unwrap().len(), 1);
    let stored = api.store.find_node(&"r1u1".parse().unwrap()).await.unwrap().unwrap();
    let password = stored.driver_info["redfish_password"].as_str().unwrap();
    assert!(password.starts_with("sealed:"), "it is stored in the clear");
}

#[tokio::test]
async fn an_acceptance_that_cannot_be_is_refused_by_name() {
    let api = Api::start().await;
    discover(&api).await;
    let refuse = async |body: Value, status, why: &str| {
        api.send("POST", ACCEPT, NEWEST, &body.to_string()).await.refuses(status, why);
    };
    let loopback = "driver_info.redfish_address: 127.0.0.1 is a loopback address; allow the address with bmc.networks in the \
                    configuration of the service";
    refuse(json!({"driver_info": {"redfish_address": "127.0.0.1"}}), 400, loopback).await;
    let refused = json!({"driver_info": {"redfish_password": "******"}}).to_string();
    let refused = api.send("POST", ACCEPT, NEWEST, &refused).await.has(400);
    assert!(refused.text.contains("driver_info.redfish_password"), "{}", refused.text);
    let unknown = api.send("POST", ACCEPT, NEWEST, r#"{"driver": "ilo"}"#).await.has(400);
    assert!(unknown.text.contains("driver: unknown driver"), "{}", unknown.text);
    let unknown = api.send("POST", ACCEPT, NEWEST, r#"{"uuid": "x"}"#).await.has(400);
    assert!(unknown.text.contains("uuid"), "{}", unknown.text);
    let nobody = "/bedplate/v1/discoveries/525400000009/accept";
    let why = "Discovery 52:54:00:00:00:09 could not be found.";
    api.send("POST", nobody, NEWEST, "{}").await.refuses(404, why);

    api.enroll(r#", "name": "n1""#).await;
    let taken = "name: \"n1\" is already in use";
    refuse(json!({"name": "n1"}), 409, taken).await;
    let port = json!({"node_uuid": ID, "address": MAC});
    let port = api.send("POST", "/v1/ports", NEWEST, &port.to_string()).await.has(201).json();
    let taken = format!("address: {MAC} belongs to node n1 ({ID}) already");
    refuse(json!({}), 409, &taken).await;
    let path = format!("/v1/ports/{}", port["uuid"].as_str().unwrap());
    api.send("DELETE", &path, NEWEST, "").await.has(204);
    api.edit(|node| {
        node.driver = baremetal_core::Driver::Redfish;
        node.driver_info.insert("redfish_address".to_owned(), "192.0.2.9".into());
    })
    .await;
    let taken = format!("driver_info: this BMC belongs to node n1 ({ID}) already");
    refuse(json!({}), 409, &taken).await;
    let listed = api.get("/bedplate/v1/discoveries").await.has(200).json();
    assert_eq!(listed["discoveries"].as_array().unwrap().len(), 1, "nothing was accepted");
    api.send("DELETE", "/v1/nodes/n1", NEWEST, "").await.has(204);
    api.send("POST", ACCEPT, NEWEST, "{}").await.has(200);
}

#[tokio::test]
async fn a_second_record_of_a_bmc_is_refused() {
    let api = Api::start().await;
    let node = |name: &str, address: &str| {
        let info = json!({"redfish_address": address});
        json!({"name": name, "driver": "redfish", "driver_info": info}).to_string()
    };
    let create = async |name: &str, address: &str| {
        api.send("POST", "/v1/nodes", NEWEST, &node(name, address)).await
    };
    let first = create("n1", "https://192.0.2.9").await.has(201).json();
    let id = first["uuid"].as_str().unwrap();
    let why = format!("driver_info: this BMC belongs to node n1 ({id}) already");
    create("n2", "192.0.2.9/").await.refuses(409, &why);
    create("n2", "https://192.0.2.10").await.has(201);
    let patch = json!([
        {"op": "replace", "path": "/driver_info/redfish_address", "value": "https://192.0.2.9:443"}
    ]);
    let patched = api.send("PATCH", "/v1/nodes/n2", NEWEST, &patch.to_string()).await;
    patched.refuses(409, &why);
    let shown = api.get("/v1/nodes/n2").await.has(200).json();
    assert_eq!(shown["driver_info"]["redfish_address"], "https://192.0.2.10");
    let mut imported: Value = serde_json::from_str(&node("n3", "https://192.0.2.9")).unwrap();
    imported["uuid"] = ID.into();
    let body = json!({"node": imported}).to_string();
    let path = format!("/bedplate/v1/import/nodes/{ID}");
    api.send("PUT", &path, NEWEST, &body).await.refuses(409, &why);
    let machine = |line: u32, address: &str| {
        json!({
            "line": line, "name": format!("m{line}"), "position": line, "driver": "redfish",
            "driver_info": {"redfish_address": address},
        })
    };
    for (machines, line, holder) in [
        (vec![machine(7, "https://192.0.2.9")], 7, "n1"),
        (vec![machine(1, "https://192.0.2.11"), machine(2, "192.0.2.11")], 1, "m2"),
    ] {
        let rack = json!({"name": "r1", "machines": machines}).to_string();
        let refused = api.send("POST", "/bedplate/v1/racks", NEWEST, &rack).await.has(400);
        let why = format!("line {line}: bmc: this BMC belongs to node {holder} already");
        assert!(refused.text.contains(&why), "{}", refused.text);
    }
}
