//! Wire tests of RAID configurations.

use baremetal_core::{Driver, State};
use serde_json::{Value, json};

use crate::api::{Answer, Api, ID, NEWEST};

async fn set(api: &Api, version: &str, config: &Value) -> Answer {
    api.send("PUT", &format!("/v1/nodes/{ID}/states/raid"), version, &config.to_string()).await
}

#[tokio::test]
async fn the_wanted_configuration_is_stored_and_shown() {
    let api = Api::start().await;
    api.enroll("").await;
    let wanted = json!({"logical_disks": [
        {"size_gb": 100, "raid_level": "1", "is_root_volume": true}, {"size_gb": "MAX", "raid_level": "5"}
    ]});
    set(&api, "1.11", &wanted).await.has(406);
    assert_eq!(set(&api, "1.12", &wanted).await.has(204).text, "");
    for path in [format!("/v1/nodes/{ID}"), format!("/v1/nodes/{ID}/states")] {
        let shown = api.get(&path).await.has(200).json();
        assert_eq!((&shown["target_raid_config"], &shown["raid_config"]), (&wanted, &json!({})));
        let shown = api.send("GET", &path, "1.11", "").await.has(200).json();
        assert_eq!(shown.get("target_raid_config"), None);
    }
    let listed = api.get("/v1/nodes/detail").await.has(200).json();
    assert_eq!(listed["nodes"][0]["target_raid_config"], wanted);
    api.edit(|node| node.raid_config = wanted.as_object().unwrap().clone()).await;
    let shown = api.get(&format!("/v1/nodes/{ID}?fields=raid_config")).await.has(200).json();
    assert_eq!(shown["raid_config"], wanted);

    set(&api, NEWEST, &json!({})).await.has(204);
    let shown = api.get(&format!("/v1/nodes/{ID}/states")).await.json();
    assert_eq!(shown["target_raid_config"], json!({}));
}

#[tokio::test]
async fn a_wrong_configuration_is_refused_by_its_field() {
    let api = Api::start().await;
    api.enroll("").await;
    let wrong = json!({"logical_disks": [
        {"size_gb": 1, "raid_level": "1"}, {"size_gb": 1, "raid_level": "7"}
    ]});
    let why = "logical_disks[1].raid_level: must be one of JBOD, 0, 1, 2, 5, 6, 1+0, 5+0, 6+0";
    set(&api, NEWEST, &wrong).await.refuses(400, why);
    for wrong in [json!([]), json!("words"), json!({"no_such_field": 1})] {
        set(&api, NEWEST, &wrong).await.has(400);
    }
    let patch = json!([{"op": "add", "path": "/target_raid_config", "value": {}}]).to_string();
    api.send("PATCH", &format!("/v1/nodes/{ID}"), NEWEST, &patch).await.has(400);
}

#[tokio::test]
async fn a_node_without_raid_or_with_work_is_refused() {
    let api = Api::start().await;
    api.enroll("").await;
    let disks = json!({"logical_disks": [{"size_gb": 1, "raid_level": "1"}]});
    api.edit(|node| node.driver = Driver::Ipmi).await;
    let why = format!("node \"{ID}\" has the raid interface no-raid, which combines no disks");
    set(&api, NEWEST, &disks).await.refuses(404, &why);
    set(&api, NEWEST, &json!({})).await.has(204);
    api.edit(|node| node.provision_state = State::Cleaning).await;
    set(&api, NEWEST, &json!({})).await.has(409);
}

#[tokio::test]
async fn the_properties_of_logical_disks_are_described() {
    let api = Api::start().await;
    let path = "/v1/drivers/fake-hardware/raid/logical_disk_properties";
    let described = api.get(path).await.has(200).json();
    let names: Vec<&String> = described.as_object().unwrap().keys().collect();
    let want = [
        "controller",
        "disk_type",
        "interface_type",
        "is_root_volume",
        "number_of_physical_disks",
        "physical_disks",
        "raid_level",
        "share_physical_disks",
        "size_gb",
        "volume_name",
    ];
    assert_eq!(names, want);
    assert_eq!(
        described["size_gb"],
        "The size in GiB, or MAX for the rest of the space. Required."
    );
    api.send("GET", path, "1.11", "").await.has(406);
    api.get("/v1/drivers/redfish/raid/logical_disk_properties").await.has(200);
    let why = "driver ipmi has the raid interface no-raid, which combines no disks";
    api.get("/v1/drivers/ipmi/raid/logical_disk_properties").await.refuses(404, why);
    api.get("/v1/drivers/zz/raid/logical_disk_properties").await.has(404);
}
