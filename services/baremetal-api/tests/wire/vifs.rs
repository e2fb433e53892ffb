//! Wire tests of VIFs.

use serde_json::{Value, json};

use crate::api::{Api, ID, NEWEST};

const PORTS: [&str; 3] = [
    "0d4b7a5e-7c1a-4c39-9d0c-2f6a0a1b2c31",
    "0d4b7a5e-7c1a-4c39-9d0c-2f6a0a1b2c32",
    "0d4b7a5e-7c1a-4c39-9d0c-2f6a0a1b2c33",
];
const GROUP: &str = "7c0d9a4e-3b1f-4b0f-8a77-1f5e2d6c9b01";
const VIF: &str = "6f1e2d3c-4b5a-4978-8695-a4b3c2d1e0f9";

/// A node with three ports, of which the first one does not boot.
async fn with_ports(network: &str) -> Api {
    let api = Api::start().await;
    api.enroll(&format!(r#", "name": "n1", "network_interface": "{network}""#)).await;
    for (port, octet) in PORTS.into_iter().zip(1..) {
        let body = json!({
            "uuid": port, "node_uuid": ID, "address": format!("52:54:00:aa:00:0{octet}"), "pxe_enabled": octet > 1,
        });
        api.send("POST", "/v1/ports", NEWEST, &body.to_string()).await.has(201);
    }
    api
}

async fn vifs(api: &Api) -> Value {
    api.get(&format!("/v1/nodes/{ID}/vifs")).await.has(200).json()["vifs"].clone()
}

async fn attach(api: &Api, body: Value) -> crate::api::Answer {
    api.send("POST", &format!("/v1/nodes/{ID}/vifs"), NEWEST, &body.to_string()).await
}

async fn detach(api: &Api, vif: &str) -> crate::api::Answer {
    api.send("DELETE", &format!("/v1/nodes/n1/vifs/{vif}"), NEWEST, "").await
}

async fn internal_info(api: &Api, path: &str) -> Value {
    api.get(path).await.has(200).json()["internal_info"].clone()
}

#[tokio::test]
async fn a_vif_is_attached_to_a_port_that_boots_and_detached() {
    let api = with_ports("flat").await;
    attach(&api, json!({"id": VIF})).await.has(204);
    assert_eq!(vifs(&api).await, json!([{"id": VIF}]));
    let path = format!("/v1/ports/{}", PORTS[1]);
    assert_eq!(internal_info(&api, &path).await, json!({"tenant_vif_port_id": VIF}));
    let detail = api.get(&format!("/v1/nodes/{ID}/ports/detail")).await.has(200).json();
    let shown = detail["ports"].as_array().unwrap().iter().map(|it| &it["internal_info"]);
    let attached = shown.filter(|it| it["tenant_vif_port_id"] == VIF).count();
    assert_eq!(attached, 1);

    let again = format!("VIF {VIF} is already attached to port {}", PORTS[1]);
    attach(&api, json!({"id": VIF})).await.refuses(409, &again);
    attach(&api, json!({"id": "second"})).await.has(204);
    attach(&api, json!({"id": "third"})).await.has(204);
    let full = "VIF fourth cannot be attached: no free port of the node fits";
    attach(&api, json!({"id": "fourth"})).await.refuses(400, full);
    let all = json!([{"id": "third"}, {"id": VIF}, {"id": "second"}]);
    assert_eq!(vifs(&api).await, all, "the ports are listed by their addresses");

    let needed = format!("port {} cannot be deleted while VIF {VIF} is attached to it", PORTS[1]);
    api.send("DELETE", &path, NEWEST, "").await.refuses(409, &needed);
    detach(&api, VIF).await.has(204);
    assert_eq!(internal_info(&api, &path).await, json!({}));
    let gone = format!("VIF {VIF} is not attached to node \"n1\"");
    detach(&api, VIF).await.refuses(400, &gone);
    api.send("DELETE", &path, NEWEST, "").await.has(204);
}

#[tokio::test]
async fn a_client_names_the_port_or_the_port_group() {
    let api = with_ports("flat").await;
    let group = json!({"uuid": GROUP, "node_uuid": ID});
    api.send("POST", "/v1/portgroups", NEWEST, &group.to_string()).await.has(201);
    let member = json!([{"op": "add", "path": "/portgroup_uuid", "value": GROUP}]).to_string();
    api.send("PATCH", &format!("/v1/ports/{}", PORTS[2]), NEWEST, &member).await.has(200);

    attach(&api, json!({"id": "a", "port_uuid": PORTS[0]})).await.has(204);
    let path = format!("/v1/ports/{}", PORTS[0]);
    assert_eq!(internal_info(&api, &path).await, json!({"tenant_vif_port_id": "a"}));
    attach(&api, json!({"id": "b", "portgroup_uuid": GROUP})).await.has(204);
    let group = format!("/v1/portgroups/{GROUP}");
    assert_eq!(internal_info(&api, &group).await, json!({"tenant_vif_port_id": "b"}));
    assert_eq!(vifs(&api).await, json!([{"id": "a"}, {"id": "b"}]));
    let taken = "VIF c cannot be attached: no free port of the node fits";
    for place in
        [json!({"id": "c", "port_uuid": PORTS[0]}), json!({"id": "c", "portgroup_uuid": GROUP})]
    {
        attach(&api, place).await.refuses(400, taken);
    }
    detach(&api, "b").await.has(204);
    assert_eq!(internal_info(&api, &group).await, json!({}));

    let both = json!({"id": "c", "port_uuid": PORTS[1], "portgroup_uuid": GROUP});
    attach(&api, both.clone()).await.refuses(400, "port_uuid: excludes portgroup_uuid");
    let path = format!("/v1/nodes/{ID}/vifs");
    api.send("POST", &path, "1.66", &both.to_string()).await.has(204);
    attach(&api, json!({"id": "d", "port_uuid": "x"}))
        .await
        .refuses(400, "port_uuid: must be a UUID");
}

#[tokio::test]
async fn a_vif_is_not_changed_during_work_on_the_node() {
    let api = with_ports("flat").await;
    attach(&api, json!({"id": "a"})).await.has(204);
    api.edit(|node| node.provision_state = baremetal_core::State::Cleaning).await;
    let locked = "node \"n1\" is locked while it is cleaning; try again when its work is done";
    attach(&api, json!({"id": "b"})).await.refuses(409, locked);
    detach(&api, "a").await.refuses(409, locked);
    // Nova detaches VIFs while a node is cleaned after undeployment.
    detach(&api, "b").await.refuses(400, "VIF b is not attached to node \"n1\"");
    // Without a cloud nothing is bound, so VIFs of a node in use can change.
    api.edit(|node| node.provision_state = baremetal_core::State::Active).await;
    attach(&api, json!({"id": "b"})).await.has(204);
}

#[tokio::test]
async fn the_network_interface_noop_forgets_every_vif() {
    let api = with_ports("noop").await;
    for _ in 0..2 {
        attach(&api, json!({"id": VIF, "port_uuid": "y"})).await.has(204);
    }
    assert_eq!(vifs(&api).await, json!([]));
    detach(&api, VIF).await.has(204);
    detach(&api, "not%20valid").await.refuses(400, "id: must be a UUID or a name");
    for id in ["not valid", ""] {
        attach(&api, json!({"id": id})).await.refuses(400, "id: must be a UUID or a name");
    }
    attach(&api, json!({"id": 1})).await.refuses(400, "id: is required and must be text");
    api.send("GET", &format!("/v1/nodes/{ID}/vifs"), "1.27", "").await.has(404);
}

#[tokio::test]
async fn concurrent_requests_attach_a_vif_once() {
    let api = with_ports("flat").await;
    let (one, other) =
        tokio::join!(attach(&api, json!({"id": "a"})), attach(&api, json!({"id": "a"})));
    let mut statuses = [one.status.as_u16(), other.status.as_u16()];
    statuses.sort_unstable();
    assert_eq!(statuses, [204, 409]);
    assert_eq!(vifs(&api).await, json!([{"id": "a"}]));
}
