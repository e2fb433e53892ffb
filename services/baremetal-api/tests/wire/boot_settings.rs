//! Wire tests of requests for another boot mode, and for secure boot.

use baremetal_core::State;

use crate::api::{Answer, Api, ID, NEWEST};

async fn set(api: &Api, setting: &str, version: &str, body: &str) -> Answer {
    api.send("PUT", &format!("/v1/nodes/{ID}/states/{setting}"), version, body).await
}

#[tokio::test]
async fn a_request_is_accepted_and_its_failure_is_shown() {
    let api = Api::start().await;
    api.enroll("").await;
    for (setting, body, what) in [
        ("boot_mode", r#"{"target": "uefi"}"#, "boot mode to uefi"),
        ("secure_boot", r#"{"target": true}"#, "secure boot to on"),
        ("secure_boot", r#"{"target": "false"}"#, "secure boot to off"),
    ] {
        let accepted = set(&api, setting, "1.76", body).await.has(202);
        assert_eq!(accepted.headers["location"], format!("http://api:6385/v1/nodes/{ID}/states"));
        assert_eq!(accepted.text, "");
        let states = api.get(&format!("/v1/nodes/{ID}/states")).await.has(200).json();
        assert_eq!(
            states["last_error"],
            format!(
                "cannot change the {what}: driver fake-hardware does not support it. \
                 Hint: change the setting in the machine's firmware setup."
            )
        );
        assert!(states["boot_mode"].is_null() && states["secure_boot"].is_null(), "{states}");
    }
    let history = api.get(&format!("/v1/nodes/{ID}/history")).await.json();
    assert_eq!(history["history"][0]["severity"], "ERROR");
}

#[tokio::test]
async fn a_wrong_request_is_refused() {
    let api = Api::start().await;
    api.enroll("").await;
    set(&api, "boot_mode", "1.75", r#"{"target": "uefi"}"#).await.has(404);
    set(&api, "secure_boot", "1.75", r#"{"target": true}"#).await.has(404);
    for wrong in [r#"{"target": "zz"}"#, "{}", r#"{"target": 1}"#, r#"{"target": null}"#] {
        set(&api, "boot_mode", NEWEST, wrong).await.has(400);
        set(&api, "secure_boot", NEWEST, wrong).await.has(400);
    }
    let path = "/v1/nodes/zz/states/boot_mode";
    api.send("PUT", path, NEWEST, r#"{"target": "uefi"}"#).await.has(404);
    api.edit(|node| node.provision_state = State::Deploying).await;
    set(&api, "boot_mode", NEWEST, r#"{"target": "uefi"}"#).await.has(409);
}
