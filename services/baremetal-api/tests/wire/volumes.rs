//! Wire tests of volume connectors and targets.

use baremetal_core::{State, VolumeTarget};
use hardware::PowerState;

use crate::api::{Api, ID, NEWEST};

const CONNECTOR: &str = "9a3c1c52-6d0e-4b4e-9b4b-0d1f6a2e7c01";
const TARGET: &str = "9a3c1c52-6d0e-4b4e-9b4b-0d1f6a2e7c02";
const AT: &str = "2026-01-02T03:04:05.000006+00:00";

/// One connector and one target of an active node.
async fn with_volumes(power: PowerState) -> Api {
    let api = Api::start().await;
    api.enroll(r#", "name": "n1""#).await;
    let body = format!(
        r#"{{"uuid": "{CONNECTOR}", "node_uuid": "{ID}", "type": "iqn", "connector_id": "iqn.2017-07.org.openstack:01:a"}}"#
    );
    api.send("POST", "/v1/volume/connectors", NEWEST, &body).await.has(201);
    let body = format!(
        r#"{{"uuid": "{TARGET}", "node_uuid": "{ID}", "volume_type": "iscsi", "volume_id": "v1", "boot_index": 0,
             "properties": {{"target_portal": "192.0.2.40:3260", "auth_password": "hunter2"}}}}"#
    );
    api.send("POST", "/v1/volume/targets", NEWEST, &body).await.has(201);
    api.edit(|node| {
        node.provision_state = State::Active;
        node.power_state = Some(power);
    })
    .await;
    api
}

fn links(path: &str) -> String {
    format!(
        r#"[{{"href": "http://api:6385/v1/{path}", "rel": "self"}},
            {{"href": "http://api:6385/{path}", "rel": "bookmark"}}]"#
    )
}

#[tokio::test]
async fn a_connector_is_shown_and_listed() {
    let api = with_volumes(PowerState::Off).await;
    let brief = format!(
        r#""uuid": "{CONNECTOR}", "node_uuid": "{ID}", "type": "iqn", "connector_id": "iqn.2017-07.org.openstack:01:a""#
    );
    let links = links(&format!("volume/connectors/{CONNECTOR}"));
    let path = format!("/v1/volume/connectors/{CONNECTOR}");
    let whole = format!(
        r#"{{{brief}, "extra": {{}}, "created_at": "{AT}", "updated_at": null, "links": {links}}}"#
    );
    api.get(&path).await.has(200).is(&whole);
    api.send("GET", &path, "1.31", "").await.has(404);
    let listed = format!(r#"{{"connectors": [{{{brief}, "links": {links}}}]}}"#);
    for query in [
        "/v1/volume/connectors".to_owned(),
        "/v1/volume/connectors?node=n1".to_owned(),
        format!("/v1/nodes/{ID}/volume/connectors"),
    ] {
        api.get(&query).await.has(200).is(&listed);
    }
    api.send("GET", "/v1/volume/connectors?detail=true", "1.32", "").await.has(200);
    api.get("/v1/volume/connectors?detail=true")
        .await
        .has(200)
        .is(&format!(r#"{{"connectors": [{whole}]}}"#));
}

#[tokio::test]
async fn a_target_is_shown_without_its_passwords() {
    let api = with_volumes(PowerState::Off).await;
    let path = format!("/v1/volume/targets/{TARGET}");
    let shown = |portal: &str, updated: &str| {
        format!(
            r#"{{"uuid": "{TARGET}", "node_uuid": "{ID}", "volume_type": "iscsi", "volume_id": "v1", "boot_index": 0,
                "properties": {{"target_portal": "{portal}", "auth_password": "******"}}, "extra": {{}},
                "created_at": "{AT}", "updated_at": {updated}, "links": {}}}"#,
            links(&format!("volume/targets/{TARGET}"))
        )
    };
    api.get(&path).await.has(200).is(&shown("192.0.2.40:3260", "null"));
    let stored = async || {
        let found = api.store.find_resource::<VolumeTarget>(TARGET.parse().unwrap()).await;
        let password = &found.unwrap().unwrap().content.properties["auth_password"];
        password.as_str().unwrap().to_owned()
    };
    let sealed = stored().await;
    assert!(sealing::is_sealed(&sealed) && !sealed.contains("hunter2"), "{sealed}");
    // The password stays when another property is changed.
    let portal =
        r#"[{"op": "replace", "path": "/properties/target_portal", "value": "192.0.2.41:3260"}]"#;
    let changed = shown("192.0.2.41:3260", &format!("\"{AT}\""));
    api.send("PATCH", &path, NEWEST, portal).await.has(200).is(&changed);
    assert_eq!(stored().await, sealed);
}

#[tokio::test]
async fn the_links_lead_to_the_lists() {
    let api = with_volumes(PowerState::Off).await;
    for (path, base) in
        [("/v1/volume", "volume".to_owned()), ("/v1/nodes/n1/volume", format!("nodes/{ID}/volume"))]
    {
        let of = |part: &str| links(&format!("{base}/{part}"));
        let want = format!(
            r#"{{"links": {}, "connectors": {}, "targets": {}}}"#,
            of(""),
            of("connectors"),
            of("targets")
        );
        api.get(path).await.has(200).is(&want);
    }
}

#[tokio::test]
async fn volumes_of_a_running_machine_cannot_be_changed() {
    let api = with_volumes(PowerState::On).await;
    for (what, path) in [
        ("connector", format!("/v1/volume/connectors/{CONNECTOR}")),
        ("target", format!("/v1/volume/targets/{TARGET}")),
    ] {
        let why = |action: &str| {
            format!(
                "The requested action \"volume {what} {action}\" can not be performed on node \"n1\" while its power state is \
                 \"power on\": power the machine off first"
            )
        };
        let patch = r#"[{"op": "add", "path": "/extra/a", "value": 1}]"#;
        api.send("PATCH", &path, NEWEST, patch).await.refuses(400, &why("update"));
        api.send("DELETE", &path, NEWEST, "").await.refuses(400, &why("deletion"));
    }
    api.edit(|node| node.power_state = Some(PowerState::Off)).await;
    for path in
        [format!("/v1/volume/connectors/{CONNECTOR}"), format!("/v1/volume/targets/{TARGET}")]
    {
        api.send("DELETE", &path, NEWEST, "").await.has(204);
        api.get(&path).await.has(404);
    }
}

#[tokio::test]
async fn an_invalid_volume_is_refused_by_field() {
    let api = with_volumes(PowerState::Off).await;
    let post = async |what: &str, body: &str, status: u16, words: &str| {
        api.send("POST", &format!("/v1/volume/{what}"), NEWEST, body).await.refuses(status, words);
    };
    let with = |more: &str| format!(r#"{{"node_uuid": "{ID}"{more}}}"#);
    post("connectors", "{}", 400, "node_uuid: is required").await;
    post("connectors", &with(r#", "type": "ip""#), 400, "connector_id: is required").await;
    let number = with(r#", "type": "ip", "connector_id": 1"#);
    post("connectors", &number, 400, "connector_id: must be a string, not a number").await;
    let same = with(r#", "type": "iqn", "connector_id": "iqn.2017-07.org.openstack:01:a""#);
    let taken = "A volume connector with this type and connector_id already exists: iqn iqn.2017-07.org.openstack:01:a";
    post("connectors", &same, 409, taken).await;
    let volume = r#", "volume_type": "iscsi", "volume_id": "v2""#;
    post("targets", &with(volume), 400, "boot_index: is required").await;
    let text = with(&format!(r#"{volume}, "boot_index": "first""#));
    post("targets", &text, 400, "boot_index: must be a whole number, not a string").await;
    let taken = format!("A volume target with this node and boot_index already exists: {ID} 0");
    post("targets", &with(&format!(r#"{volume}, "boot_index": 0"#)), 409, &taken).await;
    let body = with(&format!(r#"{volume}, "boot_index": 1, "x": 1"#));
    post("targets", &body, 400, "x: unknown field of a volume target").await;
    api.get("/v1/volume/targets/x").await.refuses(400, "expected a UUID, and received \"x\"");
}
