//! Each project sees only its own reservations, within its quota.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::service::{Cloud, Service};

const PATH: &str = "/bedplate/v1/reservations";

/// Waits until the field of the node has this value.
async fn reaches(service: &Service, node: &str, field: &str, state: &str) {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let shown = service.ask_as("system-admin", "GET", node, &Value::Null).await.has(200).json();
        if shown[field] == state {
            return;
        }
        assert!(Instant::now() < deadline, "{field} is not {state}: {shown}");
        sleep(Duration::from_millis(20)).await;
    }
}

/// Creates an available node without an owner.
async fn free_node(service: &Service, name: &str) {
    let admin = "system-admin";
    let body = json!({"driver": "fake-hardware", "name": name, "resource_class": "gpu"});
    service.ask_as(admin, "POST", "/v1/nodes", &body).await.has(201);
    let node = format!("/v1/nodes/{name}");
    for (target, state) in [("manage", "manageable"), ("provide", "available")] {
        let body = json!({"target": target});
        let path = format!("{node}/states/provision");
        service.ask_as(admin, "PUT", &path, &body).await.has(202);
        reaches(service, &node, "provision_state", state).await;
    }
}

fn wish(name: &str) -> Value {
    json!({
        "name": name, "resource_class": "gpu",
        "image": {"url": "http://images/d.raw", "checksum": format!("sha256:{}", "0".repeat(64))},
        "ssh_keys": ["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ2 ann@desk"],
    })
}

#[tokio::test]
async fn a_reservation_is_visible_to_its_project_only() {
    let service = Service::machines_with(Cloud::emulated().await, GRANTS).await;
    for name in ["n1", "n2", "n3"] {
        free_node(&service, name).await;
    }
    let (owner, reader, stranger) = ("project-b-member", "project-b-reader", "project-a-member");
    service.ask_as(reader, "POST", PATH, &wish("job")).await.has(403);
    let made = service.ask_as(owner, "POST", PATH, &wish("job")).await.has(201).json();
    assert_eq!(made["project"], service.projects[2].as_str());
    let refused = service.ask_as(owner, "POST", PATH, &wish("more")).await.has(403);
    assert!(refused.text.contains("1 nodes of its limit of 1"), "{}", refused.text);
    // The reservation of another project does not count against this project's quota.
    service.ask_as(stranger, "POST", PATH, &wish("theirs")).await.has(201);

    let one = format!("{PATH}/{}", made["uuid"].as_str().unwrap());
    let node = format!("/v1/nodes/{}", made["node"]["uuid"].as_str().unwrap());
    for path in [&one, &format!("{PATH}/job"), &node] {
        service.ask_as(reader, "GET", path, &Value::Null).await.has(200);
        service.ask_as(stranger, "GET", path, &Value::Null).await.has(404);
    }
    let listed = service.ask_as(stranger, "GET", PATH, &Value::Null).await.has(200).json();
    let names: Vec<&Value> =
        listed["reservations"].as_array().unwrap().iter().map(|it| &it["name"]).collect();
    assert_eq!(names, ["theirs"]);
    let longer = json!({"for": "2d"});
    service.ask_as(stranger, "PUT", &format!("{one}/lease"), &longer).await.has(404);
    service.ask_as(stranger, "DELETE", &one, &Value::Null).await.has(404);
    service.ask_as(reader, "PUT", &format!("{one}/lease"), &longer).await.has(403);
    service.ask_as(owner, "PUT", &format!("{one}/lease"), &longer).await.has(200);

    reaches(&service, &node, "provision_state", "active").await;
    service.ask_as(reader, "DELETE", &one, &Value::Null).await.has(403);
    service.ask_as(owner, "DELETE", &one, &Value::Null).await.has(202);
    reaches(&service, &node, "provision_state", "available").await;
    service.ask_as(owner, "GET", &one, &Value::Null).await.has(404);
    service.ask_as(owner, "POST", PATH, &wish("again")).await.has(201);
}

#[tokio::test]
async fn a_lease_granted_by_the_owner_can_only_be_extended_by_the_owner() {
    let service = Service::machines_with(Cloud::emulated().await, GRANTS).await;
    let [owner, lessee, _] = &service.projects;
    let body = json!({"driver": "fake-hardware", "name": "lent", "owner": owner});
    service.ask_as("system-admin", "POST", "/v1/nodes", &body).await.has(201);
    let path = "/bedplate/v1/nodes/lent/lease";
    let loan = json!({"lessee": lessee, "for": "1d"});
    service.ask_as("project-a-member", "POST", path, &loan).await.has(200);
    let longer = [json!({"for": "30d"}), json!({"until": "9999-01-01T00:00:00Z"})];
    let begun = service.ask_as("project-l-reader", "GET", path, &Value::Null).await.has(200);
    for name in ["project-l-member", "project-l-manager"] {
        for longer in &longer {
            service.ask_as(name, "PUT", path, longer).await.has(403);
        }
        service.ask_as(name, "POST", path, &loan).await.has(403);
        service.ask_as(name, "POST", &format!("{path}/undo"), &Value::Null).await.has(403);
    }
    let still = service.ask_as("project-l-reader", "GET", path, &Value::Null).await.json();
    assert_eq!(still["lease"]["until"], begun.json()["lease"]["until"]);
    let kept = service.ask_as("project-a-member", "PUT", path, &longer[0]).await.has(200).json();
    assert_ne!(kept["lease"]["until"], still["lease"]["until"]);
}

/// Each project may reserve a single node, for a day by default.
const GRANTS: &str =
    "[reservations]\nnodes_per_project = 1\n[leases]\nnodes = { default = '1d' }\n";
