//! Services and endpoints are added to the catalog, changed and deleted.

use openstack_emulator::{Emulator, Settings};
use reqwest::Method;
use serde_json::{Value, json};

use crate::somebody::{TestUser, alice, shows, text};

const SERVICES: &str = "/identity/v3/services";
const ENDPOINTS: &str = "/identity/v3/endpoints";

async fn admin() -> (Emulator, TestUser) {
    let emulator = Emulator::start(Settings::default()).await.unwrap();
    let admin = TestUser::log_in(&emulator.cloud, "admin", "admin").await;
    (emulator, admin)
}

/// The endpoints of a service type in the catalog of a new token.
async fn shown(who: &TestUser, kind: &str) -> Vec<Value> {
    let all = who.get("/identity/v3/auth/catalog").await["catalog"].clone();
    let entries = all.as_array().unwrap().iter().filter(|entry| entry["type"] == kind);
    entries.flat_map(|entry| entry["endpoints"].as_array().unwrap().clone()).collect()
}

#[tokio::test]
async fn a_registered_service_is_in_the_catalog_of_all_users() {
    let (emulator, admin) = admin().await;
    let body = json!({"service": {"type": "baremetal", "name": "b"}});
    let service = admin.make(SERVICES, body).await["service"].clone();
    shows(&service, json!({"enabled": true, "name": "b"}));
    let id = text(&service["id"]);
    let url = "http://h/v1/$(project_id)s";
    let body =
        json!({"service_id": id, "interface": "public", "region_id": "RegionOne", "url": url});
    let endpoint = admin.make(ENDPOINTS, json!({"endpoint": body})).await["endpoint"].clone();
    shows(&endpoint, json!({"region": "RegionOne", "url": url}));
    let found = admin.get(&format!("{SERVICES}?type=baremetal")).await;
    assert_eq!(found["services"].as_array().unwrap().len(), 1);
    let found = admin.get(&format!("{ENDPOINTS}?service_id={id}&interface=internal")).await;
    assert_eq!(found["endpoints"], json!([]));

    let alice = TestUser::log_in(&emulator.cloud, "alice", "tenant-a").await;
    let seen = shown(&alice, "baremetal").await;
    assert_eq!(seen[0]["url"], format!("http://h/v1/{}", alice.project));
    let path = format!("{ENDPOINTS}/{}", text(&endpoint["id"]));
    let disable = json!({"endpoint": {"enabled": false}});
    assert_eq!(admin.ask(Method::PATCH, &path, disable).await.0, 200);
    assert_eq!(shown(&alice, "baremetal").await, Vec::<Value>::new());
    let change = json!({"endpoint": {"enabled": true, "url": "https://elsewhere"}});
    assert_eq!(admin.ask(Method::PATCH, &path, change).await.0, 200);
    assert_eq!(shown(&alice, "baremetal").await[0]["url"], "https://elsewhere");

    assert_eq!(admin.delete(&format!("{SERVICES}/{id}")).await, 204);
    assert_eq!(admin.ask(Method::GET, &path, Value::Null).await.0, 404);
}

#[tokio::test]
async fn endpoints_need_an_existing_service_and_region() {
    let (_emulator, admin) = admin().await;
    let service = admin.make(SERVICES, json!({"service": {"type": "t"}})).await;
    let good = json!({
        "service_id": service["service"]["id"], "interface": "public", "region_id": "RegionOne", "url": "http://h",
    });
    for (key, value, words) in [
        ("service_id", json!("x"), "Expecting to find endpoint service_id"),
        ("region_id", json!("x"), "Expecting to find endpoint region_id"),
        ("interface", json!("private"), "is not one of"),
        ("url", json!("h"), "does not match"),
        ("url", json!("http://h/%(secret)s"), "invalid URL"),
    ] {
        let mut bad = good.clone();
        bad[key] = value;
        let (status, body) = admin.ask(Method::POST, ENDPOINTS, json!({"endpoint": bad})).await;
        assert_eq!(status, 400);
        assert!(body["error"]["message"].as_str().unwrap().contains(words), "{body}");
    }
    // In the form of API v2, the region is created.
    let mut older = good;
    older.as_object_mut().unwrap().remove("region_id");
    older["region"] = json!("north");
    let made = admin.make(ENDPOINTS, json!({"endpoint": older})).await;
    assert_eq!(made["endpoint"]["region_id"], "north");
    assert_eq!(admin.delete("/identity/v3/regions/north").await, 403);
}

#[tokio::test]
async fn only_administrators_change_the_catalog() {
    let (_emulator, alice) = alice(Settings::default()).await;
    let body = json!({"service": {"type": "baremetal"}});
    let (status, said) = alice.ask(Method::POST, SERVICES, body).await;
    assert_eq!(status, 403);
    assert!(said["error"]["message"].as_str().unwrap().contains("identity:create_service"));
    assert_eq!(alice.ask(Method::GET, SERVICES, Value::Null).await.0, 403);
    let regions = alice.get("/identity/v3/regions").await;
    assert_eq!(regions["regions"][0]["id"], "RegionOne");
}
