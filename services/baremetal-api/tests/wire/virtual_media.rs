//! Wire tests of virtual media.

use serde_json::json;

use crate::api::{Api, ID, NEWEST};

#[tokio::test]
async fn what_the_drive_cannot_hold_is_refused_before_the_bmc_is_asked() {
    let api = Api::start().await;
    let node = json!({"uuid": ID, "driver": "redfish", "driver_info": {"redfish_address": "https://192.0.2.9"}});
    api.send("POST", "/v1/nodes", NEWEST, &node.to_string()).await.has(201);
    let path = format!("/v1/nodes/{ID}/vmedia");
    let image = "http://images.example/a.iso";
    for (body, why) in [
        (
            json!({"device_type": "tape", "image_url": image}),
            "device_type: must be cdrom, disk or floppy",
        ),
        (
            json!({"device_type": "disk", "image_url": image}),
            "device_type: disk is not supported; use cdrom",
        ),
        (json!({"device_type": "cdrom", "image_url": "a.iso"}), "image_url: is not a URL"),
        (
            json!({"device_type": "cdrom", "image_url": "gopher://images.example/a.iso"}),
            "image_url: must be an http or https URL with a host",
        ),
        (
            json!({"device_type": "cdrom", "image_url": "http://ann:x@images.example/a.iso"}),
            "image_url: must not contain a user name or a password",
        ),
        (
            json!({"device_type": "cdrom", "image_url": image, "image_download_source": "local"}),
            "image_download_source: must be http: the BMC reads the image from its URL",
        ),
    ] {
        api.send("POST", &path, NEWEST, &body.to_string()).await.refuses(400, why);
    }
    let loopback = json!({"device_type": "cdrom", "image_url": "http://127.0.0.1/a.iso"});
    let refused = api.send("POST", &path, NEWEST, &loopback.to_string()).await.has(400);
    assert!(refused.text.contains("allow the host with images.hosts"), "{}", refused.text);
    let why = "device_types: must be cdrom, disk or floppy";
    api.send("DELETE", &format!("{path}?device_types=tape"), NEWEST, "").await.refuses(400, why);
    api.send("DELETE", &path, "1.88", "").await.has(404);
    api.send("GET", &path, "1.92", "").await.has(404);
}

#[tokio::test]
async fn a_machine_without_a_drive_says_so() {
    let api = Api::start().await;
    let node = json!({"uuid": ID, "driver": "manual-management"});
    api.send("POST", "/v1/nodes", NEWEST, &node.to_string()).await.has(201);
    let path = format!("/v1/nodes/{ID}/vmedia");
    let body = json!({"device_type": "cdrom", "image_url": "http://images.example/a.iso"});
    for answer in [
        api.send("POST", &path, NEWEST, &body.to_string()).await,
        api.send("DELETE", &path, NEWEST, "").await,
        api.get(&path).await,
    ] {
        let answer = answer.has(400);
        assert!(answer.text.contains("offer a virtual CD drive"), "{}", answer.text);
    }
}

#[tokio::test]
async fn a_fake_machine_has_a_drive() {
    let api = Api::start().await;
    api.enroll("").await;
    let path = format!("/v1/nodes/{ID}/vmedia");
    let image = "http://images.example/a.iso";
    let body = json!({"device_type": "cdrom", "image_url": image}).to_string();
    let inserted = async || api.get(&path).await.has(200).json()[0]["image"].clone();
    assert_eq!(inserted().await, json!(null));
    api.send("POST", &path, NEWEST, &body).await.has(204);
    assert_eq!(inserted().await, json!(image));
    api.send("DELETE", &path, NEWEST, "").await.has(204);
    assert_eq!(inserted().await, json!(null));
    // The path came with 1.89, whatever the method.
    api.send("PUT", &path, "1.88", &body).await.has(404);
    api.send("PUT", &path, "1.89", &body).await.has(405);
}
