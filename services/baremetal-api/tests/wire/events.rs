//! Wire tests of the events of the network service.

use serde_json::json;

use crate::api::Api;

#[tokio::test]
async fn an_event_of_the_network_service_is_checked() {
    let api = Api::start().await;
    let event = json!({
        "event": "network.bind_port",
        "port_id": "6f1e2d3c-4b5a-4978-8695-a4b3c2d1e0f9",
        "mac_address": "52:54:00:aa:14:01",
        "status": "ACTIVE",
        "device_id": null,
        "binding:vnic_type": "baremetal",
    });
    let post = async |version, events| {
        let body = json!({ "events": events }).to_string();
        api.send("POST", "/v1/events", version, &body).await
    };
    post("1.54", json!([event])).await.has(204);
    post("1.53", json!([event])).await.has(404);
    let why = "events: must be 1 to 1000 events";
    post("1.54", json!([])).await.refuses(400, why);
    post("1.54", json!(vec![&event; 1001])).await.refuses(400, why);
    for (field, value, word) in [
        ("event", json!("network.no_such_event"), "network.no_such_event"),
        ("port_id", json!("words"), "UUID"),
        ("mac_address", json!("words"), "mac_address"),
        ("no_such_field", json!(1), "no_such_field"),
    ] {
        let mut wrong = event.clone();
        wrong[field] = value;
        let answer = post("1.54", json!([event, wrong])).await.has(400).json();
        assert!(answer.to_string().contains(word), "{field}: {answer}");
    }
}
