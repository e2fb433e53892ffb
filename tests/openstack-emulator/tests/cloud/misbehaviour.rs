//! Faults that tests can cause in a cloud.

use std::time::{Duration, Instant};

use openstack_emulator::{Act, Cloud, End, Kind, Lag, Rule, Settings, Stop};
use reqwest::Method;
use serde_json::{Value, json};

use crate::somebody::{TestUser, alice, fate, shows, text};

const NETWORKS: &str = "/network/v2.0/networks";

fn network() -> Value {
    json!({"network": {"name": "n"}})
}

#[tokio::test]
async fn the_nth_call_gets_a_status_in_the_services_own_words() {
    let (emulator, alice) = alice(Settings::default()).await;
    let act = Act::Answer { status: 429, retry_after: Some(7), message: None };
    emulator.cloud.misbehave(Rule::new("POST", NETWORKS, act).nth(2));
    assert_eq!(alice.ask(Method::POST, NETWORKS, network()).await.0, 201);
    let answer = alice.send(Method::POST, NETWORKS, &network()).await.unwrap();
    assert_eq!(
        (answer.status().as_u16(), answer.headers()["retry-after"].to_str().unwrap()),
        (429, "7")
    );
    assert!(answer.headers()["x-openstack-request-id"].to_str().unwrap().starts_with("req-"));
    assert!(answer.json::<Value>().await.unwrap()["NeutronError"]["message"].is_string());
    assert_eq!(alice.ask(Method::POST, NETWORKS, network()).await.0, 201);
    let hit = emulator.cloud.calls().into_iter().filter(|call| call.status == Some(429));
    let hit: Vec<_> = hit.collect();
    assert!(hit.len() == 1 && !hit[0].worked, "{hit:?}");
}

#[tokio::test]
async fn an_answer_is_lost_after_the_work_and_a_request_before_it() {
    let (emulator, alice) = alice(Settings::default()).await;
    let rule = emulator.cloud.misbehave(Rule::new("POST", NETWORKS, Act::LoseAnswer).times(1));
    assert!(alice.send(Method::POST, NETWORKS, &network()).await.is_err());
    assert_eq!(
        alice.get(NETWORKS).await["networks"].as_array().unwrap().len(),
        2,
        "hers and public"
    );
    emulator.cloud.end_rule(rule);
    emulator.cloud.misbehave(Rule::new("POST", NETWORKS, Act::Close).times(1));
    assert!(alice.send(Method::POST, NETWORKS, &network()).await.is_err());
    assert_eq!(alice.get(NETWORKS).await["networks"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn a_request_that_was_given_up_lands_later() {
    let (emulator, alice) = alice(Settings::default()).await;
    let number = |cloud: &Cloud| cloud.objects(Kind::Network).len();
    emulator.cloud.misbehave(Rule::new("POST", NETWORKS, Act::Land { millis: 10 }).times(1));
    assert!(alice.send(Method::POST, NETWORKS, &network()).await.is_err());
    emulator.cloud.wait_until(|cloud| (number(cloud) == 2).then_some(())).await;

    let rule = emulator.cloud.misbehave(Rule::new("POST", NETWORKS, Act::LandAfterwards).times(1));
    assert!(alice.send(Method::POST, NETWORKS, &network()).await.is_err());
    assert_eq!(alice.ask(Method::POST, NETWORKS, network()).await.0, 201);
    assert_eq!(number(&emulator.cloud), 3, "two of hers, and public");
    emulator.cloud.end_rule(rule);
    emulator.cloud.wait_until(|cloud| (number(cloud) == 4).then_some(())).await;
}

#[tokio::test]
async fn a_trap_catches_each_call_once_and_prevents_all_later_work() {
    let (emulator, alice) = alice(Settings::default()).await;
    let cloud = &emulator.cloud;
    let number = || cloud.objects(Kind::Network).len();
    alice.get(NETWORKS).await;
    let dies = async |stop: Stop| {
        let second = json!({"network": {"name": "second"}});
        let first = network();
        let (first, second) = tokio::join!(alice.send(Method::POST, NETWORKS, &first), async {
            cloud.wait_until(Cloud::caught).await;
            let asked = alice.send(Method::POST, NETWORKS, &second);
            let asked = tokio::time::timeout(Duration::from_millis(100), asked).await;
            assert!(asked.is_err(), "{stop:?}: it was answered");
            assert_eq!(cloud.caught().as_deref(), Some("POST /network/v2.0/networks n"));
            cloud.open_trap();
            asked
        });
        assert!(first.is_err() && second.is_err());
    };
    cloud.set_trap(Stop::Before);
    dies(Stop::Before).await;
    assert_eq!(number(), 1, "public");
    cloud.set_trap(Stop::After);
    dies(Stop::After).await;
    assert_eq!(number(), 2);
    // The trap has caught this call before.
    assert_eq!(alice.ask(Method::POST, NETWORKS, network()).await.0, 201);
    cloud.remove_trap();
}

#[tokio::test]
async fn a_call_hangs_until_it_is_forgiven() {
    let (emulator, alice) = alice(Settings::default()).await;
    let rule = emulator.cloud.misbehave(Rule::new("POST", NETWORKS, Act::HangAfterwards));
    let hanging =
        tokio::spawn(async move { alice.send(Method::POST, NETWORKS, &network()).await.is_err() });
    let made =
        |cloud: &openstack_emulator::Cloud| (cloud.objects(Kind::Network).len() == 2).then_some(());
    emulator.cloud.wait_until(made).await;
    assert!(!hanging.is_finished());
    emulator.cloud.end_rule(rule);
    assert!(hanging.await.unwrap());
}

#[tokio::test]
async fn a_service_is_down_for_a_while_and_the_others_are_not() {
    let (emulator, alice) = alice(Settings::default()).await;
    let act = Act::Answer { status: 503, retry_after: None, message: None };
    emulator.cloud.misbehave(Rule::new("", "/dns/**", act).lasting(Duration::from_millis(150)));
    assert_eq!(alice.ask(Method::GET, "/dns/v2/zones", Value::Null).await.0, 503);
    alice.get(NETWORKS).await;
    let begun = Instant::now();
    while alice.ask(Method::GET, "/dns/v2/zones", Value::Null).await.0 != 200 {
        assert!(begun.elapsed() < Duration::from_secs(10));
    }
}

#[tokio::test]
async fn servers_fail_are_stuck_or_have_no_room() {
    let (emulator, alice) = alice(Settings::default()).await;
    let burns = End::Error("the disk is on fire".into());
    emulator.cloud.set_fate(fate(Kind::Server, "bad-*", burns));
    emulator.cloud.set_fate(fate(Kind::Server, "stuck-*", End::Stuck));
    let (network, _) = alice.network("10.0.0.0/24").await;
    let bad = alice.server("bad-1", &network, json!({})).await;
    let stuck = alice.server("stuck-1", &network, json!({})).await;
    let good = alice.server("good-1", &network, json!({})).await;
    let bad = alice.server_is(&bad, "ERROR").await;
    shows(&bad["fault"], json!({"message": "the disk is on fire", "code": 500}));
    alice.server_is(&good, "ACTIVE").await;
    assert_eq!(
        alice.get(&format!("/compute/v2.1/servers/{stuck}")).await["server"]["status"],
        "BUILD"
    );

    let group = json!({"server_group": {"name": "apart", "policy": "anti-affinity"}});
    let group =
        text(&alice.make("/compute/v2.1/os-server-groups", group).await["server_group"]["id"]);
    let mut last = Value::Null;
    for number in 0..5 {
        let server = json!({"name": format!("a{number}"), "flavorRef": "1", "imageRef": alice.image(), "networks": [{"uuid": network}]});
        let body = json!({"server": server, "os:scheduler_hints": {"group": group}});
        let made = alice.make("/compute/v2.1/servers", body).await;
        let want = if number < 4 { "ACTIVE" } else { "ERROR" };
        last = alice.server_is(&text(&made["server"]["id"]), want).await;
    }
    assert!(
        text(&last["fault"]["message"]).starts_with("No valid host was found"),
        "four hosts, five servers apart"
    );
}

#[tokio::test]
async fn a_load_balancer_is_stuck_and_refuses_to_be_deleted() {
    let (emulator, alice) = alice(Settings::default()).await;
    emulator.cloud.set_fate(fate(Kind::LoadBalancer, "**", End::Stuck));
    let (_, subnet) = alice.network("10.0.0.0/24").await;
    let body = json!({"loadbalancer": {"name": "lb", "vip_subnet_id": subnet}});
    let made = alice.make("/load-balancer/v2/lbaas/loadbalancers", body).await;
    let path =
        format!("/load-balancer/v2/lbaas/loadbalancers/{}", text(&made["loadbalancer"]["id"]));
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(alice.get(&path).await["loadbalancer"]["provisioning_status"], "PENDING_CREATE");
    let (status, body) =
        alice.ask(Method::DELETE, &format!("{path}?cascade=true"), Value::Null).await;
    assert_eq!((status, body["faultcode"].as_str()), (409, Some("Client")), "{body}");
}

#[tokio::test]
async fn a_list_lags_behind_creates_but_a_get_does_not() {
    let (emulator, alice) = alice(Settings::default()).await;
    emulator.cloud.lag(Lag { kind: Kind::Network, millis: 300 });
    let begun = Instant::now();
    let made = alice.make(NETWORKS, network()).await;
    let id = text(&made["network"]["id"]);
    alice.get(&format!("{NETWORKS}/{id}")).await;
    let list = format!("{NETWORKS}?name=n");
    assert_eq!(alice.get(&list).await["networks"], json!([]));
    while alice.get(&list).await["networks"] == json!([]) {
        assert!(begun.elapsed() < Duration::from_secs(10));
    }
    assert!(begun.elapsed() >= Duration::from_millis(300));
}

#[tokio::test]
async fn a_lowered_quota_does_not_affect_other_projects() {
    let (emulator, alice) = alice(Settings::default()).await;
    let bob = TestUser::log_in(&emulator.cloud, "bob", "tenant-b").await;
    let (network, _) = alice.network("10.0.0.0/24").await;
    let port = || json!({"port": {"network_id": network}});
    alice.make("/network/v2.0/ports", port()).await;
    emulator.cloud.set_quota("tenant-a", "port", 1);
    let (status, body) = alice.ask(Method::POST, "/network/v2.0/ports", port()).await;
    assert_eq!((status, body["NeutronError"]["type"].as_str()), (409, Some("OverQuota")));
    emulator.cloud.set_quota("tenant-a", "instances", 0);
    let server = json!({"server": {"name": "v", "flavorRef": "1", "imageRef": alice.image(), "networks": "none"}});
    let (status, body) = alice.ask(Method::POST, "/compute/v2.1/servers", server).await;
    assert_eq!(status, 403);
    assert_eq!(
        body["forbidden"]["message"],
        "Quota exceeded for instances: Requested 1, but already used 0 of 0 instances"
    );
    let (network, _) = bob.network("10.0.0.0/24").await;
    bob.make("/network/v2.0/ports", json!({"port": {"network_id": network}})).await;
}

#[tokio::test]
async fn every_service_refuses_voided_tokens() {
    let (emulator, alice) = alice(Settings::default()).await;
    emulator.cloud.void_tokens();
    let paths = [
        NETWORKS,
        "/compute/v2.1/servers",
        "/dns/v2/zones",
        "/image/v2/images",
        "/load-balancer/v2/lbaas/pools",
        "/volume/v3/volumes",
        "/identity/v3/auth/catalog",
    ];
    for path in paths {
        let answer = alice.send(Method::GET, path, &Value::Null).await.unwrap();
        assert_eq!(answer.status(), 401, "{path}");
        assert!(
            answer.headers()["www-authenticate"].to_str().unwrap().starts_with("Keystone uri=")
        );
    }
}
