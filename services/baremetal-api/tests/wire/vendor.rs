//! Wire tests of vendor methods.

use baremetal_core::{State, VendorInterface};
use serde_json::json;

use crate::api::{Answer, Api, ID, NEWEST};

async fn call(api: &Api, http_method: &str, method: &str, body: &str) -> Answer {
    let path = format!("/v1/nodes/{ID}/vendor_passthru{method}");
    api.send(http_method, &path, NEWEST, body).await
}

#[tokio::test]
async fn the_methods_of_a_node_are_listed() {
    let api = Api::start().await;
    api.enroll("").await;
    let path = format!("/v1/nodes/{ID}/vendor_passthru/methods");
    let method = |name: &str, description: &str, asynchronous: bool, exclusive: bool| {
        format!(
            r#""{name}": {{"async": {asynchronous}, "attach": false, "description": "{description}",
                "http_methods": ["POST"], "require_exclusive_lock": {exclusive}}}"#
        )
    };
    let all = [
        method("second_method", "Test if the value of bar is kazoo", true, true),
        method("third_method_sync", "Test if the value of bar is meow", false, true),
        method("fourth_method_shared_lock", "Test if the value of bar is woof", true, false),
        method("log_passthrough", "Test pass-through to wait.", true, true),
    ];
    api.get(&path).await.has(200).is(&format!("{{{}}}", all.join(", ")));
    api.edit(|node| node.interfaces.vendor = Some(VendorInterface::NoVendor)).await;
    api.get(&path).await.has(200).is("{}");
    call(&api, "POST", "/second_method", "{}")
        .await
        .refuses(400, "there is no vendor method \"second_method\"");
}

#[tokio::test]
async fn a_method_answers_at_once_or_is_accepted() {
    let api = Api::start().await;
    api.enroll("").await;
    let meow = r#"{"bar": "meow"}"#;
    call(&api, "POST", "/third_method_sync", meow).await.has(200).is("true");
    call(&api, "POST", "/third_method_sync", r#"{"bar": "woof"}"#).await.has(200).is("false");
    call(&api, "POST", "?method=third_method_sync", meow).await.has(200).is("true");
    let later = call(&api, "POST", "/second_method", r#"{"bar": "kazoo"}"#).await.has(202);
    assert_eq!(later.text, "");
    call(&api, "POST", "/log_passthrough", r#"{"anything": [1]}"#).await.has(202);

    api.edit(|node| node.provision_state = State::Cleaning).await;
    call(&api, "POST", "/third_method_sync", meow).await.has(409);
    call(&api, "POST", "/fourth_method_shared_lock", meow).await.has(202);
}

#[tokio::test]
async fn a_wrong_call_is_refused() {
    let api = Api::start().await;
    api.enroll("").await;
    call(&api, "POST", "/third_method_sync", "{}").await.refuses(400, "bar: is required");
    call(&api, "POST", "/third_method_sync", "").await.refuses(400, "bar: is required");
    let more = r#"{"bar": "meow", "color": "red"}"#;
    let why = "color: is not an argument of the method";
    call(&api, "POST", "/third_method_sync", more).await.refuses(400, why);
    call(&api, "POST", "/third_method_sync", r#"["meow"]"#).await.has(400);
    for http_method in ["GET", "PUT", "PATCH", "DELETE"] {
        let why = format!(
            "the vendor method third_method_sync cannot be called by {http_method}; use POST"
        );
        call(&api, http_method, "/third_method_sync", "").await.refuses(400, &why);
    }
    let known = "second_method, third_method_sync, fourth_method_shared_lock, log_passthrough";
    let why = format!("there is no vendor method \"zz\"; use {known}");
    for method in ["/zz", "?method=zz"] {
        call(&api, "POST", method, "{}").await.refuses(400, &why);
    }
    for http_method in ["GET", "POST"] {
        call(&api, http_method, "", "").await.refuses(400, "method: is required");
    }
    call(&api, "POST", "?method=zz&color=red", "").await.has(400);
    let path = "/v1/nodes/zz/vendor_passthru/third_method_sync";
    api.send("POST", path, NEWEST, &json!({"bar": "meow"}).to_string()).await.has(404);
}

/// A node whose BMC is never asked by these tests.
async fn redfish() -> Api {
    let api = Api::start().await;
    let node = json!({"uuid": ID, "driver": "redfish", "driver_info": {"redfish_address": "https://192.0.2.9"}});
    api.send("POST", "/v1/nodes", NEWEST, &node.to_string()).await.has(201);
    api
}

#[tokio::test]
async fn the_methods_of_redfish_are_listed_as_in_ironic() {
    let api = redfish().await;
    let node = api.get(&format!("/v1/nodes/{ID}")).await.json();
    assert_eq!(node["vendor_interface"], "redfish");
    let listed = api.get(&format!("/v1/nodes/{ID}/vendor_passthru/methods")).await.has(200).json();
    let method = |http_method: &str, asynchronous: bool, description: &str| {
        json!({
            "async": asynchronous, "attach": false, "description": description,
            "http_methods": [http_method], "require_exclusive_lock": true,
        })
    };
    let id = "Required argument: a dictionary of {'id': 'subscription_bmc_id'}";
    let want = json!({
        "create_subscription": method("POST", false, "Creates a subscription on a node. Required argument: a dictionary of {'Destination': 'destination_url'}"),
        "delete_subscription": method("DELETE", false, &format!("Delete a subscription on a node. {id}")),
        "eject_vmedia": method("POST", true, "Eject a virtual media device. If no device is provided then all attached devices will be ejected. Optional arguments: 'boot_device' - the boot device to eject, either 'cd', 'dvd', 'usb', or 'floppy'"),
        "get_all_subscriptions": method("GET", false, "Returns all subscriptions on the node."),
        "get_subscription": method("GET", false, &format!("Get a subscription on the node. {id}")),
    });
    assert_eq!(listed, want);
}

#[tokio::test]
async fn a_wrong_call_of_redfish_is_refused_before_the_bmc_is_asked() {
    let api = redfish().await;
    let subscribe = async |body: serde_json::Value| {
        call(&api, "POST", "/create_subscription", &body.to_string()).await
    };
    subscribe(json!({})).await.refuses(400, "Destination: is required");
    let why = "Destination: must be an http or https URL with a host";
    subscribe(json!({"Destination": "snmp://10.0.0.1"})).await.refuses(400, why);
    let why = "Protocol: must be Redfish";
    subscribe(json!({"Destination": "https://e/", "Protocol": "SMTP"})).await.refuses(400, why);
    let why = "Destination: 127.0.0.1 is a loopback address; allow the host with bmc.event_hosts in the configuration of the service";
    subscribe(json!({"Destination": "http://127.1/"})).await.refuses(400, why);
    let why = "color: is not an argument of the method";
    subscribe(json!({"Destination": "https://e/", "color": "red"})).await.refuses(400, why);

    call(&api, "GET", "/get_subscription", "{}").await.refuses(400, "id: is required");
    call(&api, "DELETE", "/delete_subscription", "").await.refuses(400, "id: is required");
    let why = "the vendor method get_all_subscriptions cannot be called by POST; use GET";
    call(&api, "POST", "/get_all_subscriptions", "{}").await.refuses(400, why);
    let why = "boot_device: must be cd, dvd, usb or floppy";
    call(&api, "POST", "/eject_vmedia", r#"{"boot_device": "tape"}"#).await.refuses(400, why);

    api.edit(|node| node.provision_state = State::Cleaning).await;
    call(&api, "GET", "/get_all_subscriptions", "").await.has(409);
    api.edit(|node| node.interfaces.vendor = Some(VendorInterface::NoVendor)).await;
    let why = "there is no vendor method \"get_all_subscriptions\"";
    call(&api, "GET", "/get_all_subscriptions", "").await.refuses(400, why);
}

#[tokio::test]
async fn drivers_have_no_methods() {
    let api = Api::start().await;
    api.get("/v1/drivers/fake-hardware/vendor_passthru/methods").await.has(200).is("{}");
    api.get("/v1/drivers/zz/vendor_passthru/methods").await.has(404);
    let call = async |http_method: &str, path: &str| {
        api.send(http_method, &format!("/v1/drivers/{path}"), NEWEST, "").await
    };
    let why = "there is no vendor method \"second_method\"";
    for http_method in ["GET", "POST", "PUT", "PATCH", "DELETE"] {
        let path = "fake-hardware/vendor_passthru";
        call(http_method, &format!("{path}/second_method")).await.refuses(400, why);
        call(http_method, &format!("{path}?method=second_method")).await.refuses(400, why);
        call(http_method, path).await.refuses(400, "method: is required");
        call(http_method, "zz/vendor_passthru/second_method").await.has(404);
    }
}
