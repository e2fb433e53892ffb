//! Wire tests of reservations.

use baremetal_core::State;
use hardware::PowerState;
use serde_json::{Value, json};

use crate::api::{Api, ID, NEWEST};

const PATH: &str = "/bedplate/v1/reservations";

/// An API with a node that can be reserved.
async fn with_free_node() -> Api {
    let api = Api::start().await;
    api.enroll(r#", "name": "n1", "resource_class": "gpu""#).await;
    api.edit(|node| {
        node.provision_state = State::Available;
        node.power_state = Some(PowerState::Off);
        node.traits = ["CUSTOM_FAST"].map(str::to_owned).into();
    })
    .await;
    api
}

fn wish() -> Value {
    json!({
        "name": "train-1", "resource_class": "gpu", "traits": ["CUSTOM_FAST"],
        "image": {"url": "http://images/d.raw", "checksum": format!("sha256:{}", "a".repeat(64))},
        "ssh_keys": ["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ2 ann@desk"], "lease": "3d",
    })
}

async fn post(api: &Api, body: &Value) -> crate::api::Answer {
    api.send("POST", PATH, NEWEST, &body.to_string()).await
}

#[tokio::test]
async fn a_node_is_reserved_lent_and_installed() {
    let api = with_free_node().await;
    let made = post(&api, &wish()).await.has(201).json();
    let uuid = made["uuid"].as_str().unwrap();
    let want = json!({
        "uuid": uuid, "name": "train-1", "project": null, "user": null, "state": "installing",
        "resource_class": "gpu", "traits": ["CUSTOM_FAST"], "image": "http://images/d.raw",
        "node": {"uuid": ID, "name": "n1", "power_state": "power off", "provision_state": "deploying"},
        "lease": {
            "since": "2026-01-02T03:04:05.000006+00:00", "until": "2026-01-05T03:04:05.000006+00:00",
            "ended_at": null, "deleted_at": null,
            "next": {"step": "warn", "at": "2026-01-04T03:04:05.000006+00:00"},
        },
        "created_at": "2026-01-02T03:04:05.000006+00:00",
    });
    assert_eq!(made, want);
    for path in [format!("{PATH}/{uuid}"), format!("{PATH}/train-1")] {
        api.get(&path).await.has(200).is(&want.to_string());
    }
    api.get(PATH).await.has(200).is(&json!({"reservations": [want]}).to_string());

    let node = api.get("/v1/nodes/n1").await.json();
    assert_eq!((&node["allocation_uuid"], &node["instance_uuid"]), (&json!(uuid), &json!(uuid)));
    assert_eq!(node["instance_name"], "train-1");
    assert_eq!(node["target_provision_state"], "active");
    let info = &node["instance_info"];
    assert_eq!(info["image_source"], "http://images/d.raw");
    assert_eq!(info["image_os_hash_value"], "a".repeat(64));
    assert_eq!(
        api.get(&format!("/v1/allocations/{uuid}")).await.has(200).json()["state"],
        "active"
    );
}

#[tokio::test]
async fn ssh_keys_and_user_data_reach_the_config_drive() {
    let api = with_free_node().await;
    let mut body = wish();
    body["user_data"] = json!("#cloud-config");
    let made = post(&api, &body).await.has(201).json();
    let node = api.store.find_node(&ID.parse().unwrap()).await.unwrap().unwrap();
    let node = api.store.secrets().with_instance(&node).unwrap();
    let want = json!({
        "meta_data": {
            "uuid": made["uuid"], "name": "train-1", "hostname": "train-1",
            "public_keys": {"key-1": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ2 ann@desk"},
        },
        "user_data": "#cloud-config",
    });
    assert_eq!(node.instance_info["configdrive"], want);
    // The config drive is never shown.
    assert!(!api.get("/v1/nodes/n1").await.text.contains("#cloud-config"));
}

#[tokio::test]
async fn the_checksum_of_an_image_may_be_in_a_file() {
    let api = with_free_node().await;
    let mut body = wish();
    body["image"] = json!({"url": "http://images/d.raw", "checksum": "http://images/SHA256SUMS"});
    post(&api, &body).await.has(201);
    let info = &api.get("/v1/nodes/n1").await.json()["instance_info"];
    assert_eq!(info["image_os_hash_value"], "http://images/SHA256SUMS");
    assert_eq!(info.get("image_os_hash_algo"), None);
}

#[tokio::test]
async fn reservations_are_limited_for_each_project() {
    let api = with_free_node().await;
    post(&api, &wish()).await.has(201);
    let mut second = wish();
    second["name"] = json!("train-2");
    post(&api, &second).await.refuses(403, "nodes: the project uses 1 nodes of its limit of 1");
    let mut long = wish();
    long["lease"] = json!("11d");
    post(&api, &long).await.refuses(400, "lease: a lease lasts at most 10d");
}

#[tokio::test]
async fn a_mistake_in_a_request_is_named_and_nothing_is_reserved() {
    let api = with_free_node().await;
    for (field, value, words) in [
        (
            "image",
            json!({"url": "ftp://x", "checksum": "sha256:00"}),
            "image.url: must be an http or https URL",
        ),
        (
            "image",
            json!({"url": "http://i/x", "checksum": "md5:00"}),
            "image.checksum: \"md5\" is neither sha256 nor sha512",
        ),
        (
            "image",
            json!({"url": "http://i/x", "checksum": "00"}),
            "image.checksum: must be sha256:HEX, sha512:HEX or the URL of a file of checksums",
        ),
        (
            "image",
            json!({"url": "http://i/x"}),
            "image.checksum: missing; an image is installed only with a known checksum",
        ),
        (
            "image",
            json!({"url": "http://i/x", "checksum": "https:///SHA256SUMS"}),
            "image.checksum: the URL names no host",
        ),
        (
            "image",
            json!({"url": "http://i/x", "checksum": "https://ann:planted@i/SHA256SUMS"}),
            "image.checksum: must not contain a user name or password: everybody who can see the reservation could read them",
        ),
        (
            "image",
            json!({"url": "oci://registry.example/A:1"}),
            "image.url: a repository has at most 255 characters: words of a-z and 0-9 with '.', '_' or '-' inside, separated by '/'",
        ),
        (
            "image",
            json!({"url": "oci://127.0.0.1/a:1"}),
            "image.url: 127.0.0.1 is a loopback address; allow the host with images.hosts in the configuration of the service",
        ),
        (
            "image",
            json!({"url": "b7f1b8a4-6c2b-4a1e-8b57-6a1d4f6c2a11"}),
            "image.url: an image in Glance needs a cloud; set [cloud] in the configuration of the service",
        ),
        (
            "image",
            json!({"url": "https://ann:planted@i/x", "checksum": "sha256:00"}),
            "image.url: must not contain a user name or password: everybody who can see the reservation could read them",
        ),
        (
            "ssh_keys",
            json!([]),
            "ssh_keys: at least one key or user_data is required, otherwise nobody could log in",
        ),
        (
            "ssh_keys",
            json!(["-----BEGIN OPENSSH PRIVATE KEY-----"]),
            "ssh_keys[0]: must be an SSH public key on one line, as in authorized_keys",
        ),
    ] {
        let mut body = wish();
        body[field] = value;
        post(&api, &body).await.refuses(400, words);
    }
    let mut body = wish();
    body["name"] = json!("a b");
    post(&api, &body).await.has(400);
    body = wish();
    body["colour"] = json!("red");
    post(&api, &body).await.has(400);
    body = wish();
    body["resource_class"] = json!("cpu");
    assert!(post(&api, &body).await.has(409).text.contains("no available nodes match"));
    api.get(PATH).await.has(200).is(r#"{"reservations": []}"#);
    assert!(api.get("/v1/nodes/n1").await.json()["instance_uuid"].is_null());
    api.get(&format!("{PATH}/zz")).await.refuses(404, "Reservation zz could not be found.");
}

#[tokio::test]
async fn a_reservation_is_extended_and_given_back() {
    let api = with_free_node().await;
    post(&api, &wish()).await.has(201);
    let path = format!("{PATH}/train-1");
    let lease = format!("{path}/lease");
    let longer = api.send("PUT", &lease, NEWEST, r#"{"for": "5d"}"#).await.has(200).json();
    assert_eq!(longer["lease"]["until"], "2026-01-07T03:04:05.000006+00:00");
    let until = r#"{"until": "2026-01-08T00:00:00Z"}"#;
    let longer = api.send("PUT", &lease, NEWEST, until).await.has(200).json();
    assert_eq!(longer["lease"]["until"], "2026-01-08T00:00:00.000000+00:00");
    api.send("PUT", &lease, NEWEST, r#"{"for": "11d"}"#).await.has(409);
    api.send("PUT", &lease, NEWEST, r#"{"for": "1x"}"#).await.has(400);
    api.send("POST", &format!("{lease}/undo"), NEWEST, "")
        .await
        .refuses(409, "lease: the lease has not ended: there is nothing to undo");

    // A node cannot be undeployed during its installation, because its disk would be half written.
    api.send("DELETE", &path, NEWEST, "").await.has(409);
    api.edit(|node| {
        node.provision_state = State::Active;
        node.work = None;
    })
    .await;
    assert_eq!(api.get(&path).await.json()["state"], "active");
    let maintained = "/v1/nodes/n1/maintenance";
    api.send("PUT", maintained, NEWEST, "{}").await.has(202);
    let why = "the allocation belongs to a reservation: delete the reservation at /bedplate/v1/reservations instead";
    api.send("DELETE", "/v1/allocations/train-1", NEWEST, "").await.refuses(409, why);
    api.send("DELETE", maintained, NEWEST, "").await.has(202);
    api.send("DELETE", &path, NEWEST, "").await.has(202);
    let shown = api.get(&path).await.has(200).json();
    assert_eq!((&shown["state"], &shown["lease"]["next"]), (&json!("leaving"), &Value::Null));
    assert!(shown["lease"]["deleted_at"].is_string());
    api.send("PUT", &lease, NEWEST, r#"{"for": "1d"}"#).await.has(409);
}
