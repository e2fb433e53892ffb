//! Unknown fields are refused by each service. An emulator that accepted them would hide a mistake of a client until it meets a real cloud.

use openstack::{Service, Session};
use reqwest::Method;
use secrecy::ExposeSecret;
use serde_json::{Value, json};

use crate::given;

/// A request whose only fault is `colour`, or whose other faults are checked later.
fn cases() -> Vec<(Service, Method, &'static str, Value)> {
    let (name, colour, nobody) =
        ("contract-unknown", "red", "00000000-0000-4000-8000-000000000000");
    let server = json!({"name": name, "imageRef": nobody, "flavorRef": "1", "networks": "none", "colour": colour});
    let network = json!([{"uuid": nobody, "colour": colour}]);
    let in_network =
        json!({"name": name, "imageRef": nobody, "flavorRef": "1", "networks": network});
    let action = "servers/00000000-0000-4000-8000-000000000000/action";
    let (post, put) = (Method::POST, Method::PUT);
    let compute = Service::Compute;
    vec![
        (compute, post.clone(), "servers", json!({"server": server})),
        (compute, post.clone(), "servers", json!({"server": in_network})),
        (compute, post.clone(), action, json!({"reboot": {"type": "SOFT", "colour": colour}})),
        (compute, post.clone(), action, json!({"resize": {"flavorRef": "1", "colour": colour}})),
        (compute, post.clone(), action, json!({"createImage": {"name": name, "colour": colour}})),
        (
            compute,
            post.clone(),
            "os-server-groups",
            json!({"server_group": {"name": name, "policy": "affinity", "colour": colour}}),
        ),
        (
            compute,
            post.clone(),
            "os-keypairs",
            json!({"keypair": {"name": name, "type": "ssh", "colour": colour}}),
        ),
        (
            Service::Dns,
            post.clone(),
            "zones",
            json!({"name": "contract-unknown.example.", "email": "a@example.org", "colour": colour}),
        ),
        (
            Service::Network,
            post.clone(),
            "networks",
            json!({"network": {"name": name, "colour": colour}}),
        ),
        (
            Service::Network,
            post.clone(),
            "security-groups",
            json!({"security_group": {"name": name, "colour": colour}}),
        ),
        (
            Service::LoadBalancer,
            post.clone(),
            "loadbalancers",
            json!({"loadbalancer": {"name": name, "vip_subnet_id": nobody, "colour": colour}}),
        ),
        (Service::BlockStorage, post, "volumes", json!({"volume": {"size": 1}, "colour": colour})),
        (
            compute,
            put,
            "servers/00000000-0000-4000-8000-000000000000",
            json!({"server": {"name": name, "colour": colour}}),
        ),
    ]
}

/// Sends a request as it is, without the driver's own bodies.
async fn send(
    session: &Session,
    service: Service,
    method: Method,
    path: &str,
    body: &Value,
) -> (u16, String) {
    let endpoint = session.endpoint(service).await.unwrap().to_string();
    let endpoint = endpoint.trim_end_matches('/');
    let url = format!("{endpoint}/{path}");
    let token = session.bearer().await.unwrap();
    let request = session.client().request(method, url).json(body);
    let request = request.header("x-auth-token", token.expose_secret());
    let request = request.header("openstack-api-version", "compute 2.79, volume 3.53");
    let answer = request.send().await.unwrap();
    (answer.status().as_u16(), answer.text().await.unwrap())
}

#[tokio::test]
async fn an_unknown_field_is_refused_by_every_service() {
    let Some(alice) = given::session("alice") else { return };
    for (service, method, path, body) in cases() {
        if !alice.has(service).await.unwrap() {
            continue;
        }
        let (status, said) = send(&alice, service, method.clone(), path, &body).await;
        assert_eq!(status, 400, "{method} {path} {body}: {said}");
        assert!(
            said.contains("colour"),
            "{method} {path}: it was refused for something else: {said}"
        );
    }
}
