//! An operator finds out who caused a change in the cloud, and by which request.

use openstack_emulator::{Emulator, Settings};
use reqwest::Client;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

/// A token of this user in this project of the emulated cloud. The password is `NAME-secret`.
async fn token(client: &Client, keystone: &str, user: &str, project: &str) -> String {
    let domain = json!({"id": "default"});
    let body = json!({"auth": {
        "identity": {"methods": ["password"], "password": {"user": {
            "name": user, "domain": domain, "password": format!("{user}-secret"),
        }}},
        "scope": {"project": {"name": project, "domain": domain}},
    }});
    let answer = client.post(format!("{keystone}/auth/tokens")).json(&body).send().await;
    let answer = answer.expect("Keystone answers");
    assert_eq!(answer.status(), 201);
    let token = answer.headers()["x-subject-token"].to_str().expect("a token is ASCII");
    token.to_owned()
}

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
    let url = format!("http://{}", service.listeners().api);
    let running = async { service.run(CancellationToken::new()).await.unwrap() };
    let _running = AbortOnDropHandle::new(tokio::spawn(running));

    let client = Client::builder().no_proxy().build().unwrap();
    let alice = token(&client, &cloud.auth_url(), "alice", "tenant-a").await;
    let post = async |path: &str, body: Value| {
        let request = client.post(format!("{url}{path}")).header("x-auth-token", &alice);
        let answer = request.json(&body).send().await.unwrap();
        let id = answer.headers()["openstack-request-id"].to_str().unwrap().to_owned();
        assert!(answer.status().is_success(), "{}", answer.text().await.unwrap());
        id
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

    let admin = token(&client, &cloud.auth_url(), "admin", "admin").await;
    let path = format!("{url}/bedplate/v1/audit?request_id={request}");
    let answer = client.get(path).header("x-auth-token", &admin).send().await.unwrap();
    let trail: Value = answer.json().await.unwrap();
    let asked = &trail["audit"][1];
    assert_eq!(
        (&asked["user_name"], &asked["action"], &asked["result"]["status"]),
        (&json!("alice"), &json!("Create a cluster"), &json!(202)),
        "{trail}"
    );
    assert_eq!(asked["source"], "127.0.0.1");
    left::add_secrets(cloud.secrets());
    left::keep(&state.path().join("state"), "trail");
}
