//! Wire tests of ports.

use crate::api::{Api, ID, NEWEST};

const PORT: &str = "0d4b7a5e-7c1a-4c39-9d0c-2f6a0a1b2c3d";

async fn with_port() -> Api {
    let api = Api::start().await;
    api.enroll(r#", "name": "n1""#).await;
    let body =
        format!(r#"{{"uuid": "{PORT}", "node_uuid": "{ID}", "address": "52-54-00-AA-00-01"}}"#);
    api.send("POST", "/v1/ports", NEWEST, &body).await.has(201);
    api
}

fn links() -> String {
    format!(
        r#"[{{"href": "http://api:6385/v1/ports/{PORT}", "rel": "self"}},
            {{"href": "http://api:6385/ports/{PORT}", "rel": "bookmark"}}]"#
    )
}

#[tokio::test]
async fn a_port_is_shown_with_the_fields_of_the_requested_version() {
    let api = with_port().await;
    let links = links();
    let path = format!("/v1/ports/{PORT}");
    api.get(&path).await.has(200).is(&format!(
        r#"{{
            "uuid": "{PORT}", "created_at": "2026-01-02T03:04:05.000006+00:00", "updated_at": null,
            "address": "52:54:00:aa:00:01", "node_uuid": "{ID}", "extra": {{}}, "internal_info": {{}},
            "local_link_connection": {{}}, "pxe_enabled": true, "portgroup_uuid": null, "physical_network": null,
            "is_smartnic": false, "name": null, "description": null, "vendor": null, "category": null,
            "available_for_dynamic_portgroup": true, "links": {links}
        }}"#
    ));
    api.send("GET", &path, "1.1", "").await.has(200).is(&format!(
        r#"{{
            "uuid": "{PORT}", "created_at": "2026-01-02T03:04:05.000006+00:00", "updated_at": null,
            "address": "52:54:00:aa:00:01", "node_uuid": "{ID}", "extra": {{}}, "links": {links}
        }}"#
    ));
}

#[tokio::test]
async fn ports_are_found_by_address_and_node() {
    let api = with_port().await;
    let one = format!(
        r#"{{"ports": [{{"uuid": "{PORT}", "address": "52:54:00:aa:00:01", "links": {}}}]}}"#,
        links()
    );
    for query in [
        "/v1/ports".to_owned(),
        "/v1/ports?address=52:54:00:AA:00:01".to_owned(),
        "/v1/ports?node=n1".to_owned(),
        format!("/v1/ports?node_uuid={ID}"),
        format!("/v1/nodes/{ID}/ports"),
    ] {
        api.get(&query).await.has(200).is(&one);
    }
    api.get("/v1/ports?address=52:54:00:aa:00:02").await.has(200).is(r#"{"ports": []}"#);
    api.get("/v1/ports?node=zz").await.refuses(404, "Node zz could not be found.");
    let why = format!("Node {PORT} could not be found.");
    api.get(&format!("/v1/ports?node_uuid={PORT}")).await.refuses(404, &why);
    api.get("/v1/ports?address=zz").await.refuses(400, "address: \"zz\" is not a MAC address");
    let detail = api.get("/v1/ports/detail?limit=1").await.has(200).json();
    assert_eq!(detail["ports"][0]["node_uuid"], ID);
    assert_eq!(
        detail["next"],
        format!("http://api:6385/v1/ports/detail?sort_key=id&sort_dir=asc&limit=1&marker={PORT}")
            .as_str()
    );
}

#[tokio::test]
async fn a_port_is_changed_and_deleted() {
    let api = with_port().await;
    let path = format!("/v1/ports/{PORT}");
    let body = r#"[{"op": "replace", "path": "/pxe_enabled", "value": false},
                   {"op": "add", "path": "/local_link_connection",
                    "value": {"switch_id": "0A:1B:2C:3D:4E:5F", "port_id": "Eth1"}}]"#;
    let port = api.send("PATCH", &path, NEWEST, body).await.has(200).json();
    assert_eq!(port["pxe_enabled"], false);
    let link = serde_json::json!({"switch_id": "0a:1b:2c:3d:4e:5f", "port_id": "Eth1"});
    assert_eq!(port["local_link_connection"], link);
    let node = r#"[{"op": "replace", "path": "/node_uuid", "value": "x"}]"#;
    api.send("PATCH", &path, NEWEST, node).await.refuses(400, "node_uuid: cannot be changed");
    let address = r#"[{"op": "remove", "path": "/address"}]"#;
    api.send("PATCH", &path, NEWEST, address).await.refuses(400, "address: is required");
    let flag = r#"[{"op": "add", "path": "/available_for_dynamic_portgroup", "value": "yes"}]"#;
    let why = "available_for_dynamic_portgroup: must be a boolean, not a string";
    api.send("PATCH", &path, NEWEST, flag).await.refuses(400, why);

    api.edit(|node| node.provision_state = baremetal_core::State::Cleaning).await;
    let locked = "node \"n1\" is locked while it is cleaning; try again when its work is done";
    api.send("DELETE", &path, NEWEST, "").await.refuses(409, locked);
    api.edit(|node| node.provision_state = baremetal_core::State::Enroll).await;
    api.send("DELETE", &path, NEWEST, "").await.has(204);
    let gone = format!("Port {PORT} could not be found.");
    api.get(&path).await.refuses(404, &gone);
}

#[tokio::test]
async fn a_connection_to_a_switch_is_checked_in_the_version_that_knows_it() {
    let api = with_port().await;
    let post = async |version: &str, link: &str| {
        let body = format!(
            r#"{{"node_uuid": "{ID}", "address": "52:54:00:aa:00:77", "local_link_connection": {link}}}"#
        );
        api.send("POST", "/v1/ports", version, &body).await
    };
    let unmanaged = r#"{"network_type": "unmanaged"}"#;
    post("1.63", unmanaged).await.has(406);
    let vtep = r#"{"port_id": "p", "vtep-logical-switch": "l", "vtep-physical-switch": "q"}"#;
    for version in ["1.89", "1.105", NEWEST] {
        post(version, vtep).await.has(406);
    }
    let why = "local_link_connection/color: there is no such key";
    post(NEWEST, r#"{"color": "red"}"#).await.refuses(400, why);
    let port = post("1.90", vtep).await.has(201).json();
    let path = format!("/v1/ports/{}", port["uuid"].as_str().unwrap());
    for (version, want) in [("1.89", "{}"), ("1.90", vtep), ("1.104", vtep), ("1.105", "{}")] {
        let shown = api.send("GET", &path, version, "").await.has(200).json();
        let want: serde_json::Value = serde_json::from_str(want).unwrap();
        assert_eq!(shown["local_link_connection"], want, "{version}");
    }
    let other = r#"[{"op": "replace", "path": "/extra", "value": {"a": 1}}]"#;
    api.send("PATCH", &path, NEWEST, other).await.has(200);
    let network =
        r#"[{"op": "add", "path": "/local_link_connection/network_type", "value": "managed"}]"#;
    api.send("PATCH", &path, "1.63", network).await.has(406);
    api.send("PATCH", &path, "1.64", network).await.has(200);
    let empty = r#"[{"op": "replace", "path": "/physical_network", "value": ""}]"#;
    let why = "physical_network: must not be empty";
    api.send("PATCH", &path, NEWEST, empty).await.refuses(400, why);
}

#[tokio::test]
async fn a_patch_knows_the_later_fields_of_a_port_in_every_version() {
    let api = with_port().await;
    let path = format!("/v1/ports/{PORT}");
    for (field, value, before, since) in [
        ("name", r#""eth1""#, "1.87", "1.88"),
        ("description", r#""left socket""#, "1.96", "1.97"),
        ("vendor", r#""somebody""#, "1.99", "1.100"),
        ("category", r#""storage""#, "1.100", "1.101"),
        ("available_for_dynamic_portgroup", "false", "1.110", "1.111"),
    ] {
        let patch = format!(r#"[{{"op": "replace", "path": "/{field}", "value": {value}}}]"#);
        let shown = api.send("PATCH", &path, before, &patch).await.has(200).json();
        assert!(shown.get(field).is_none(), "{field} is not shown in {before}");
        let shown = api.send("GET", &path, since, "").await.has(200).json();
        let want: serde_json::Value = serde_json::from_str(value).unwrap();
        assert_eq!(shown[field], want, "{field}");
    }
    let info = format!("{path}?fields=internal_info");
    let links = format!(r#"{{"links": {}}}"#, links());
    api.send("GET", &info, "1.17", "").await.has(200).is(&links);
}

#[tokio::test]
async fn an_invalid_port_is_refused_by_field() {
    let api = with_port().await;
    let post = async |version: &str, body: &str, status: u16, words: &str| {
        api.send("POST", "/v1/ports", version, body).await.refuses(status, words);
    };
    post(NEWEST, r#"{"address": "52:54:00:00:00:02"}"#, 400, "node_uuid: is required").await;
    let with = |more: &str| format!(r#"{{"node_uuid": "{ID}"{more}}}"#);
    post(NEWEST, &with(""), 400, "address: is required").await;
    post(NEWEST, &with(r#", "address": "zz""#), 400, "address: \"zz\" is not a MAC address").await;
    let taken = "address: \"52:54:00:aa:00:01\" is already in use";
    post(NEWEST, &with(r#", "address": "52:54:00:aa:00:01""#), 409, taken).await;
    post(
        NEWEST,
        &with(r#", "address": "52:54:00:00:00:02", "x": 1"#),
        400,
        "x: unknown field of a port",
    )
    .await;
    let name = "name: the requested version is 1.80; the minimal required API version is 1.88";
    post("1.80", &with(r#", "address": "52:54:00:00:00:02", "name": "x""#), 406, name).await;
    let named = r#"{"node_uuid": "n1", "address": "52:54:00:00:00:02"}"#;
    post(NEWEST, named, 400, "node_uuid: must be a UUID").await;
    let both = with(r#", "node_ident": "n1", "address": "52:54:00:00:00:02""#);
    post(NEWEST, &both, 400, "node_ident: cannot be used together with node_uuid").await;
    let missing = format!("node_uuid: Node {PORT} could not be found.");
    post(
        NEWEST,
        &format!(r#"{{"node_uuid": "{PORT}", "address": "52:54:00:00:00:02"}}"#),
        400,
        &missing,
    )
    .await;
}

#[tokio::test]
async fn a_port_is_found_by_its_name() {
    let api = with_port().await;
    let path = format!("/v1/ports/{PORT}");
    let name = r#"[{"op": "add", "path": "/name", "value": "eth0"},
                   {"op": "add", "path": "/vendor", "value": "mellanox"},
                   {"op": "add", "path": "/category", "value": "storage"}]"#;
    api.send("PATCH", &path, NEWEST, name).await.has(200);
    let found = api.get("/v1/ports/eth0").await.has(200).json();
    let shown = |name: &str| found[name].as_str().unwrap().to_owned();
    assert_eq!(["uuid", "vendor", "category"].map(shown), [PORT, "mellanox", "storage"]);
    let turn = r#"[{"op": "replace", "path": "/category", "value": "tenant"}]"#;
    api.send("PATCH", "/v1/ports/eth0", NEWEST, turn).await.has(200);
    let taken =
        format!(r#"{{"node_uuid": "{ID}", "address": "52:54:00:aa:00:02", "name": "eth0"}}"#);
    let why = "name: \"eth0\" is already in use";
    api.send("POST", "/v1/ports", NEWEST, &taken).await.refuses(409, why);
    api.get("/v1/ports/eth1").await.refuses(404, "Port eth1 could not be found.");
    let why = "expected a UUID, and received \"eth0\"";
    api.send("DELETE", "/v1/ports/eth0", NEWEST, "").await.refuses(400, why);
}

#[tokio::test]
async fn ports_are_found_by_the_shard_and_the_conductor_group_of_their_node() {
    let api = Api::start().await;
    api.enroll(r#", "name": "n1", "shard": "s1", "conductor_group": "g1""#).await;
    let body = format!(r#"{{"node_uuid": "{ID}", "address": "52:54:00:aa:00:01"}}"#);
    api.send("POST", "/v1/ports", NEWEST, &body).await.has(201);
    api.send("POST", "/v1/portgroups", NEWEST, &format!(r#"{{"node_uuid": "{ID}"}}"#))
        .await
        .has(201);
    for what in ["ports", "portgroups"] {
        for (query, found) in [
            ("shard=s1", 1),
            ("shard=s0,s1", 1),
            ("shard=s0", 0),
            ("conductor_groups=g1", 1),
            ("conductor_groups=g0", 0),
        ] {
            let listed = api.get(&format!("/v1/{what}?{query}")).await.has(200).json();
            assert_eq!(listed[what].as_array().unwrap().len(), found, "{what} {query}");
        }
    }
    api.send("GET", "/v1/portgroups?shard=s1", "1.105", "").await.has(406);
    for (query, status) in [
        ("ports?shard=s1&node=n1", 403),
        ("ports?conductor_groups=g1&node=n1", 400),
        ("portgroups?shard=s1&conductor_groups=g1", 400),
    ] {
        api.get(&format!("/v1/{query}")).await.has(status);
    }
}
