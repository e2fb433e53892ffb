//! Wire tests of imports: records of another service keep their ids, times and states.

use baremetal_core::NodeIdent;
use serde_json::{Map, Value, json};

use crate::api::{Answer, Api, ID, NEWEST};

const CHASSIS: &str = "5b1f2f0e-6a4b-4b0a-9a55-2f7a8e0c1d22";
const TEMPLATE: &str = "5c1f2f0e-6a4b-4b0a-9a55-2f7a8e0c1d22";
const RUNBOOK: &str = "5d1f2f0e-6a4b-4b0a-9a55-2f7a8e0c1d22";
const GROUP: &str = "5e1f2f0e-6a4b-4b0a-9a55-2f7a8e0c1d22";
const PORT: &str = "5f1f2f0e-6a4b-4b0a-9a55-2f7a8e0c1d22";
const CONNECTOR: &str = "601f2f0e-6a4b-4b0a-9a55-2f7a8e0c1d22";
const TARGET: &str = "611f2f0e-6a4b-4b0a-9a55-2f7a8e0c1d22";
const ALLOCATION: &str = "621f2f0e-6a4b-4b0a-9a55-2f7a8e0c1d22";
const RULE: &str = "631f2f0e-6a4b-4b0a-9a55-2f7a8e0c1d22";
const EVENT: &str = "641f2f0e-6a4b-4b0a-9a55-2f7a8e0c1d22";
const FAILURE: &str = "651f2f0e-6a4b-4b0a-9a55-2f7a8e0c1d22";
const VIF: &str = "661f2f0e-6a4b-4b0a-9a55-2f7a8e0c1d22";
const MADE: &str = "2025-03-01T10:00:00.000000+00:00";
const CHANGED: &str = "2025-04-01T10:00:00.000001+00:00";

/// A node in use with something of every kind, as Ironic shows them.
fn whole() -> Value {
    let mut node = json!({
        "uuid": ID, "name": "r1u1", "driver": "fake-hardware", "driver_info": {"redfish_password": "s3cret", "a": 1},
        "properties": {"cpus": 4}, "extra": {"e": 1}, "instance_info": {"image_source": "http://images.example/a.raw", "traits": []},
        "instance_uuid": ALLOCATION, "allocation_uuid": ALLOCATION, "instance_name": "web", "chassis_uuid": CHASSIS,
        "power_state": "power on", "provision_state": "active", "provision_updated_at": CHANGED,
        "last_error": "it burned.", "maintenance": true, "maintenance_reason": "fan", "fault": "power failure", "console_enabled": false,
        "inspection_started_at": MADE, "inspection_finished_at": CHANGED, "raid_config": {}, "target_raid_config": {},
    });
    let more = json!({
        "resource_class": "gpu", "traits": ["CUSTOM_GPU"], "conductor_group": "", "automated_clean": false,
        "protected": true, "protected_reason": "payroll", "retired": true, "retired_reason": "old", "owner": null, "lessee": null,
        "description": "blue", "boot_mode": "uefi", "secure_boot": false, "shard": "s1", "disable_power_off": true,
        "created_at": MADE, "updated_at": CHANGED, "deploy_interface": "fake", "rescue_interface": "no-rescue",
        "network_interface": "flat", "network_data": network(),
    });
    node.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let group = json!({
        "uuid": GROUP, "node_uuid": ID, "name": "bond", "address": "52:54:00:00:00:09", "mode": "802.3ad", "properties": {"miimon": "100"},
        "standalone_ports_supported": true, "extra": {}, "physical_network": null, "category": null, "internal_info": {},
        "created_at": MADE, "updated_at": null,
    });
    let port = json!({
        "uuid": PORT, "node_uuid": ID, "address": "52:54:00:00:00:01", "pxe_enabled": false, "portgroup_uuid": GROUP, "name": "p1",
        "local_link_connection": {"switch_id": "0a:1b:2c:3d:4e:5f", "port_id": "Gig0/1"}, "extra": {"x": 1}, "is_smartnic": false,
        "physical_network": null, "description": null, "internal_info": {"tenant_vif_port_id": VIF},
        "created_at": MADE, "updated_at": CHANGED,
    });
    let connector = json!({
        "uuid": CONNECTOR, "node_uuid": ID, "type": "iqn", "connector_id": "iqn.2025-01.example:a", "extra": {},
        "created_at": MADE, "updated_at": null,
    });
    let target = json!({
        "uuid": TARGET, "node_uuid": ID, "volume_type": "iscsi", "volume_id": "v1", "boot_index": 0,
        "properties": {"auth_password": "s3cret"}, "extra": {}, "created_at": MADE, "updated_at": null,
    });
    let allocation = json!({
        "uuid": ALLOCATION, "name": "web", "node_uuid": ID, "state": "active", "last_error": null, "resource_class": "gpu",
        "traits": [], "candidate_nodes": [ID], "extra": {"who": "ann"}, "owner": null, "created_at": MADE, "updated_at": CHANGED,
    });
    json!({
        "node": node, "portgroups": [group], "ports": [port], "volume_connectors": [connector],
        "volume_targets": [target], "allocation": allocation,
        "inventory": {"inventory": {"cpu": {"count": 4}}, "plugin_data": {"root_disk": "sda"}},
        "history": history(),
    })
}

/// A document of `network_data` with one network.
fn network() -> Value {
    json!({
        "links": [{"id": "eth0", "type": "phy", "ethernet_mac_address": "52:54:00:00:00:01"}],
        "networks": [{"id": "n0", "network_id": "n0", "link": "eth0", "type": "ipv4_dhcp"}],
        "services": [],
    })
}

/// A failure of the past, and an event before it.
fn history() -> Value {
    json!([
        {
            "uuid": FAILURE, "created_at": CHANGED, "severity": "ERROR", "event": "the fan failed", "event_type": "monitoring",
            "user": null, "project": null, "state": "active", "target_provision_state": null, "duration_seconds": 86400,
        },
        {
            "uuid": EVENT, "created_at": MADE, "severity": "INFO", "event": "began", "event_type": "transition",
            "user": "u-1", "project": "p-1", "state": null, "target_provision_state": "active", "duration_seconds": null,
        },
    ])
}

async fn put(api: &Api, kind: &str, id: &str, body: &Value) -> Answer {
    api.send("PUT", &format!("/bedplate/v1/import/{kind}/{id}"), NEWEST, &body.to_string()).await
}

async fn with_chassis() -> Api {
    let api = Api::start().await;
    let chassis = json!({"uuid": CHASSIS, "description": "row 3", "extra": {}, "created_at": MADE, "updated_at": null});
    put(&api, "chassis", CHASSIS, &chassis).await.has(200).is(r#"{"result": "imported"}"#);
    api
}

/// A node with only the required fields, in this state.
fn node_in(state: &str) -> Value {
    json!({"node": {"uuid": ID, "driver": "fake-hardware", "provision_state": state}})
}

/// Fails unless `shown` has every field of `sent`.
#[track_caller]
fn has_all(shown: &Value, sent: &Value) {
    let fields = |it: &Value| it.as_object().unwrap().clone();
    let (shown, sent): (Map<String, Value>, _) = (fields(shown), fields(sent));
    for (field, value) in sent {
        assert_eq!(shown[&field], value, "{field}");
    }
}

#[tokio::test]
async fn a_node_is_imported_with_everything_that_belongs_to_it() {
    let api = with_chassis().await;
    put(&api, "nodes", ID, &whole()).await.has(200).is(r#"{"result": "imported"}"#);
    let mut want = whole();
    want["node"]["driver_info"]["redfish_password"] = "******".into();
    want["node"]["last_error"] = "it burned. Hint: fix the cause; then repeat the request.".into();
    want["volume_targets"][0]["properties"]["auth_password"] = "******".into();
    for (path, sent) in [
        (format!("/v1/nodes/{ID}"), &want["node"]),
        (format!("/v1/portgroups/{GROUP}"), &want["portgroups"][0]),
        (format!("/v1/ports/{PORT}"), &want["ports"][0]),
        (format!("/v1/volume/connectors/{CONNECTOR}"), &want["volume_connectors"][0]),
        (format!("/v1/volume/targets/{TARGET}"), &want["volume_targets"][0]),
        (format!("/v1/allocations/{ALLOCATION}"), &want["allocation"]),
        (format!("/v1/nodes/{ID}/inventory"), &want["inventory"]),
    ] {
        has_all(&api.get(&path).await.has(200).json(), sent);
    }
    let chassis = api.get(&format!("/v1/chassis/{CHASSIS}")).await.has(200).json();
    assert_eq!(chassis["created_at"], MADE);
    let vifs = api.get(&format!("/v1/nodes/{ID}/vifs")).await.has(200).json();
    assert_eq!(vifs["vifs"], json!([{"id": VIF}]));
}

#[tokio::test]
async fn a_history_is_imported_in_the_order_of_its_times() {
    let api = with_chassis().await;
    put(&api, "nodes", ID, &whole()).await.has(200);
    let path = format!("/v1/nodes/{ID}/history");
    let shown = api.get(&format!("{path}?detail=true")).await.has(200).json();
    let shown = shown["history"].as_array().unwrap();
    let [began, failed, imported] = &shown[..] else { panic!("{shown:#?}") };
    has_all(began, &history()[1]);
    has_all(failed, &history()[0]);
    assert_eq!(imported["event"], "the node was imported");
    api.get(&format!("{path}/{EVENT}")).await.has(200);
}

#[tokio::test]
async fn every_mistake_of_a_history_is_named() {
    let api = Api::start().await;
    for (field, value, problem) in [
        ("uuid", Value::Null, "uuid: is required"),
        ("created_at", Value::Null, "created_at: is required"),
        ("severity", json!("WARN"), "severity: must be INFO or ERROR"),
        ("duration_seconds", json!("1"), "duration_seconds: must be a whole number, not a string"),
        ("conductor", json!("c"), "conductor: unknown field of a history entry"),
    ] {
        let mut body = node_in("active");
        body["history"] = json!([history()[1]]);
        body["history"][0][field] = value;
        let id = if field == "uuid" { "without uuid" } else { EVENT };
        let why = format!("history entry {id}: {problem}");
        put(&api, "nodes", ID, &body).await.refuses(400, &why);
    }
    let mut body = node_in("active");
    body["history"] = vec![history()[1].clone(); 300].into();
    put(&api, "nodes", ID, &body).await.refuses(400, "history: at most 299 are allowed");
    body["history"] = json!([history()[1], history()[1]]);
    let why = format!("history: \"{EVENT}\" is already in use");
    put(&api, "nodes", ID, &body).await.refuses(409, &why);
    api.get(&format!("/v1/nodes/{ID}")).await.has(404);
}

#[tokio::test]
async fn a_vif_or_a_network_that_cannot_be_kept_is_refused() {
    let api = Api::start().await;
    let mut body = node_in("active");
    let port = |number: u8, info: Value| {
        let address = format!("52:54:00:00:00:0{number}");
        let id = format!("{}{number}", &PORT[..PORT.len() - 1]);
        json!({"uuid": id, "node_uuid": ID, "address": address, "internal_info": info})
    };
    let vif = json!({"tenant_vif_port_id": VIF});
    body["ports"] = json!([port(1, vif.clone()), port(2, vif)]);
    let why = format!("internal_info: VIF {VIF} is attached to more than one port of the node");
    put(&api, "nodes", ID, &body).await.refuses(400, &why);

    let first = port(1, json!({}))["uuid"].as_str().unwrap().to_owned();
    for (info, problem) in [
        (json!({"cleaning_vif_port_id": VIF}), "cleaning_vif_port_id: cannot be imported"),
        (json!({"tenant_vif_port_id": "a b"}), "tenant_vif_port_id: must be a UUID or a name"),
    ] {
        body["ports"] = json!([port(1, info)]);
        let why = format!("port {first}: internal_info.{problem}");
        put(&api, "nodes", ID, &body).await.refuses(400, &why);
    }

    let mut body = node_in("active");
    body["node"]["network_data"] = network();
    body["node"]["network_data"]["networks"] = json!([]);
    let why = "network_data: networks: the ramdisk configures exactly one network";
    put(&api, "nodes", ID, &body).await.refuses(400, why);
}

#[tokio::test]
async fn no_work_and_no_power_request_follows_an_import() {
    let api = with_chassis().await;
    put(&api, "nodes", ID, &whole()).await.has(200);
    let ident: NodeIdent = ID.parse().unwrap();
    let node = api.store.find_node(&ident).await.unwrap().unwrap();
    assert!(
        node.work.is_none() && node.power_request.is_none() && node.boot_setting_request.is_none()
    );
    assert!(node.network_changes.are_done(), "no VIF is bound or released");
    assert!(api.store.unfinished_nodes().await.unwrap().is_empty());
    let stored = node.driver_info["redfish_password"].as_str().unwrap();
    assert!(!stored.contains("s3cret"), "the password is sealed");
}

#[tokio::test]
async fn a_second_import_changes_nothing() {
    let api = with_chassis().await;
    put(&api, "nodes", ID, &whole()).await.has(200);
    let path = format!("/v1/nodes/{ID}");
    let before = api.get(&path).await.json();
    let mut other = whole();
    other["node"]["description"] = "green".into();
    put(&api, "nodes", ID, &other).await.has(200).is(r#"{"result": "present"}"#);
    assert_eq!(api.get(&path).await.json(), before);
    let chassis = json!({"uuid": CHASSIS, "description": "row 4"});
    put(&api, "chassis", CHASSIS, &chassis).await.has(200).is(r#"{"result": "present"}"#);
    let shown = api.get(&format!("/v1/chassis/{CHASSIS}")).await.json();
    assert_eq!(shown["description"], "row 3");
}

#[tokio::test]
async fn a_dry_run_writes_nothing_and_finds_what_is_in_use() {
    let api = Api::start().await;
    let path = format!("/bedplate/v1/import/nodes/{ID}?dry_run=true");
    let check = async |body: &Value| api.send("PUT", &path, NEWEST, &body.to_string()).await;
    check(&whole()).await.has(200).is(r#"{"result": "checked"}"#);
    api.get(&format!("/v1/nodes/{ID}")).await.has(404);
    for list in ["ports", "portgroups", "allocations", "nodes"] {
        assert_eq!(api.get(&format!("/v1/{list}")).await.json()[list], json!([]), "{list}");
    }
    let other = json!({"driver": "fake-hardware", "name": "other"});
    let other = api.send("POST", "/v1/nodes", NEWEST, &other.to_string()).await.has(201).json();
    let port = json!({"node_uuid": other["uuid"], "address": "52:54:00:00:00:01"});
    api.send("POST", "/v1/ports", NEWEST, &port.to_string()).await.has(201);
    let used = "address: \"52:54:00:00:00:01\" is already in use";
    check(&whole()).await.refuses(409, used);
    put(&api, "nodes", ID, &{
        let mut body = whole();
        body["node"].as_object_mut().unwrap().remove("chassis_uuid");
        body
    })
    .await
    .refuses(409, used);
    api.get(&format!("/v1/nodes/{ID}")).await.has(404);
    api.get(&format!("/v1/allocations/{ALLOCATION}")).await.has(404);
}

#[tokio::test]
async fn every_state_without_work_in_progress_is_imported() {
    let stable = [
        "enroll",
        "manageable",
        "available",
        "active",
        "rescue",
        "error",
        "inspect failed",
        "clean failed",
        "deploy failed",
        "adopt failed",
        "service failed",
        "rescue failed",
        "unrescue failed",
    ];
    for state in stable {
        let api = Api::start().await;
        put(&api, "nodes", ID, &node_in(state)).await.has(200);
        let shown = api.get(&format!("/v1/nodes/{ID}")).await.has(200).json();
        assert_eq!(shown["provision_state"], state);
        assert_eq!(shown["target_provision_state"], Value::Null);
    }
    let api = Api::start().await;
    for state in ["deploying", "cleaning", "wait call-back", "clean hold", "deleting", "verifying"]
    {
        let why = format!(
            "provision_state: a node in state \"{state}\" has work in progress, which cannot continue here; wait for its end or abort it, then import the node again"
        );
        put(&api, "nodes", ID, &node_in(state)).await.refuses(400, &why);
    }
}

#[tokio::test]
async fn every_mistake_of_a_node_is_named() {
    let api = Api::start().await;
    let mut body = node_in("active");
    for (field, value) in [
        ("raid_interface", json!("irmc")),
        ("network_interface", json!("fake")),
        ("created_at", json!("yesterday")),
        ("reservation", json!("c1")),
        ("colour", json!("red")),
    ] {
        body["node"][field] = value;
    }
    let why = "created_at: must be a time such as 2026-01-31T23:59:59+00:00; reservation: cannot be imported; \
        network_interface: driver fake-hardware does not support \"fake\"; it supports noop, flat, neutron; \
        raid_interface: driver fake-hardware does not support \"irmc\"; it supports fake, no-raid, agent; \
        colour: unknown field of a node";
    put(&api, "nodes", ID, &body).await.refuses(400, why);

    let mut body = node_in("active");
    body["node"]["driver"] = "redfish".into();
    body["node"]["deploy_interface"] = "fake".into();
    body["node"]["storage_interface"] = "fake".into();
    let why = "deploy_interface: driver redfish does not support \"fake\"; it supports direct, custom-agent, ramdisk, bootc, autodetect; \
        storage_interface: driver redfish does not support \"fake\"; it supports noop";
    put(&api, "nodes", ID, &body).await.refuses(400, why);

    body["node"]["driver"] = "ilo".into();
    let why = "driver: unknown driver \"ilo\"; use fake-hardware, idrac, ipmi, manual-management or redfish";
    put(&api, "nodes", ID, &body).await.refuses(400, why);
    api.get(&format!("/v1/nodes/{ID}")).await.has(404);
}

#[tokio::test]
async fn a_masked_secret_or_an_unusable_bmc_is_refused() {
    let api = Api::start().await;
    let mut body = node_in("manageable");
    body["node"]["driver"] = "redfish".into();
    body["node"]["driver_info"] =
        json!({"redfish_address": "https://192.0.2.1", "redfish_password": "******"});
    let why = "driver_info.redfish_password: is the mask ******, but no secret is stored: send the secret itself";
    put(&api, "nodes", ID, &body).await.refuses(400, why);
    body["node"]["driver_info"] =
        json!({"redfish_address": "https://192.0.2.1", "redfish_verify_ca": "/etc/ca.pem"});
    let refused = put(&api, "nodes", ID, &body).await.has(400);
    assert!(
        refused.text.contains("driver_info") && refused.text.contains("redfish_verify_ca"),
        "{}",
        refused.text
    );
}

#[tokio::test]
async fn a_conductor_group_without_a_conductor_is_refused() {
    let api = Api::start().await;
    let mut body = node_in("active");
    body["node"]["conductor_group"] = "row-9".into();
    let refused = put(&api, "nodes", ID, &body).await.has(400);
    assert!(refused.text.contains("no conductor is in group"), "{}", refused.text);
}

#[tokio::test]
async fn a_node_with_more_parts_than_a_node_may_have_is_refused() {
    let api = Api::start().await;
    for list in ["ports", "portgroups", "volume_connectors", "volume_targets"] {
        let mut body = node_in("active");
        body[list] = vec![json!({}); 257].into();
        let why = format!("{list}: at most 256 are allowed");
        put(&api, "nodes", ID, &body).await.refuses(400, &why);
    }
    api.get(&format!("/v1/nodes/{ID}")).await.has(404);
}

#[tokio::test]
async fn a_part_of_another_node_is_refused() {
    let api = Api::start().await;
    let mut body = node_in("active");
    body["ports"] = json!([{"uuid": PORT, "node_uuid": PORT, "address": "52:54:00:00:00:01"}]);
    let why = "uuid and node_uuid must be there, and node_uuid must be this node";
    put(&api, "nodes", ID, &body).await.refuses(400, &format!("port {PORT}: {why}"));
    body["ports"] = json!([]);
    body["volume_connectors"] =
        json!([{"uuid": PORT, "node_uuid": PORT, "type": "ip", "connector_id": "x"}]);
    put(&api, "nodes", ID, &body).await.refuses(400, &format!("volume connector {PORT}: {why}"));
    put(&api, "nodes", PORT, &node_in("active"))
        .await
        .refuses(400, "uuid: must be the UUID of the path");
}

#[tokio::test]
async fn templates_runbooks_rules_and_failed_allocations_are_imported() {
    let api = Api::start().await;
    let template = json!({
        "uuid": TEMPLATE, "name": "CUSTOM_RAID", "description": null, "extra": {}, "created_at": MADE, "updated_at": CHANGED,
        "steps": [{"interface": "raid", "step": "create", "args": {}, "priority": 90}],
    });
    put(&api, "deploy-templates", TEMPLATE, &template).await.has(200);
    has_all(&api.get("/v1/deploy_templates/CUSTOM_RAID").await.has(200).json(), &template);
    let mut second = template.clone();
    second["uuid"] = RUNBOOK.into();
    put(&api, "deploy-templates", RUNBOOK, &second)
        .await
        .refuses(409, "name: \"CUSTOM_RAID\" is already in use");

    let runbook = json!({
        "uuid": RUNBOOK, "name": "CUSTOM_WIPE", "description": "d", "public": true, "owner": null, "disable_ramdisk": false,
        "traits": ["CUSTOM_A"], "extra": {}, "created_at": MADE, "updated_at": null,
        "steps": [{"interface": "deploy", "step": "erase_devices", "args": {}, "order": 1}],
    });
    put(&api, "runbooks", RUNBOOK, &runbook).await.has(200);
    has_all(&api.get(&format!("/v1/runbooks/{RUNBOOK}")).await.has(200).json(), &runbook);

    let rule = json!({
        "uuid": RULE, "description": "small", "priority": 10, "phase": "main", "sensitive": false,
        "conditions": [{"op": "!is-empty", "args": {"value": "{item}"}, "loop": ["a"], "multiple": "any"}],
        "actions": [{"op": "add-trait", "args": {"name": "CUSTOM_SMALL"}, "loop": []}],
        "created_at": MADE, "updated_at": CHANGED,
    });
    put(&api, "inspection-rules", RULE, &rule).await.has(200).is(r#"{"result": "imported"}"#);
    let mut shown = api.get(&format!("/v1/inspection_rules/{RULE}")).await.has(200).json();
    shown["actions"][0]["loop"] = json!([]);
    has_all(&shown, &rule);
    let mut hidden = rule.clone();
    (hidden["sensitive"], hidden["actions"]) = (true.into(), Value::Null);
    put(&api, "inspection-rules", RULE, &hidden).await.has(200).is(r#"{"result": "present"}"#);
    hidden["uuid"] = PORT.into();
    let why = "actions: must be a list, not null";
    put(&api, "inspection-rules", PORT, &hidden).await.refuses(400, why);

    let failed = json!({
        "uuid": ALLOCATION, "name": "x", "node_uuid": null, "state": "error", "last_error": "none", "resource_class": "gpu",
        "traits": ["CUSTOM_A"], "candidate_nodes": [], "extra": {}, "owner": null, "created_at": MADE, "updated_at": null,
    });
    put(&api, "allocations", ALLOCATION, &failed).await.has(200);
    has_all(&api.get(&format!("/v1/allocations/{ALLOCATION}")).await.has(200).json(), &failed);
    let mut waiting = failed.clone();
    waiting["uuid"] = PORT.into();
    waiting["state"] = "allocating".into();
    let why = "state: an allocation that still waits for its node cannot be imported";
    put(&api, "allocations", PORT, &waiting).await.refuses(400, why);
}
