//! Disks in requests for servers.

use openstack_emulator::Settings;
use reqwest::Method;
use serde_json::json;

use crate::somebody::{alice, with};

#[tokio::test]
async fn a_disk_is_tagged_only_in_microversions_that_allow_tags() {
    let (_emulator, alice) = alice(Settings::default()).await;
    let (network, _) = alice.network("10.0.0.0/24").await;
    let disk = |tag: &str| json!({"boot_index": -1, "source_type": "blank", "destination_type": "volume", "volume_size": 1, "tag": tag});
    let more = json!({"block_device_mapping_v2": [disk("etcd")]});
    let server = alice.server("a", &network, more.clone()).await;
    let seen = alice.get(&format!("/compute/v2.1/servers/{server}/os-volume_attachments")).await;
    assert_eq!(seen["volumeAttachments"][0]["tag"], "etcd");

    let body = json!({"name": "b", "flavorRef": "1", "imageRef": alice.image(), "networks": [{"uuid": network}]});
    let body = json!({"server": with(body, &more)});
    for (version, status) in [("2.31", 400), ("2.32", 202), ("2.41", 400), ("2.42", 202)] {
        let url = format!("{}/compute/v2.1/servers", alice.cloud.url());
        let request = alice.client.post(url).header("x-auth-token", &alice.token).json(&body);
        let request = request.header("openstack-api-version", format!("compute {version}"));
        assert_eq!(request.send().await.unwrap().status(), status, "{version}");
    }
    for (tag, status) in [("a/b", 400), ("a-b", 202)] {
        let body = json!({"server": {"name": "c", "flavorRef": "1", "imageRef": alice.image(), "networks": "none", "block_device_mapping_v2": [disk(tag)]}});
        assert_eq!(alice.ask(Method::POST, "/compute/v2.1/servers", body).await.0, status);
    }
}
