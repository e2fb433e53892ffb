//! Wire tests of port groups.

use crate::api::{Api, ID, NEWEST};

const GROUP: &str = "7c0d9a4e-3b1f-4b0f-8a77-1f5e2d6c9b01";
const AT: &str = "2026-01-02T03:04:05.000006+00:00";

async fn with_group() -> Api {
    let api = Api::start().await;
    api.enroll(r#", "name": "n1""#).await;
    let body = format!(
        r#"{{"uuid": "{GROUP}", "node_uuid": "{ID}", "name": "bond0", "address": "52-54-00-AA-00-10",
             "mode": "802.3ad", "properties": {{"miimon": "100"}}, "standalone_ports_supported": false}}"#
    );
    api.send("POST", "/v1/portgroups", NEWEST, &body).await.has(201);
    api
}

fn links(part: &str) -> String {
    format!(
        r#"[{{"href": "http://api:6385/v1/portgroups/{GROUP}{part}", "rel": "self"}},
            {{"href": "http://api:6385/portgroups/{GROUP}{part}", "rel": "bookmark"}}]"#
    )
}

/// The fields of the group in version 1.23.
fn oldest() -> String {
    format!(
        r#""uuid": "{GROUP}", "address": "52:54:00:aa:00:10", "name": "bond0", "node_uuid": "{ID}",
           "standalone_ports_supported": false, "internal_info": {{}}, "extra": {{}}, "created_at": "{AT}",
           "updated_at": null, "ports": {}, "links": {}"#,
        links("/ports"),
        links("")
    )
}

#[tokio::test]
async fn a_port_group_is_shown_with_the_fields_of_the_requested_version() {
    let api = with_group().await;
    let (mode, later) = (
        r#""mode": "802.3ad", "properties": {"miimon": "100"}"#,
        r#""physical_network": null, "category": null, "dynamic_portgroup": false"#,
    );
    for ident in [GROUP, "bond0"] {
        let path = format!("/v1/portgroups/{ident}");
        let all = format!("{{{}, {mode}, {later}}}", oldest());
        api.get(&path).await.has(200).is(&all);
        let at_26 = format!("{{{}, {mode}}}", oldest());
        api.send("GET", &path, "1.26", "").await.has(200).is(&at_26);
        api.send("GET", &path, "1.23", "").await.has(200).is(&format!("{{{}}}", oldest()));
        api.send("GET", &path, "1.22", "").await.has(404);
    }
}

#[tokio::test]
async fn requests_know_the_later_fields_of_a_port_group_in_every_version() {
    let api = with_group().await;
    let (early, path) = ("1.101", format!("/v1/portgroups/{GROUP}"));
    let body =
        format!(r#"{{"node_uuid": "{ID}", "physical_network": "physnet1", "category": "first"}}"#);
    let made = api.send("POST", "/v1/portgroups", early, &body).await.has(201).json();
    assert!(made.get("physical_network").is_none() && made.get("category").is_none(), "{made}");
    let made = format!("/v1/portgroups/{}", made["uuid"].as_str().unwrap());
    let made = api.get(&made).await.has(200).json();
    assert_eq!(
        (&made["physical_network"], &made["category"]),
        (&"physnet1".into(), &"first".into())
    );
    let patch = r#"[{"op": "replace", "path": "/category", "value": "second"}]"#;
    let patched = api.send("PATCH", &path, early, patch).await.has(200).json();
    assert!(patched.get("category").is_none(), "{patched}");
    let asked = api.send("GET", &format!("{path}?fields=category"), early, "").await.has(200);
    asked.is(&format!(r#"{{"links": {}}}"#, links("")));
    // Lists with details show each field in every version.
    let detail = api.send("GET", "/v1/portgroups/detail", "1.23", "").await.has(200).json();
    assert_eq!(detail["portgroups"][0]["category"], "second");
    let dynamic = format!("{path}?fields=dynamic_portgroup");
    api.send("GET", &dynamic, "1.110", "").await.has(406);
}

#[tokio::test]
async fn port_groups_are_found_by_node_and_address() {
    let api = with_group().await;
    let one = format!(
        r#"{{"portgroups": [{{"uuid": "{GROUP}", "address": "52:54:00:aa:00:10", "name": "bond0", "links": {}}}]}}"#,
        links("")
    );
    for query in [
        "/v1/portgroups".to_owned(),
        "/v1/portgroups?node=n1".to_owned(),
        "/v1/portgroups?address=52:54:00:AA:00:10".to_owned(),
        format!("/v1/nodes/{ID}/portgroups"),
    ] {
        api.get(&query).await.has(200).is(&one);
    }
    let none = r#"{"portgroups": []}"#;
    api.get("/v1/portgroups?address=52:54:00:aa:00:11").await.has(200).is(none);
    api.get("/v1/portgroups?node=zz").await.refuses(404, "Node zz could not be found.");
    let detail = api.get("/v1/portgroups/detail").await.has(200).json();
    assert_eq!(detail["portgroups"][0]["mode"], "802.3ad");
    let other = r#"{"uuid": "4d2b1f70-8c55-4d11-9a1e-0a1b2c3d4e5f", "driver": "fake-hardware"}"#;
    api.send("POST", "/v1/nodes", NEWEST, other).await.has(201);
    api.get("/v1/nodes/4d2b1f70-8c55-4d11-9a1e-0a1b2c3d4e5f/portgroups").await.has(200).is(none);
}

#[tokio::test]
async fn ports_follow_the_rules_of_their_group() {
    let api = with_group().await;
    let post = async |more: &str| {
        let body = format!(
            r#"{{"node_uuid": "{ID}", "address": "52:54:00:aa:00:01", "portgroup_uuid": "{GROUP}"{more}}}"#
        );
        api.send("POST", "/v1/ports", NEWEST, &body).await
    };
    let standalone = format!(
        "pxe_enabled: port group {GROUP} does not support standalone ports, so its ports cannot be used for network boot"
    );
    post("").await.refuses(409, &standalone);
    let port = post(r#", "pxe_enabled": false"#).await.has(201).json();
    let id = port["uuid"].as_str().unwrap();
    assert_eq!(port["portgroup_uuid"], GROUP);

    for query in [
        format!("/v1/ports?portgroup={GROUP}"),
        "/v1/ports?portgroup=bond0".to_owned(),
        "/v1/portgroups/bond0/ports".to_owned(),
    ] {
        assert_eq!(api.get(&query).await.has(200).json()["ports"][0]["uuid"], id, "{query}");
    }
    api.get("/v1/ports?portgroup=zz").await.refuses(404, "Port group zz could not be found.");

    // The ports of a group are in its physical network, and move with it.
    let group = format!("/v1/portgroups/{GROUP}");
    let patch = r#"[{"op": "replace", "path": "/physical_network", "value": "physnet1"}]"#;
    api.send("PATCH", &group, NEWEST, patch).await.has(200);
    let path = format!("/v1/ports/{id}");
    assert_eq!(api.get(&path).await.has(200).json()["physical_network"], "physnet1");
    let patch = r#"[{"op": "replace", "path": "/physical_network", "value": "physnet2"}]"#;
    let why = format!("physical_network: the other ports of port group {GROUP} are in physnet1");
    api.send("PATCH", &path, NEWEST, patch).await.refuses(409, &why);

    let why = format!("Port group {GROUP} has ports: move or delete them first");
    api.send("DELETE", &group, NEWEST, "").await.refuses(400, &why);
    api.send("DELETE", &path, NEWEST, "").await.has(204);
    api.send("DELETE", &group, NEWEST, "").await.has(204);
    api.get(&group).await.refuses(404, &format!("Port group {GROUP} could not be found."));
}

#[tokio::test]
async fn a_port_group_that_ports_cannot_follow_is_refused() {
    let api = with_group().await;
    let group = format!("/v1/portgroups/{GROUP}");
    let allow = r#"[{"op": "replace", "path": "/standalone_ports_supported", "value": true}]"#;
    api.send("PATCH", &group, NEWEST, allow).await.has(200);
    let body = format!(
        r#"{{"node_uuid": "{ID}", "address": "52:54:00:aa:00:01", "portgroup_uuid": "{GROUP}"}}"#
    );
    api.send("POST", "/v1/ports", NEWEST, &body).await.has(201);
    let forbid = r#"[{"op": "replace", "path": "/standalone_ports_supported", "value": false}]"#;
    let standalone = format!(
        "pxe_enabled: port group {GROUP} does not support standalone ports, so its ports cannot be used for network boot"
    );
    api.send("PATCH", &group, NEWEST, forbid).await.refuses(409, &standalone);
}

#[tokio::test]
async fn an_invalid_port_group_is_refused_by_field() {
    let api = with_group().await;
    let post = async |body: &str, status: u16, words: &str| {
        api.send("POST", "/v1/portgroups", NEWEST, body).await.refuses(status, words);
    };
    let with = |more: &str| format!(r#"{{"node_uuid": "{ID}"{more}}}"#);
    post("{}", 400, "node_uuid: is required").await;
    post(r#"{"node_uuid": "zz"}"#, 400, "node_uuid: must be a UUID").await;
    let missing = format!("node_uuid: Node {GROUP} could not be found.");
    post(&format!(r#"{{"node_uuid": "{GROUP}"}}"#), 400, &missing).await;
    post(&with(r#", "name": "not valid""#), 400, "name: \"not valid\" is not a valid name").await;
    post(&with(r#", "address": "zz""#), 400, "address: \"zz\" is not a MAC address").await;
    post(&with(r#", "properties": []"#), 400, "properties: must be an object, not an array").await;
    post(&with(r#", "x": 1"#), 400, "x: unknown field of a port group").await;
    let name = "name: \"bond0\" is already in use";
    post(&with(r#", "name": "bond0""#), 409, name).await;
    let address = "address: \"52:54:00:aa:00:10\" is already in use";
    post(&with(r#", "address": "52:54:00:aa:00:10""#), 409, address).await;
    let id = format!("uuid: \"{GROUP}\" is already in use");
    post(&with(&format!(r#", "uuid": "{GROUP}""#)), 409, &id).await;
    let group = format!("/v1/portgroups/{GROUP}");
    let mode = r#"[{"op": "remove", "path": "/mode"}]"#;
    api.send("PATCH", &group, NEWEST, mode).await.refuses(400, "mode: is required");

    api.edit(|node| node.provision_state = baremetal_core::State::Cleaning).await;
    let locked = "node \"n1\" is locked while it is cleaning; try again when its work is done";
    api.send("DELETE", &group, NEWEST, "").await.refuses(409, locked);
    let mode = r#"[{"op": "replace", "path": "/mode", "value": "balance-rr"}]"#;
    api.send("PATCH", &group, NEWEST, mode).await.refuses(409, locked);
    post(&with(""), 409, locked).await;
}
