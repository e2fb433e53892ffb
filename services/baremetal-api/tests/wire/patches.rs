//! Wire tests of PATCH on nodes.

use baremetal_core::State;
use secrecy::ExposeSecret;

use crate::api::{Answer, Api, ID, NEWEST};

async fn patch(api: &Api, version: &str, body: &str) -> Answer {
    api.send("PATCH", &format!("/v1/nodes/{ID}"), version, body).await
}

/// Applies a patch, and compares these fields of the result.
async fn shows(api: &Api, body: &str, fields: &str, want: &str) {
    patch(api, NEWEST, body).await.has(200);
    let mut got = api.get(&format!("/v1/nodes/{ID}?fields={fields}")).await.has(200).json();
    got.as_object_mut().unwrap().remove("links");
    let want: serde_json::Value = serde_json::from_str(want).unwrap();
    assert_eq!(got, want);
}

#[tokio::test]
async fn add_and_replace_set_a_value_and_remove_restores_the_default() {
    let api = Api::start().await;
    api.enroll(r#", "extra": {"a": 1}, "conductor_group": "g""#).await;
    shows(
        &api,
        r#"[{"op": "replace", "path": "/name", "value": "n"}, {"op": "add", "path": "/extra/b", "value": {"c": 2}},
            {"op": "add", "path": "/extra/d", "value": null}, {"op": "add", "path": "/name", "value": "m"}]"#,
        "name,extra",
        r#"{"name": "m", "extra": {"a": 1, "b": {"c": 2}, "d": null}}"#,
    )
    .await;
    shows(
        &api,
        r#"[{"op": "remove", "path": "/extra/b/c"}, {"op": "remove", "path": "/conductor_group"}, {"op": "remove", "path": "/name"},
            {"op": "remove", "path": "/owner"}]"#,
        "name,extra,conductor_group,owner",
        r#"{"name": null, "extra": {"a": 1, "b": {}, "d": null}, "conductor_group": "", "owner": null}"#,
    )
    .await;
    shows(
        &api,
        r#"[{"op": "replace", "path": "/maintenance", "value": true}, {"op": "remove", "path": "/extra"},
            {"op": "add", "path": "/retired_reason", "value": "old"}, {"op": "add", "path": "/retired", "value": "True"}]"#,
        "maintenance,extra,retired,retired_reason,updated_at",
        r#"{"maintenance": true, "extra": {}, "retired": true, "retired_reason": "old",
            "updated_at": "2026-01-02T03:04:05.000006+00:00"}"#,
    )
    .await;
}

#[tokio::test]
async fn a_value_that_looks_sealed_is_refused() {
    let api = Api::start().await;
    api.enroll(r#", "driver_info": {"redfish_password": "s3cret"}"#).await;
    let body =
        r#"[{"op": "add", "path": "/driver_info/redfish_password", "value": "sealed:v1:1:AAAA"}]"#;
    let refused = patch(&api, NEWEST, body).await.has(400);
    assert!(
        refused.text.contains("driver_info.redfish_password: must not look like"),
        "{}",
        refused.text
    );
    let up = r#"{"reach": "available", "instance_info": {"configdrive": "******"}}"#;
    api.send("PUT", "/bedplate/v1/racks/r/up", NEWEST, up).await.has(400);
}

#[tokio::test]
async fn a_mask_sent_back_is_not_stored() {
    let api = Api::start().await;
    api.enroll(r#", "driver_info": {"redfish_password": "s3cret", "x": 1}"#).await;
    let masked = r#"[{"op": "replace", "path": "/driver_info", "value": {"redfish_password": "******", "x": 2}}]"#;
    let answer = patch(&api, NEWEST, masked).await.has(200);
    assert_eq!(
        answer.json()["driver_info"],
        serde_json::json!({"redfish_password": "******", "x": 2})
    );
    let node = api.store.find_node(&ID.parse().unwrap()).await.unwrap().unwrap();
    let kept = api.store.secrets().text(&node, "redfish_password").unwrap().unwrap();
    assert_eq!(kept.expose_secret(), "s3cret");
}

#[tokio::test]
async fn interfaces_follow_the_driver() {
    let api = Api::start().await;
    api.enroll(r#", "inspect_interface": "no-inspect", "boot_interface": "fake""#).await;
    let driver = r#"[{"op": "replace", "path": "/driver", "value": "ipmi"}]"#;
    // The default of the former driver stays, as if it had been chosen.
    patch(&api, NEWEST, driver)
        .await
        .refuses(400, "bios_interface: driver ipmi does not support \"fake\"; it supports no-bios");
    let path = format!("/v1/nodes/{ID}?reset_interfaces=True");
    let node = api.send("PATCH", &path, NEWEST, driver).await.has(200).json();
    assert_eq!(
        (&node["boot_interface"], &node["inspect_interface"]),
        (&"ipxe".into(), &"agent".into())
    );
}

/// As `update_node` of Ironic's conductor does, which looks at the fields that have another value than before.
#[tokio::test]
async fn a_reset_of_interfaces_needs_another_driver_and_keeps_changed_interfaces() {
    let api = Api::start().await;
    api.enroll(r#", "inspect_interface": "no-inspect""#).await;
    let path = format!("/v1/nodes/{ID}?reset_interfaces=True");
    let same = r#"[{"op": "replace", "path": "/driver", "value": "fake-hardware"}]"#;
    let node = api.send("PATCH", &path, NEWEST, same).await.has(200).json();
    assert_eq!(node["inspect_interface"], "no-inspect");
    // The management interface changes, so it stays. The inspect interface has its value already, so it becomes the default.
    let other = r#"[{"op": "replace", "path": "/driver", "value": "ipmi"},
        {"op": "replace", "path": "/management_interface", "value": "noop"},
        {"op": "replace", "path": "/inspect_interface", "value": "no-inspect"}]"#;
    let node = api.send("PATCH", &path, NEWEST, other).await.has(200).json();
    assert_eq!(
        (&node["management_interface"], &node["inspect_interface"]),
        (&"noop".into(), &"agent".into())
    );
    let words = "reset_interfaces: can only be used together with a change of driver";
    let name = r#"[{"op": "replace", "path": "/name", "value": "n"}]"#;
    api.send("PATCH", &path, NEWEST, name).await.refuses(400, words);
    let removed = r#"[{"op": "remove", "path": "/driver"}]"#;
    api.send("PATCH", &path, NEWEST, removed).await.refuses(400, words);
    // The parameter is checked before the node is looked for.
    let missing = "/v1/nodes/no-such-node?reset_interfaces=True";
    api.send("PATCH", missing, NEWEST, name).await.refuses(400, words);
    api.send("PATCH", missing, NEWEST, same).await.has(404);
}

#[tokio::test]
async fn a_read_only_field_is_refused_by_name() {
    let api = Api::start().await;
    api.enroll("").await;
    let refuses = async |body: &str, status: u16, words: &str| {
        patch(&api, NEWEST, body).await.refuses(status, words);
    };
    let set = |path: &str, value: &str| {
        format!(r#"[{{"op": "replace", "path": "{path}", "value": {value}}}]"#)
    };
    for field in
        ["uuid", "provision_state", "traits", "created_at", "last_error", "links", "conductor"]
    {
        refuses(&set(&format!("/{field}"), "null"), 400, &format!("{field}: cannot be changed"))
            .await;
    }
    refuses(&set("/nope", "1"), 400, "nope: unknown field of a node").await;
    refuses(&set("name", "1"), 400, "path: \"name\" does not start with a slash and a field name")
        .await;
    refuses(&set("/resource_class", "5"), 400, "resource_class: must be a string, not a number")
        .await;
    refuses(&set("/extra", "[]"), 400, "extra: must be an object, not an array").await;
    refuses(&set("/driver", "null"), 400, "driver: is required").await;
    refuses(&set("/name/x", "1"), 400, "/name/x: the value to replace does not exist").await;
    refuses(
        &set("/protected_reason", "\"x\""),
        400,
        "protected_reason: can only be set while protected is true",
    )
    .await;
    let protected = format!(
        "protected: cannot be changed on node \"{ID}\" in state \"enroll\": only a node in state \"active\" \
         can be protected"
    );
    refuses(&set("/protected", "true"), 409, &protected).await;
    refuses(r#"[{"op": "add", "path": "/owner"}]"#, 400, "/owner: the operation has no value")
        .await;
    refuses(
        r#"[{"op": "remove", "path": "/extra/zz"}]"#,
        400,
        "/extra/zz: the value to remove does not exist",
    )
    .await;
    let owner = "owner: the requested version is 1.20; the minimal required API version is 1.50";
    patch(&api, "1.20", &set("/owner", "\"x\"")).await.refuses(406, owner);

    api.edit(|node| node.provision_state = State::CleanWait).await;
    let locked =
        format!("node \"{ID}\" is locked while it is clean wait; try again when its work is done");
    refuses(&set("/extra", "{}"), 409, &locked).await;
}

#[tokio::test]
async fn a_part_that_does_not_exist_cannot_be_replaced() {
    let api = Api::start().await;
    api.enroll(r#", "extra": {"a": 1}"#).await;
    let patch = r#"[{"op": "add", "path": "/extra/b", "value": 1}, {"op": "replace", "path": "/extra/c", "value": 1}]"#;
    api.send("PATCH", &format!("/v1/nodes/{ID}"), NEWEST, patch)
        .await
        .refuses(400, "/extra/c: the value to replace does not exist");
    let kept = api.get(&format!("/v1/nodes/{ID}?fields=extra")).await.json();
    assert_eq!(kept["extra"], serde_json::json!({"a": 1}));
}

#[tokio::test]
async fn the_answer_to_a_patch_shows_the_conductor_that_made_it() {
    let api = Api::start().await;
    api.enroll("").await;
    let path = format!("/v1/nodes/{ID}");
    let patch = r#"[{"op": "add", "path": "/name", "value": "n"}]"#;
    let changed = api.send("PATCH", &path, NEWEST, patch).await.has(200).json();
    assert_eq!(changed["reservation"], changed["conductor"]);
    assert!(changed["conductor"].is_string());
    assert!(api.get(&path).await.json()["reservation"].is_null());
}

#[tokio::test]
async fn an_instance_is_named_after_its_display_name_until_it_has_a_name() {
    let api = Api::start().await;
    api.enroll("").await;
    let named = |name: &str| {
        format!(
            r#"[{{"op": "add", "path": "/instance_info", "value": {{"display_name": "{name}"}}}}]"#
        )
    };
    shows(&api, &named("web-1"), "instance_name", r#"{"instance_name": "web-1"}"#).await;
    shows(&api, &named("web-2"), "instance_name", r#"{"instance_name": "web-1"}"#).await;
    let reset = r#"[{"op": "remove", "path": "/instance_name"}]"#;
    let path = format!("/v1/nodes/{ID}");
    api.send("PATCH", &path, "1.103", reset).await.has(200);
    assert!(api.get(&path).await.json()["instance_name"].is_null());
}
