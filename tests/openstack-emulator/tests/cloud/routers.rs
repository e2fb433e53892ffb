//! Routers, and the projects of their ports.

use openstack_emulator::{Kind, Settings};
use serde_json::json;

use crate::somebody::{alice, text};

#[tokio::test]
async fn the_gateway_port_of_a_router_belongs_to_no_project_and_no_quota() {
    let (emulator, alice) = alice(Settings::default()).await;
    let outside = emulator.cloud.objects(Kind::Network)[0].id.clone();
    let before = alice.get("/network/v2.0/ports").await["ports"].as_array().unwrap().len();
    let body = json!({"router": {"name": "r", "external_gateway_info": {"network_id": outside}}});
    let router = text(&alice.make("/network/v2.0/routers", body).await["router"]["id"]);
    let ports = emulator.cloud.objects(Kind::Port);
    let gateway = ports.iter().find(|it| it.text("device_id") == router).unwrap();
    assert_eq!(gateway.text("device_owner"), "network:router_gateway");
    assert_eq!((gateway.project.as_str(), gateway.text("project_id")), ("", ""));
    let seen = alice.get("/network/v2.0/ports").await["ports"].as_array().unwrap().len();
    assert_eq!(seen, before);
    let quota = alice.get(&format!("/network/v2.0/quotas/{}/details.json", alice.project)).await;
    assert_eq!(quota["quota"]["port"]["used"], 0, "{quota}");
}
