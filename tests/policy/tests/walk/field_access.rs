//! The fields of a node that owners and lessees see and change, which the policy table does not show.

use serde_json::{Value, json};

use crate::service::{Answer, Cloud, Service};

/// A node of project A, lent to project L.
async fn lent(service: &Service) -> String {
    let [owner, lessee, _] = &service.projects;
    let body = json!({
        "driver": "fake-hardware", "owner": owner, "lessee": lessee, "name": "n",
        "driver_info": {"redfish_address": "https://bmc.example", "redfish_password": "planted"},
    });
    let node = service.ask_as("system-admin", "POST", "/v1/nodes", &body).await.has(201).json();
    node["uuid"].as_str().unwrap().to_owned()
}

async fn patch(service: &Service, name: &str, node: &str, path: &str, value: Value) -> Answer {
    let body = json!([{"op": "add", "path": path, "value": value}]);
    service.ask_as(name, "PATCH", &format!("/v1/nodes/{node}"), &body).await
}

#[tokio::test]
async fn a_lessee_cannot_see_driver_settings() {
    let service = Service::machines(Cloud::emulated().await).await;
    let node = lent(&service).await;
    let hidden = ["driver_info", "driver_internal_info", "last_error", "reservation", "conductor"];
    for path in [
        format!("/v1/nodes/{node}"),
        "/v1/nodes/n".to_owned(),
        format!("/v1/nodes/{node}?fields=uuid,{}", hidden.join(",")),
        "/v1/nodes/detail".to_owned(),
    ] {
        for (name, sees) in [
            ("project-l-reader", false),
            ("project-l-manager", false),
            ("project-a-reader", true),
            ("system-reader", true),
            ("helper", true),
        ] {
            let answer = service.ask_as(name, "GET", &path, &Value::Null).await.has(200);
            assert!(!answer.text.contains("planted"), "{}", answer.text);
            let body = answer.json();
            let shown = body.get("nodes").map_or(&body, |nodes| &nodes[0]);
            assert_eq!(shown["uuid"], node.as_str());
            for field in hidden {
                assert_eq!(shown.get(field).is_some(), sees, "{path} by {name}: {field}");
            }
        }
    }
    let path = format!("/v1/nodes/{node}/states");
    for (name, sees) in [("project-l-member", false), ("project-a-member", true)] {
        let states = service.ask_as(name, "GET", &path, &Value::Null).await.has(200).json();
        assert_eq!(states.get("last_error").is_some(), sees);
    }
}

#[tokio::test]
async fn owner_and_lessee_change_only_their_own_fields() {
    let service = Service::machines(Cloud::emulated().await).await;
    let node = lent(&service).await;
    let (member, manager) = ("member", "manager");
    for (path, value, owner, lessee) in [
        ("/extra/x", json!(1), Some(member), Some(member)),
        ("/description", json!("d"), Some(member), Some(member)),
        ("/instance_info/image_source", json!("http://i"), Some(member), Some(manager)),
        ("/driver_info/x", json!("y"), Some(member), None),
        ("/properties/x", json!("y"), Some(member), None),
        ("/resource_class", json!("gold"), Some(member), None),
        ("/boot_interface", json!("fake"), Some(manager), None),
        ("/owner", json!(service.projects[1]), None, None),
        ("/parent_node", json!("7c9e6679-7425-40de-944b-e07fc1f90ae7"), None, None),
        ("/shard", json!("s"), None, None),
        ("/automated_clean", json!(false), None, None),
    ] {
        for (project, least) in [("project-a", owner), ("project-l", lessee)] {
            for role in [member, manager] {
                let may = least == Some(role) || least == Some(member);
                let name = format!("{project}-{role}");
                let answer = patch(&service, &name, &node, path, value.clone()).await;
                assert_eq!(
                    answer.status,
                    if may { 200 } else { 403 },
                    "{path} by {name}: {}",
                    answer.text
                );
                let field = path.split('/').nth(1).unwrap();
                assert!(may || answer.text.contains(&format!("{field}: ")), "{}", answer.text);
            }
        }
    }
}

#[tokio::test]
async fn an_owner_lends_a_node_and_ends_the_loan() {
    let service = Service::machines(Cloud::emulated().await).await;
    let node = lent(&service).await;
    let path = format!("/v1/nodes/{node}");
    patch(&service, "project-a-member", &node, "/lessee", Value::Null).await.has(200);
    service.ask_as("project-l-member", "GET", &path, &Value::Null).await.has(404);
    let other = json!(service.projects[2]);
    patch(&service, "project-a-member", &node, "/lessee", other).await.has(200);
    service.ask_as("project-b-reader", "GET", &path, &Value::Null).await.has(200);
    // The lessee may not lend the node to another project.
    let answer = patch(&service, "project-b-manager", &node, "/lessee", Value::Null).await;
    assert!(answer.has(403).text.contains("lessee: "));
}

#[tokio::test]
async fn a_hidden_node_is_found_by_no_query() {
    let service = Service::machines(Cloud::emulated().await).await;
    let node = lent(&service).await;
    let body = json!({"node_uuid": node, "address": "02:00:00:00:00:03"});
    let port =
        service.ask_as("project-a-manager", "POST", "/v1/ports", &body).await.has(201).json();
    let port = port["uuid"].as_str().unwrap();
    let owner = &service.projects[0];
    let stranger = "project-b-member";
    for path in [
        format!("/v1/nodes?owner={owner}"),
        format!("/v1/nodes?project={owner}"),
        "/v1/nodes?include_children=true&fields=driver_info".to_owned(),
        "/v1/ports?address=02:00:00:00:00:03".to_owned(),
        format!("/v1/nodes?parent_node={node}"),
    ] {
        let listed = service.ask_as(stranger, "GET", &path, &Value::Null).await.has(200).json();
        let list = listed.as_object().unwrap().values().next().unwrap();
        assert_eq!(list, &json!([]), "{path}");
    }
    for (path, status) in [
        (format!("/v1/nodes?marker={node}"), 404),
        (format!("/v1/ports?marker={port}"), 404),
        (format!("/v1/ports?node={node}"), 404),
        (format!("/v1/ports?node_uuid={node}"), 404),
        (format!("/v1/nodes/{node}/ports"), 404),
    ] {
        service.ask_as(stranger, "GET", &path, &Value::Null).await.has(status);
    }
    // A port on a node of another project is refused like a port on a missing node.
    let refused = service.ask_as("project-b-manager", "POST", "/v1/ports", &body).await.has(400);
    assert!(
        refused.text.contains(&format!("node_uuid: Node {node} could not be found")),
        "{}",
        refused.text
    );
}

#[tokio::test]
async fn an_owner_cannot_send_a_stored_password_elsewhere() {
    let service = Service::machines(Cloud::emulated().await).await;
    let node = lent(&service).await;
    let address = |host: &str| json!({"op": "replace", "path": "/driver_info/redfish_address", "value": host});
    let password =
        json!({"op": "replace", "path": "/driver_info/redfish_password", "value": "mine"});
    let path = format!("/v1/nodes/{node}");
    let ask = async |name: &str, body: Value| service.ask_as(name, "PATCH", &path, &body).await;
    for owner in ["project-a-member", "project-a-manager"] {
        let refused = ask(owner, json!([address("https://evil.example")])).await.has(400);
        assert!(
            refused.text.contains("driver_info.redfish_password: send the password again"),
            "{}",
            refused.text
        );
        assert!(!refused.text.contains("planted"), "{}", refused.text);
    }
    let shown = service.ask_as("project-a-reader", "GET", &path, &Value::Null).await.json();
    assert_eq!(shown["driver_info"]["redfish_address"], "https://bmc.example");

    ask("project-a-member", json!([address("https://new.example"), password])).await.has(200);
    for operator in ["system-admin", "project-b-admin", "helper"] {
        ask(operator, json!([address(&format!("https://{operator}.example"))])).await.has(200);
    }
}

#[tokio::test]
async fn the_node_that_has_a_bmc_is_named_only_to_callers_who_see_it() {
    let service = Service::machines(Cloud::emulated().await).await;
    let [own, _, other] = &service.projects;
    let node = async |name: &str, owner: &str| {
        let info = json!({"redfish_address": format!("https://{name}.example")});
        let body = json!({"driver": "redfish", "name": name, "owner": owner, "driver_info": info});
        let made = service.ask_as("system-admin", "POST", "/v1/nodes", &body).await.has(201).json();
        made["uuid"].as_str().unwrap().to_owned()
    };
    let (ours, theirs) = (node("ours", own).await, node("theirs", other).await);
    let body = json!([
        {"op": "replace", "path": "/driver_info", "value": {"redfish_address": "theirs.example"}}
    ]);
    let path = format!("/v1/nodes/{ours}");
    let refused = service.ask_as("project-a-member", "PATCH", &path, &body).await.has(409);
    assert!(refused.text.contains("this BMC belongs to another node"), "{}", refused.text);
    assert!(!refused.text.contains(&theirs), "{}", refused.text);
    let refused = service.ask_as("system-admin", "PATCH", &path, &body).await.has(409);
    assert!(refused.text.contains(&format!("node theirs ({theirs})")), "{}", refused.text);
}

#[tokio::test]
async fn a_step_on_child_nodes_needs_the_right_to_change_each_of_them() {
    let service = Service::machines(Cloud::emulated().await).await;
    let node = lent(&service).await;
    // A child node of the owner, which is not lent.
    let body = json!({
        "driver": "fake-hardware", "owner": service.projects[0], "parent_node": node,
    });
    let child = service.ask_as("system-admin", "POST", "/v1/nodes", &body).await.has(201).json();
    let child = child["uuid"].as_str().unwrap();
    let path = format!("/v1/nodes/{node}/states/provision");
    let clean = |children: Value| {
        let step = json!({
            "interface": "power", "step": "power_off", "execute_on_child_nodes": true,
            "limit_child_node_execution": children,
        });
        json!({"target": "clean", "clean_steps": [step]})
    };
    let (all, named) = (clean(json!([])), clean(json!([child])));
    let lessee = "project-l-manager";
    let refused = service.ask_as(lessee, "PUT", &path, &all).await.has(400);
    assert!(refused.text.contains("the caller may not change"), "{}", refused.text);
    assert!(!refused.text.contains(child), "{}", refused.text);
    let refused = service.ask_as(lessee, "PUT", &path, &named).await.has(404);
    assert!(refused.text.contains("could not be found"), "{}", refused.text);
    // The right to change the child nodes leaves the state of the node, which is not manageable.
    for body in [all, named] {
        let refused = service.ask_as("project-a-manager", "PUT", &path, &body).await.has(400);
        assert!(refused.text.contains("can not be performed"), "{}", refused.text);
    }
}
