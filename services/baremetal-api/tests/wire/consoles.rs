//! Wire tests of serial consoles, as Ironic's clients use them.

use baremetal_core::Driver;

use crate::api::{Api, ID, NEWEST};

#[tokio::test]
async fn a_console_is_enabled_by_a_flag_and_shown_with_its_url() {
    let api = Api::start().await;
    api.enroll(r#", "console_interface": "fake""#).await;
    let path = format!("/v1/nodes/{ID}/states/console");
    let off = r#"{"console_enabled": false, "console_info": null}"#;
    let on = format!(
        r#"{{"console_enabled": true, "console_info": {{
            "type": "websocket", "url": "ws://api:6385/bedplate/v1/nodes/{ID}/console"
        }}}}"#
    );
    api.get(&path).await.has(200).is(off);
    for (body, want) in [
        (r#"{"enabled": true}"#, on.as_str()),
        // Enabling or disabling twice is allowed.
        (r#"{"enabled": true}"#, on.as_str()),
        (r#"{"enabled": false}"#, off),
        (r#"{"enabled": false}"#, off),
    ] {
        let answer = api.send("PUT", &path, "1.1", body).await.has(202);
        assert_eq!(answer.headers["location"], format!("http://api:6385{path}"));
        assert_eq!(answer.text, "");
        api.get(&path).await.has(200).is(want);
        let enabled = want != off;
        let node = api.get(&format!("/v1/nodes/{ID}")).await.has(200).json();
        assert_eq!(node["console_enabled"], enabled);
        let states = api.get(&format!("/v1/nodes/{ID}/states")).await.has(200).json();
        assert_eq!(states["console_enabled"], enabled);
    }
}

#[tokio::test]
async fn an_invalid_console_flag_is_refused_and_changes_nothing() {
    let api = Api::start().await;
    api.enroll(r#", "console_interface": "fake""#).await;
    let path = format!("/v1/nodes/{ID}/states/console");
    for (body, words) in [
        (r#"{"enabled": "maybe"}"#, "enabled"),
        (r#"{"enabled": null}"#, "enabled"),
        (r#"{}"#, "enabled"),
        (r#"{"enabled": true, "mode": "text"}"#, "mode"),
    ] {
        let answer = api.send("PUT", &path, NEWEST, body).await.has(400);
        assert!(answer.text.contains(words), "{body}: {}", answer.text);
    }
    let node = api.get(&format!("/v1/nodes/{ID}")).await.has(200).json();
    assert_eq!(node["console_enabled"], false);
    api.send("PUT", "/v1/nodes/none/states/console", NEWEST, r#"{"enabled": true}"#)
        .await
        .refuses(404, "Node none could not be found.");
}

#[tokio::test]
async fn a_node_without_a_console_lists_the_available_interfaces() {
    let api = Api::start().await;
    api.enroll(r#", "console_interface": "no-console""#).await;
    let path = format!("/v1/nodes/{ID}/states/console");
    let none = format!("node \"{ID}\" has no console: its console_interface is no-console");
    for (driver, more) in [
        (Driver::FakeHardware, "; set it to fake first"),
        (Driver::Ipmi, "; set it to ipmitool-socat or bmc-vnc first"),
        (Driver::Redfish, "; set it to redfish-serial or bmc-vnc first"),
        (Driver::ManualManagement, ", and driver manual-management supports no other"),
    ] {
        api.edit(|node| node.driver = driver).await;
        for body in [r#"{"enabled": true}"#, r#"{"enabled": false}"#] {
            api.send("PUT", &path, NEWEST, body).await.refuses(400, &format!("{none}{more}"));
        }
    }
}

#[tokio::test]
async fn an_enabled_console_keeps_its_interface_and_its_driver() {
    let api = Api::start().await;
    api.enroll(r#", "console_interface": "fake""#).await;
    let path = format!("/v1/nodes/{ID}");
    let off = r#"[{"op": "replace", "path": "/console_interface", "value": "no-console"}]"#;
    api.edit(|node| node.console_enabled = true).await;
    api.send("PATCH", &path, NEWEST, off).await.refuses(
        409,
        &format!(
            "console_interface: cannot be changed on node \"{ID}\" while its console is enabled; disable the console first"
        ),
    );
    let enabled = r#"[{"op": "replace", "path": "/console_enabled", "value": false}]"#;
    api.send("PATCH", &path, NEWEST, enabled).await.has(400);
    api.edit(|node| node.console_enabled = false).await;
    api.send("PATCH", &path, NEWEST, off).await.has(200);
}

#[tokio::test]
async fn a_disabled_console_can_be_neither_opened_nor_read() {
    let api = Api::start().await;
    api.enroll(r#", "console_interface": "fake""#).await;
    let refused = format!("the console of node \"{ID}\" is not enabled");
    let path = format!("/bedplate/v1/nodes/{ID}/console");
    api.get(&path).await.refuses(409, &refused);
    api.get(&format!("{path}/log")).await.refuses(409, &refused);
    api.edit(|node| node.console_enabled = true).await;
    let log = api.get(&format!("{path}/log")).await.has(200);
    assert_eq!(
        (log.text.as_str(), &log.headers["content-type"]),
        ("", &"text/plain; charset=utf-8".parse().unwrap())
    );
    api.get(&path)
        .await
        .refuses(426, "this route is a WebSocket (RFC 6455): open it with bedplate node console");
}
