//! Wire tests of creating, showing and deleting nodes.

use baremetal_core::State;
use uuid::Uuid;

use crate::api::{Api, ID, NEWEST};

fn links(part: &str) -> String {
    format!(
        r#"[{{"href": "http://api:6385/v1/nodes/{ID}{part}", "rel": "self"}},
            {{"href": "http://api:6385/nodes/{ID}{part}", "rel": "bookmark"}}]"#
    )
}

#[tokio::test]
async fn a_node_is_created_with_every_field_of_the_newest_version() {
    let api = Api::start().await;
    let body = format!(
        r#"{{"uuid": "{ID}", "driver": "redfish", "name": "n1", "resource_class": "big", "extra": {{"a": [1]}},
            "driver_info": {{"redfish_address": "https://10.0.0.1", "redfish_password": "s3cret"}}}}"#
    );
    let answer = api.send("POST", "/v1/nodes", NEWEST, &body).await.has(201);
    assert_eq!(answer.headers["location"], format!("http://api:6385/v1/nodes/{ID}").as_str());
    assert!(!answer.text.contains("s3cret"));
    let want = format!(
        r#"{{
            "uuid": "{ID}", "name": "n1", "created_at": "2026-01-02T03:04:05.000006+00:00", "updated_at": null,
            "driver": "redfish",
            "driver_info": {{"redfish_address": "https://10.0.0.1", "redfish_password": "******"}},
            "driver_internal_info": {{}}, "properties": {{}}, "extra": {{"a": [1]}}, "instance_info": {{}},
            "instance_uuid": null, "instance_name": null, "chassis_uuid": null, "allocation_uuid": null,
            "power_state": null, "target_power_state": null, "provision_state": "enroll",
            "target_provision_state": null, "provision_updated_at": null, "last_error": null, "maintenance": false,
            "maintenance_reason": null, "console_enabled": false, "reservation": null, "fault": null, "health": null,
            "inspection_started_at": null, "inspection_finished_at": null, "clean_step": {{}}, "deploy_step": {{}},
            "service_step": {{}}, "raid_config": {{}}, "target_raid_config": {{}}, "network_data": {{}},
            "resource_class": "big", "traits": [], "conductor_group": "", "conductor": "host-1",
            "automated_clean": null, "protected": false, "protected_reason": null, "retired": false,
            "retired_reason": null, "owner": null, "lessee": null, "description": null, "boot_mode": null,
            "secure_boot": null, "shard": null, "parent_node": null, "disable_power_off": false,
            "bios_interface": "redfish", "boot_interface": "ipxe", "console_interface": "no-console",
            "deploy_interface": "direct", "firmware_interface": "redfish", "inspect_interface": "agent",
            "management_interface": "redfish", "network_interface": "noop", "power_interface": "redfish",
            "raid_interface": "redfish", "rescue_interface": "no-rescue", "storage_interface": "noop",
            "vendor_interface": "redfish",
            "links": {}, "ports": {}, "states": {}, "portgroups": {}, "volume": {}
        }}"#,
        links(""),
        links("/ports"),
        links("/states"),
        links("/portgroups"),
        links("/volume")
    );
    answer.is(&want);
    api.get(&format!("/v1/nodes/{ID}")).await.has(200).is(&want);
    api.get("/v1/nodes/n1").await.has(200).is(&want);
}

#[tokio::test]
async fn the_oldest_version_shows_no_later_field() {
    let api = Api::start().await;
    api.enroll(r#", "name": "n1", "owner": "me""#).await;
    let want = format!(
        r#"{{
            "uuid": "{ID}", "created_at": "2026-01-02T03:04:05.000006+00:00", "updated_at": null,
            "driver": "fake-hardware", "driver_info": {{}}, "properties": {{}}, "extra": {{}}, "instance_info": {{}},
            "instance_uuid": null, "chassis_uuid": null, "power_state": null, "target_power_state": null,
            "provision_state": "enroll", "target_provision_state": null, "provision_updated_at": null,
            "last_error": null, "maintenance": false, "maintenance_reason": null, "console_enabled": false,
            "reservation": null, "links": {}, "ports": {}
        }}"#,
        links(""),
        links("/ports")
    );
    api.send("GET", &format!("/v1/nodes/{ID}"), "", "").await.has(200).is(&want);
    api.send("GET", "/v1/nodes/n1", "1.4", "").await.refuses(404, "Node n1 could not be found.");
}

/// Each field and the microversion that introduced it, as observed on a running Ironic 39.
#[tokio::test]
async fn each_field_appears_exactly_from_its_version() {
    let api = Api::start().await;
    api.enroll("").await;
    let later: &[(u16, &[&str])] = &[
        (3, &["driver_internal_info"]),
        (5, &["name"]),
        (6, &["inspection_finished_at", "inspection_started_at"]),
        (7, &["clean_step"]),
        (12, &["raid_config", "target_raid_config"]),
        (14, &["states"]),
        (20, &["network_interface"]),
        (21, &["resource_class"]),
        (24, &["portgroups"]),
        (
            31,
            &[
                "boot_interface",
                "console_interface",
                "deploy_interface",
                "inspect_interface",
                "management_interface",
                "power_interface",
                "raid_interface",
                "vendor_interface",
            ],
        ),
        (32, &["volume"]),
        (33, &["storage_interface"]),
        (37, &["traits"]),
        (38, &["rescue_interface"]),
        (40, &["bios_interface"]),
        (42, &["fault"]),
        (44, &["deploy_step"]),
        (46, &["conductor_group"]),
        (47, &["automated_clean"]),
        (48, &["protected", "protected_reason"]),
        (49, &["conductor"]),
        (50, &["owner"]),
        (51, &["description"]),
        (52, &["allocation_uuid"]),
        (61, &["retired", "retired_reason"]),
        (65, &["lessee"]),
        (66, &["network_data"]),
        (75, &["boot_mode", "secure_boot"]),
        (82, &["shard"]),
        (83, &["parent_node"]),
        (86, &["firmware_interface"]),
        (87, &["service_step"]),
        (95, &["disable_power_off"]),
        (104, &["instance_name"]),
        (109, &["health"]),
    ];
    let mut before: Vec<String> = Vec::new();
    for minor in 1..=115 {
        let node = api.send("GET", &format!("/v1/nodes/{ID}"), &format!("1.{minor}"), "").await;
        let node = node.has(200).json();
        let now: Vec<String> = node.as_object().unwrap().keys().cloned().collect();
        if minor > 1 {
            let mut new: Vec<&str> =
                now.iter().filter(|key| !before.contains(key)).map(String::as_str).collect();
            new.sort_unstable();
            let want =
                later.iter().find(|(came, _)| *came == minor).map_or(&[][..], |(_, new)| new);
            assert_eq!(new, want, "1.{minor}");
        }
        before = now;
    }
}

#[tokio::test]
async fn a_node_names_the_network_of_its_ramdisk() {
    let api = Api::start().await;
    let network = |link: &str| {
        format!(
            r#"{{"links": [{{"id": "a", "type": "{link}", "ethernet_mac_address": "52:54:00:aa:00:01"}}],
                "networks": [{{"id": "b", "network_id": "b", "link": "a", "type": "ipv4", "ip_address": "192.0.2.20", "netmask": "255.255.255.0"}}],
                "services": []}}"#
        )
    };
    let new = |link| {
        format!(r#"{{"driver": "redfish", "uuid": "{ID}", "network_data": {}}}"#, network(link))
    };
    let refused = "network_data: links: the link \"a\" is a bond, and the ramdisk configures none";
    api.send("POST", "/v1/nodes", NEWEST, &new("bond")).await.refuses(400, refused);
    api.send("POST", "/v1/nodes", NEWEST, &new("phy")).await.has(201);
    let path = format!("/v1/nodes/{ID}?fields=network_data");
    let shown = api.get(&path).await.has(200);
    assert!(shown.text.contains("192.0.2.20"), "{}", shown.text);
    let patch = async |operation: &str| {
        let patch = format!(r#"[{{"path": "/network_data", {operation}}}]"#);
        api.send("PATCH", &format!("/v1/nodes/{ID}"), NEWEST, &patch).await
    };
    let wrong = r#""op": "replace", "value": {"links": [], "networks": [], "services": []}"#;
    let refused = "network_data: networks: the ramdisk configures exactly one network";
    patch(wrong).await.refuses(400, refused);
    assert_eq!(api.get(&path).await.has(200).text, shown.text);
    patch(r#""op": "remove""#).await.has(200);
    let none = api.get(&path).await.has(200);
    assert!(none.text.contains(r#""network_data":{}"#), "{}", none.text);
}

#[tokio::test]
async fn an_invalid_new_node_is_refused_by_field() {
    let api = Api::start().await;
    let post = async |version: &str, body: &str, status: u16, words: &str| {
        api.send("POST", "/v1/nodes", version, body).await.refuses(status, words);
    };
    post(NEWEST, "{}", 400, "driver: is required").await;
    post(NEWEST, r#"{"driver": 5}"#, 400, "driver: must be a string, not a number").await;
    let drivers = "driver: unknown driver \"zz\"; use fake-hardware, idrac, ipmi, manual-management or redfish";
    post(NEWEST, r#"{"driver": "zz"}"#, 400, drivers).await;
    post(NEWEST, r#"{"driver": "ipmi", "foo": 1}"#, 400, "foo: unknown field of a node").await;
    let read_only = "provision_state: cannot be set when a node is created";
    post(NEWEST, r#"{"driver": "ipmi", "provision_state": "active"}"#, 400, read_only).await;
    post(NEWEST, r#"{"driver": "ipmi", "uuid": "zz"}"#, 400, "uuid: must be a UUID").await;
    let name = "name: \"a b\" is not a valid name: use 1 to 255 characters of letters, digits, '-', '.', '_' and \
                '~', and not be a UUID";
    post(NEWEST, r#"{"driver": "ipmi", "name": "a b"}"#, 400, name).await;
    let interface = "boot_interface: driver ipmi does not support \"redfish-virtual-media\"; it supports ipxe, http-ipxe";
    post(
        NEWEST,
        r#"{"driver": "ipmi", "boot_interface": "redfish-virtual-media"}"#,
        400,
        interface,
    )
    .await;
    let owner = "owner: the requested version is 1.20; the minimal required API version is 1.50";
    post("1.20", r#"{"driver": "ipmi", "owner": "me"}"#, 406, owner).await;
    let parent = "parent_node: must be another node of the same owner";
    let body = format!(r#"{{"driver": "ipmi", "parent_node": "{ID}"}}"#);
    post(NEWEST, &body, 400, parent).await;
    let masked = "driver_info.ipmi_password: is the mask ******, but no secret is stored: send the secret itself";
    post(NEWEST, r#"{"driver": "ipmi", "driver_info": {"ipmi_password": "******"}}"#, 400, masked)
        .await;

    for (field, problem) in [
        (r#""name": """#, "name: must not be empty"),
        (r#""name": "maintenance""#, "name: \"maintenance\" is reserved"),
        (r#""instance_name": """#, "instance_name: must not be empty"),
        (r#""protected": true"#, "protected: cannot be set when a node is created"),
        (
            r#""conductor_group": "G2""#,
            "conductor_group: no conductor is in group \"g2\"; the groups with one are [\"\", \"g\", \"g1\"]",
        ),
    ] {
        post(NEWEST, &format!(r#"{{"driver": "ipmi", {field}}}"#), 400, problem).await;
    }

    api.enroll(r#", "name": "n1""#).await;
    post(NEWEST, r#"{"driver": "ipmi", "name": "n1"}"#, 409, "name: \"n1\" is already in use")
        .await;
    let id = format!(r#"{{"driver": "ipmi", "uuid": "{ID}"}}"#);
    post(NEWEST, &id, 409, &format!("uuid: \"{ID}\" is already in use")).await;
}

#[tokio::test]
async fn a_parent_is_named_and_has_the_same_owner() {
    let api = Api::start().await;
    api.enroll(r#", "name": "n1", "owner": "a""#).await;
    let child = async |more: &str| {
        let body = format!(r#"{{"driver": "ipmi", "parent_node": "n1"{more}}}"#);
        api.send("POST", "/v1/nodes", NEWEST, &body).await
    };
    let shown = child(r#", "name": "n2", "owner": "a""#).await.has(201).json();
    assert_eq!(shown["parent_node"], ID);
    let refused = "parent_node: must be another node of the same owner";
    child(r#", "owner": "b""#).await.refuses(400, refused);
    let patch =
        |parent: &str| format!(r#"[{{"op": "add", "path": "/parent_node", "value": "{parent}"}}]"#);
    child(r#", "name": "n3", "owner": "a""#).await.has(201);
    let patched = api.send("PATCH", "/v1/nodes/n3", NEWEST, &patch("n2")).await.has(200).json();
    assert_eq!(patched["parent_node"], shown["uuid"]);
    let unknown = api.send("PATCH", "/v1/nodes/n3", NEWEST, &patch("n9")).await;
    unknown.refuses(400, "parent_node: must be a UUID");
}

#[tokio::test]
async fn a_state_is_named_as_the_requested_version_names_it() {
    let api = Api::start().await;
    api.enroll("").await;
    let state = async |version: &str| {
        let path = format!("/v1/nodes/{ID}?fields=provision_state");
        api.send("GET", &path, version, "").await.has(200).json()["provision_state"].clone()
    };
    api.edit(|node| node.provision_state = State::InspectWait).await;
    assert_eq!(state("1.38").await, "inspecting");
    assert_eq!(state("1.39").await, "inspect wait");
    api.edit(|node| node.provision_state = State::Available).await;
    assert_eq!(state("1.8").await, "available");
    let oldest = api.send("GET", &format!("/v1/nodes/{ID}"), "1.1", "").await.json();
    assert_eq!(oldest["provision_state"], serde_json::Value::Null);
}

#[tokio::test]
async fn only_an_unused_node_can_be_deleted() {
    let api = Api::start().await;
    api.enroll(r#", "name": "n1""#).await;
    let delete = async || api.send("DELETE", "/v1/nodes/n1", NEWEST, "").await;
    api.edit(|node| {
        node.provision_state = State::Active;
        node.instance_uuid = Some(Uuid::nil());
    })
    .await;
    let used = "instance_uuid: node \"n1\" is used by instance 00000000-0000-0000-0000-000000000000 already";
    delete().await.refuses(409, used);
    api.edit(|node| node.instance_uuid = None).await;
    let active = "node \"n1\" cannot be deleted while it is in state \"active\": bring it to enroll, manageable or \
                  available, or put it into maintenance";
    delete().await.refuses(409, active);
    api.edit(|node| node.provision_state = State::Cleaning).await;
    let locked = "node \"n1\" is locked while it is cleaning; try again when its work is done";
    delete().await.refuses(409, locked);
    api.edit(|node| node.provision_state = State::Manageable).await;
    assert_eq!(delete().await.has(204).text, "");
    delete().await.refuses(404, "Node n1 could not be found.");
}

#[tokio::test]
async fn early_versions_know_only_host_names() {
    let api = Api::start().await;
    let body = r#"{"driver": "fake-hardware", "name": "under_score"}"#;
    let why = "name: must be a host name before version 1.10";
    api.send("POST", "/v1/nodes", "1.9", body).await.refuses(400, why);
    api.send("POST", "/v1/nodes", "1.10", body).await.has(201);
    let path = "/v1/nodes/under_score";
    api.send("GET", path, "1.9", "").await.refuses(400, why);
    api.send("GET", path, "1.10", "").await.has(200);
}
