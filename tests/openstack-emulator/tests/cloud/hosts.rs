//! Compute hosts that appear, and aggregates of hosts.

use std::time::Duration;

use openstack_emulator::Settings;
use reqwest::Method;
use serde_json::{Value, json};

use crate::somebody::{TestUser, alice, shows};

const NOVA: &str = "/compute/v2.1";

/// Reports a host as nova-compute does over the message bus.
async fn report(somebody: &TestUser, name: &str) -> Value {
    let url = format!("{}/_control/compute-hosts", somebody.cloud.url());
    let host = json!({"name": name, "vcpus": 8, "memory_mb": 32_768, "disk_gb": 100});
    let answer = somebody.client.put(url).json(&json!({"host": host})).send().await.unwrap();
    assert_eq!(answer.status(), 200);
    answer.json().await.unwrap()
}

async fn service(admin: &TestUser, host: &str) -> Value {
    let path = format!("{NOVA}/os-services?host={host}&binary=nova-compute");
    admin.get(&path).await["services"][0].clone()
}

/// Polls until `look` returns true. Durations are short in these tests.
async fn until(what: &str, look: impl AsyncFn() -> bool) {
    for _ in 0..400 {
        if look().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("timed out: {what}");
}

#[tokio::test]
async fn a_host_that_reports_comes_up_is_discovered_and_goes_down_when_it_falls_silent() {
    let mut settings =
        Settings { hypervisors: Vec::new(), enable_new_services: false, ..Settings::default() };
    settings.times.host_discovery = 200;
    settings.times.service_down = 400;
    let (_emulator, alice) = alice(settings).await;
    let admin = TestUser::log_in(&alice.cloud, "admin", "admin").await;
    assert_eq!(service(&admin, "h1").await, Value::Null);
    let reported = report(&admin, "h1").await;
    assert_eq!(report(&admin, "h1").await["id"], reported["id"]);
    let other = json!({
        "host": {"name": "h1", "vcpus": 8, "memory_mb": 1, "disk_gb": 1}, "uuid": "another",
    });
    let url = format!("{}/_control/compute-hosts", admin.cloud.url());
    let refused = admin.client.put(url).json(&other).send().await.unwrap();
    assert_eq!(refused.status(), 409, "it lost its identity");
    let seen = service(&admin, "h1").await;
    let is = ["state", "status", "zone", "binary"].map(|key| seen[key].as_str().unwrap());
    assert_eq!(is, ["up", "disabled", "nova", "nova-compute"], "{seen}");

    // A pattern without a match answers 404. A host is unknown until it is discovered.
    let path = format!("{NOVA}/os-hypervisors/detail?hypervisor_hostname_pattern=h1");
    assert_eq!(admin.ask(Method::GET, &path, Value::Null).await.0, 404);
    until("a hypervisor that is listed", async || {
        report(&admin, "h1").await;
        admin.ask(Method::GET, &path, Value::Null).await.0 == 200
    })
    .await;
    let hypervisor = admin.get(&path).await["hypervisors"][0].clone();
    assert_eq!(
        (&hypervisor["id"], &hypervisor["service"]["host"]),
        (&reported["id"], &json!("h1"))
    );
    let silent = async || service(&admin, "h1").await["state"] == "down";
    until("a service that is down", silent).await;
    assert_eq!(alice.ask(Method::GET, &format!("{NOVA}/os-services"), Value::Null).await.0, 403);
}

#[tokio::test]
async fn servers_go_to_hosts_that_are_enabled_and_have_a_resource_provider() {
    let settings =
        Settings { hypervisors: Vec::new(), enable_new_services: false, ..Settings::default() };
    let (_emulator, alice) = alice(settings).await;
    let admin = TestUser::log_in(&alice.cloud, "admin", "admin").await;
    let (network, _) = alice.network("10.0.0.0/24").await;
    let id = report(&admin, "h1").await["id"].as_str().unwrap().to_owned();
    let path =
        format!("{NOVA}/os-services/{}", service(&admin, "h1").await["id"].as_str().unwrap());
    let enable = json!({"status": "enabled"});
    assert_eq!(admin.ask(Method::PUT, &path, enable).await.0, 200);
    let nowhere = alice.server("a", &network, json!({})).await;
    alice.server_is(&nowhere, "ERROR").await;

    // As nova-compute does: first a resource provider with the id of the hypervisor, then its inventory.
    let body = json!({"name": "h1", "uuid": id});
    let made = admin.make("/placement/resource_providers", body.clone()).await;
    shows(&made, json!({"uuid": id, "generation": 0}));
    let again = admin.ask(Method::POST, "/placement/resource_providers", body).await;
    assert_eq!(again.0, 409);
    let inventories = format!("/placement/resource_providers/{id}/inventories");
    assert_eq!(admin.get(&inventories).await["inventories"], json!({}));
    let stock =
        json!({"VCPU": {"total": 8}, "MEMORY_MB": {"total": 32_768}, "DISK_GB": {"total": 100}});
    let body =
        |generation: u64| json!({"resource_provider_generation": generation, "inventories": stock});
    assert_eq!(admin.ask(Method::PUT, &inventories, body(7)).await.0, 409);
    assert_eq!(admin.ask(Method::PUT, &inventories, body(0)).await.0, 200);
    report(&admin, "h1").await;
    let server = alice.server("b", &network, json!({})).await;
    alice.server_is(&server, "ACTIVE").await;
    let refused = admin.ask(Method::DELETE, &path, Value::Null).await;
    assert_eq!(refused.0, 409, "it hosts a server");
}

#[tokio::test]
async fn a_host_is_in_one_zone_and_any_number_of_aggregates() {
    let (_emulator, alice) = alice(Settings::default()).await;
    let admin = TestUser::log_in(&alice.cloud, "admin", "admin").await;
    let make = async |name: &str, zone: Value| {
        let body = json!({"aggregate": {"name": name, "availability_zone": zone}});
        admin.ask(Method::POST, &format!("{NOVA}/os-aggregates"), body).await
    };
    // The settings put two hosts into az2.
    let all = admin.get(&format!("{NOVA}/os-aggregates")).await;
    assert_eq!(all["aggregates"][0]["hosts"], json!(["compute-3", "compute-4"]));
    let (status, made) = make("r1", json!("r1")).await;
    assert_eq!((status, &made["aggregate"]["availability_zone"]), (200, &json!("r1")));
    assert_eq!(make("r1", Value::Null).await.0, 409);
    let kvm = make("kvm", Value::Null).await.1;
    assert_eq!(kvm["aggregate"]["metadata"], json!({}));
    let act = async |aggregate: &Value, action: &str, host: &str| {
        let path = format!("{NOVA}/os-aggregates/{}/action", aggregate["aggregate"]["id"]);
        admin.ask(Method::POST, &path, json!({action: {"host": host}})).await.0
    };
    assert_eq!(act(&made, "add_host", "compute-1").await, 200);
    assert_eq!(act(&made, "add_host", "compute-1").await, 409, "it is there");
    assert_eq!(act(&made, "add_host", "compute-3").await, 409, "it is in another zone");
    assert_eq!(act(&made, "add_host", "nobody").await, 404);
    assert_eq!(act(&kvm, "add_host", "compute-3").await, 200);
    assert_eq!(service(&admin, "compute-1").await["zone"], "r1");
    let zones = alice.get(&format!("{NOVA}/os-availability-zone")).await;
    assert!(zones.to_string().contains("\"r1\""), "{zones}");
    let path = format!("{NOVA}/os-aggregates/{}", made["aggregate"]["id"]);
    assert_eq!(admin.delete(&path).await, 400, "it has a host");
    assert_eq!(act(&made, "remove_host", "compute-1").await, 200);
    assert_eq!(admin.delete(&path).await, 200);
    assert_eq!(alice.ask(Method::GET, &format!("{NOVA}/os-aggregates"), Value::Null).await.0, 403);
    assert_eq!(alice.delete(&format!("{NOVA}/flavors/none")).await, 403);
}
