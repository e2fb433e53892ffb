//! Subscriptions to Redfish events.

use bmc_emulator::{Machine, Request};
use reqwest::Method;
use serde_json::{Value, json};

use crate::rack::TestMachine;

const ALL: &str = "/redfish/v1/EventService/Subscriptions";

fn wish() -> Value {
    json!({
        "Destination": "https://events.example/bmc", "Protocol": "Redfish", "Context": "r1u7",
        "EventTypes": ["Alert"], "HttpHeaders": [{"Authorization": "Basic eA=="}],
    })
}

#[tokio::test]
async fn a_subscription_is_made_shown_and_deleted() {
    let bench = TestMachine::redfish("generic").await;
    let service = bench.get("/redfish/v1/EventService").await;
    assert!(service["EventTypesForSubscription"].as_array().unwrap().contains(&json!("Alert")));
    assert_eq!(service["Subscriptions"]["@odata.id"], ALL);

    let made = bench.ask(Method::POST, ALL).json(&wish()).send().await.unwrap();
    assert_eq!(made.status(), 201);
    let path = made.headers()["location"].to_str().unwrap().to_owned();
    let made: Value = made.json().await.unwrap();
    assert_eq!(made, bench.get(&path).await);
    assert_eq!((&made["Context"], &made["EventTypes"]), (&json!("r1u7"), &json!(["Alert"])));
    assert_eq!(made["HttpHeaders"], json!([]), "headers may hold a secret");
    let kept = Machine::resumed(bench.machine.spec().clone(), bench.machine.kept());
    assert_eq!(kept.subscriptions(), bench.machine.subscriptions());
    assert_eq!(kept.subscriptions()[0].headers[0].1, "Basic eA==");

    let listed = bench.get(ALL).await;
    assert_eq!(listed["Members"], json!([{"@odata.id": path}]));
    let (status, _) = bench.send(Method::DELETE, &path, json!({})).await;
    assert_eq!(status, 204);
    let (status, _) = bench.send(Method::DELETE, &path, json!({})).await;
    assert_eq!(status, 404);
    assert_eq!(bench.get(ALL).await["Members@odata.count"], 0);
    let requests = bench.machine.log().into_iter().map(|entry| entry.request);
    let wanted = Request::Subscribe("https://events.example/bmc".to_owned());
    assert_eq!(requests.take(2).collect::<Vec<_>>(), [wanted, Request::Unsubscribe(1)]);
}

#[tokio::test]
async fn a_wrong_subscription_is_refused() {
    let bench = TestMachine::redfish("supermicro").await;
    let without = |name: &str| {
        let mut wish = wish();
        wish.as_object_mut().unwrap().remove(name);
        wish
    };
    let with = |name: &str, value: Value| {
        let mut wish = wish();
        wish[name] = value;
        wish
    };
    for (wrong, message) in [
        (without("Destination"), "PropertyMissing"),
        (without("Protocol"), "PropertyMissing"),
        (with("Protocol", json!("SMTP")), "PropertyValueNotInList"),
        (with("Destination", json!("events.example")), "PropertyValueFormatError"),
        (with("Destination", json!(7)), "PropertyValueTypeError"),
        (with("EventTypes", json!(["MetricReport"])), "PropertyValueNotInList"),
        (with("EventTypes", json!("Alert")), "PropertyValueTypeError"),
        (with("HttpHeaders", json!([{"a": 1}])), "PropertyValueTypeError"),
        (with("Color", json!("red")), "PropertyUnknown"),
    ] {
        let (status, answer) = bench.send(Method::POST, ALL, wrong.clone()).await;
        let id = answer["error"]["@Message.ExtendedInfo"][0]["MessageId"].as_str().unwrap();
        assert_eq!((status, id.rsplit('.').next()), (400, Some(message)), "{wrong}");
    }
    assert!(bench.machine.subscriptions().is_empty());
}

#[tokio::test]
async fn a_bmc_has_room_for_some_subscriptions() {
    let bench = TestMachine::redfish("lenovo-xcc").await;
    for _ in 0..4 {
        assert_eq!(bench.send(Method::POST, ALL, wish()).await.0, 201);
    }
    let (status, answer) = bench.send(Method::POST, ALL, wish()).await;
    assert_eq!(status, 400);
    assert_eq!(answer["error"]["code"], "Base.1.13.CreateLimitReachedForResource");
}

/// Whether the answer with a new subscription has its address, and its document.
#[tokio::test]
async fn each_family_answers_in_its_way() {
    for (family, has_address, has_document) in [
        ("generic", true, true),
        ("dell-idrac", true, false),
        ("hpe-ilo", true, false),
        ("supermicro", false, true),
    ] {
        let bench = TestMachine::redfish(family).await;
        let made = bench.ask(Method::POST, ALL).json(&wish()).send().await.unwrap();
        assert_eq!(made.headers().contains_key("location"), has_address, "{family}");
        let body = made.text().await.unwrap();
        assert_eq!(body.contains("events.example"), has_document, "{family}");
    }
    let poor = TestMachine::redfish("poor").await;
    assert_eq!(poor.send(Method::POST, ALL, wish()).await.0, 404);
}
