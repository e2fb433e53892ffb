//! An operator finds out who caused a change in the cloud, and by which request.

use api_client::shared::AuditRow;
use api_client::{Client, Pages, Service};
use openstack_emulator::{Emulator, Settings};
use reqwest::Method;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use url::Url;

use crate::cloud_user::CloudUser;

#[tokio::test]
async fn the_audit_trail_names_the_request_behind_a_call_to_the_cloud() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    left::keep_logs();
    let emulator = Emulator::start(Settings::default()).await.unwrap();
    let cloud = &emulator.cloud;
    let state = tempfile::tempdir().unwrap();
    let clouds = state.path().join("clouds.yaml");
    std::fs::write(&clouds, cloud.clouds_yaml()).unwrap();
    let text = format!(
        "state_dir = {:?}\n[api]\nlisten = '127.0.0.1:0'\nauth = 'keystone'\n\
         [api.keystone]\nclouds_yaml = {clouds:?}\nname = 'clusterd'\n\
         [cloud]\nclouds_yaml = {clouds:?}\nname = 'alice'\n",
        state.path().join("state"),
    );
    let service = cluster::Service::start(toml::from_str(&text).unwrap()).await.unwrap();
    let url = Url::parse(&format!("http://{}", service.listeners().api)).unwrap();
    let running = async { service.run(CancellationToken::new()).await.unwrap() };
    let _running = AbortOnDropHandle::new(tokio::spawn(running));

    let client = async |user: &str| {
        let CloudUser { session, .. } = CloudUser::new(cloud, user);
        Client::by_keystone(session, Service::Clusterd, Some(url.clone())).await.unwrap()
    };
    let alice = client("alice").await;
    let post = async |path: &str, body: Value| {
        let request = alice.request(Method::POST, path).await.unwrap().json(&body);
        let answer = alice.respond(request).await.unwrap();
        answer.headers()["openstack-request-id"].to_str().unwrap().to_owned()
    };
    let template = json!({
        "name": "t", "image_id": "fedora-coreos", "coe": "kubernetes", "external_network_id": "public", "flavor_id": "m1.large",
        "master_lb_enabled": true,
    });
    post("/v1/clustertemplates", template).await;
    let request = post("/v1/clusters", json!({"name": "blue", "cluster_template_id": "t"})).await;

    // The conductor's later calls to the cloud carry the id of that request.
    let made = cloud
        .wait_until(|cloud| {
            let is_made = |call: &&openstack_emulator::Call| {
                call.method == "POST" && !call.path.ends_with("/auth/tokens")
            };
            cloud.calls().iter().find(is_made).cloned()
        })
        .await;
    assert_eq!(made.global_request_id, request, "{made:?}");

    let path = format!("/bedplate/v1/audit?request_id={request}");
    let trail: Vec<AuditRow> = Pages::of(&client("admin").await, &path).all().await.unwrap();
    let asked = &trail[1];
    let result = asked.result.as_ref().map(|result| result.status);
    let said = (asked.user_name.as_str(), asked.action.as_str(), result);
    assert_eq!(said, ("alice", "Create a cluster", Some(202)), "{trail:?}");
    assert_eq!(asked.source, "127.0.0.1");
    left::add_secrets(cloud.secrets());
    left::keep(&state.path().join("state"), "trail");
}
