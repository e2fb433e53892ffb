//! Disabled hosts, and live migration of servers.

use openstack_emulator::{Emulator, Settings, Times};
use reqwest::Method;
use serde_json::{Value, json};

use crate::somebody::{TestUser, alice, text};

/// A cloud, alice with a running server, and the administrator.
async fn running(settings: Settings) -> (Emulator, TestUser, TestUser, String) {
    let (emulator, alice) = alice(settings).await;
    let admin = TestUser::log_in(&alice.cloud, "admin", "admin").await;
    let (network, _) = alice.network("10.0.0.0/24").await;
    let id = alice.server("own", &network, json!({})).await;
    alice.server_is(&id, "ACTIVE").await;
    (emulator, alice, admin, id)
}

async fn shown(admin: &TestUser, id: &str) -> Value {
    admin.get(&format!("/compute/v2.1/servers/{id}")).await["server"].clone()
}

async fn migrate(who: &TestUser, id: &str, given: Value) -> (u16, String) {
    let path = format!("/compute/v2.1/servers/{id}/action");
    let (status, answer) = who.ask(Method::POST, &path, json!({"os-migrateLive": given})).await;
    let said = answer.as_object().and_then(|fault| fault.values().next());
    (status, said.map(|fault| text(&fault["message"])).unwrap_or_default())
}

async fn services(admin: &TestUser) -> Vec<Value> {
    let reported = admin.get("/compute/v2.1/os-services?binary=nova-compute").await;
    reported["services"].as_array().unwrap().clone()
}

async fn set(admin: &TestUser, service: &Value, body: Value) -> u16 {
    let path = format!("/compute/v2.1/os-services/{}", text(&service["id"]));
    admin.ask(Method::PUT, &path, body).await.0
}

#[tokio::test]
async fn an_administrator_moves_a_running_server_to_another_host() {
    let (_emulator, alice, admin, id) = running(Settings::default()).await;
    let before = text(&shown(&admin, &id).await["OS-EXT-SRV-ATTR:host"]);
    let anywhere = || json!({"host": null, "block_migration": "auto"});
    assert_eq!(migrate(&alice, &id, anywhere()).await.0, 403);
    assert_eq!(migrate(&admin, &id, json!({"host": null})).await.0, 400);
    let here = json!({"host": before, "block_migration": "auto"});
    let same = format!("Unable to migrate instance ({id}) to current host ({before}).");
    assert_eq!(migrate(&admin, &id, here).await, (400, same));
    assert_eq!(migrate(&admin, &id, anywhere()).await.0, 202);
    alice.server_is(&id, "ACTIVE").await;
    let after = shown(&admin, &id).await;
    assert_ne!(text(&after["OS-EXT-SRV-ATTR:host"]), before);
    let on = |host: &str| format!("/compute/v2.1/servers/detail?all_tenants=1&host={host}");
    assert_eq!(admin.get(&on(&before)).await["servers"], json!([]));
    let there = admin.get(&on(&text(&after["OS-EXT-SRV-ATTR:host"]))).await;
    assert_eq!(there["servers"][0]["id"], id);
}

#[tokio::test]
async fn a_server_that_migrates_refuses_a_second_migration() {
    // The migration outlasts the test.
    let times = Times { server_action: 3_600_000, ..Times::default() };
    let settings = Settings { times, ..Settings::default() };
    let (_emulator, _alice, admin, id) = running(settings).await;
    let anywhere = || json!({"host": null, "block_migration": "auto"});
    assert_eq!(migrate(&admin, &id, anywhere()).await.0, 202);
    let busy = format!("Cannot 'os-migrateLive' instance {id} while it is in task_state migrating");
    assert_eq!(migrate(&admin, &id, anywhere()).await, (409, busy));
    assert_eq!(shown(&admin, &id).await["status"], "MIGRATING");
}

#[tokio::test]
async fn a_server_stays_where_no_other_host_takes_it() {
    let (_emulator, alice, admin, id) = running(Settings::default()).await;
    let before = text(&shown(&admin, &id).await["OS-EXT-SRV-ATTR:host"]);
    for service in services(&admin).await.iter().filter(|it| text(&it["host"]) != before) {
        let body = json!({"status": "disabled", "disabled_reason": "broken"});
        assert_eq!(set(&admin, service, body).await, 200);
    }
    let anywhere = json!({"host": null, "block_migration": "auto"});
    assert_eq!(migrate(&admin, &id, anywhere).await.0, 202);
    alice.server_is(&id, "ACTIVE").await;
    assert_eq!(text(&shown(&admin, &id).await["OS-EXT-SRV-ATTR:host"]), before);
}

#[tokio::test]
async fn a_host_that_is_disabled_takes_no_servers_and_says_why() {
    let (_emulator, alice, admin, _) = running(Settings::default()).await;
    let all = services(&admin).await;
    for service in &all {
        let body = json!({"status": "disabled", "disabled_reason": "broken"});
        assert_eq!(set(&admin, service, body).await, 200);
    }
    let reported = services(&admin).await;
    assert!(
        reported.iter().all(|it| it["status"] == "disabled" && it["disabled_reason"] == "broken")
    );
    let (network, _) = alice.network("10.1.0.0/24").await;
    let id = alice.server("more", &network, json!({})).await;
    alice.server_is(&id, "ERROR").await;
    assert_eq!(set(&alice, &all[0], json!({"status": "enabled"})).await, 403);
    let both = json!({"status": "enabled", "disabled_reason": "why"});
    assert_eq!(set(&admin, &all[0], both).await, 400);
    assert_eq!(set(&admin, &all[0], json!({"status": "enabled"})).await, 200);
    let id = alice.server("again", &network, json!({})).await;
    alice.server_is(&id, "ACTIVE").await;
}
