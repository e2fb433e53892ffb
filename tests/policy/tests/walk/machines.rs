//! The routes of baremetald.

use std::sync::Mutex;

use serde_json::{Value, json};
use uuid::Uuid;

use crate::service::{Cloud, Service};
use crate::walk::StepSubject::{self, List, Nobodys, Own, OwnList, Thing};
use crate::walk::{ResourceIds, Step, WITH_KEYSTONE, walk};

#[tokio::test]
async fn every_route_of_machines_enforces_its_row() {
    everybody_tries(Cloud::emulated().await, 1).await;
}

#[tokio::test]
async fn routes_of_machines_enforce_their_rows_with_a_given_keystone() {
    let Some(cloud) = Cloud::given() else { return };
    everybody_tries(cloud, WITH_KEYSTONE).await;
}

async fn everybody_tries(cloud: Cloud, every: usize) {
    let service = Service::machines(cloud).await;
    let [owner, lessee, _] = service.projects.clone();
    let last_runbook = Mutex::new(None::<String>);
    let make = async |step: &Step| {
        let mut made = ResourceIds::new();
        let node = Uuid::new_v4().to_string();
        let body = json!({
            "uuid": node, "driver": "fake-hardware", "owner": owner, "lessee": lessee,
            "driver_info": {"secret_of_a": "x"},
        });
        let admin = "system-admin";
        service.ask_as(admin, "POST", "/v1/nodes", &body).await.has(201);
        let path = format!("/v1/nodes/{node}/traits/CUSTOM_FAST");
        service.ask_as(admin, "PUT", &path, &Value::Null).await.has(204);
        for (name, path, body) in parts(&node, &owner) {
            if !step.needs(name) {
                continue;
            }
            // A project has a limited number of runbooks.
            let earlier = last_runbook.lock().unwrap().take_if(|_| name == "runbook");
            if let Some(earlier) = earlier {
                let path = format!("{path}/{earlier}");
                service.ask_as(admin, "DELETE", &path, &Value::Null).await;
            }
            let part = service.ask_as(admin, "POST", path, &body).await.has(201).json();
            let id = part["uuid"].as_str().unwrap().to_owned();
            if name == "runbook" {
                *last_runbook.lock().unwrap() = Some(id.clone());
            }
            made.insert(name, id);
        }
        made.insert("node", node);
        made
    };
    walk(&service, &steps(), every, make).await;
    service.end().await;
}

/// The resources beside the node: the path parameter of each, its collection, and the body of the request that creates it.
fn parts(node: &str, owner: &str) -> [(&'static str, &'static str, Value); 9] {
    let target =
        json!({"node_uuid": node, "volume_type": "iscsi", "volume_id": "v", "boot_index": 0});
    let runbook = json!({"name": trait_name(), "steps": [runbook_step()], "owner": owner});
    [
        ("port", "/v1/ports", json!({"node_uuid": node, "address": mac()})),
        // No node matches this allocation, but the allocation still belongs to its project.
        ("allocation", "/v1/allocations", json!({"resource_class": "none", "owner": owner})),
        ("chassis", "/v1/chassis", json!({})),
        ("portgroup", "/v1/portgroups", json!({"node_uuid": node})),
        (
            "connector",
            "/v1/volume/connectors",
            json!({"node_uuid": node, "type": "iqn", "connector_id": node}),
        ),
        ("target", "/v1/volume/targets", target),
        (
            "template",
            "/v1/deploy_templates",
            json!({"name": trait_name(), "steps": [deploy_step()]}),
        ),
        ("runbook", "/v1/runbooks", runbook),
        ("rule", "/v1/inspection_rules", inspection_rule()),
    ]
}

/// A MAC address that no other port has.
fn mac() -> String {
    let [a, b, c, d, ..] = *Uuid::new_v4().as_bytes();
    format!("02:00:{a:02x}:{b:02x}:{c:02x}:{d:02x}")
}

/// A trait that no other deploy template or runbook has as its name.
fn trait_name() -> String {
    format!("CUSTOM_{}", Uuid::new_v4().simple()).to_uppercase()
}

fn inspection_rule() -> Value {
    json!({"actions": [{"op": "log", "args": {"msg": "inspected"}}]})
}

fn deploy_step() -> Value {
    json!({"interface": "raid", "step": "create", "args": {}, "priority": 90})
}

fn runbook_step() -> Value {
    json!({"interface": "deploy", "step": "erase_devices", "args": {}, "order": 1})
}

fn network_event() -> Value {
    let event = json!({
        "event": "network.bind_port",
        "port_id": Uuid::nil(),
        "mac_address": "02:00:00:00:00:01",
        "status": "ACTIVE",
    });
    json!({ "events": [event] })
}

#[rustfmt::skip]
fn steps() -> Vec<Step> {
    let step = |about: StepSubject, method, path, body| Step { method, path, body, about };
    let nothing = || Value::Null;
    let node = |method, path, body| step(Thing, method, path, body);
    let see = |path| step(Thing, "GET", path, Value::Null);
    let look = |path| step(Nobodys, "GET", path, Value::Null);
    vec![
        look("/"),
        look("/v1"),
        look("/v1/"),
        look("/v1/lookup"),
        step(Nobodys, "POST", "/v1/heartbeat", nothing()),
        step(Nobodys, "POST", "/v1/heartbeat/{node}", nothing()),
        step(Nobodys, "POST", "/v1/continue_inspection", nothing()),
        look("/openapi.json"),
        look("/bedplate/v1/policy"),
        look("/bedplate/v1/audit"),
        look("/bedplate/v1/audit/verify"),

        step(List, "GET", "/v1/nodes", nothing()),
        step(Nobodys, "POST", "/v1/nodes", json!({"driver": "fake-hardware"})),
        step(List, "GET", "/v1/nodes/detail", nothing()),
        step(Nobodys, "GET", "/v1/nodes/validate", nothing()),
        see("/v1/nodes/{node}"),
        node("PATCH", "/v1/nodes/{node}", json!([{"op": "add", "path": "/extra/x", "value": 1}])),
        node("DELETE", "/v1/nodes/{node}", nothing()),
        see("/v1/nodes/{node}/children"),
        see("/v1/nodes/{node}/states"),
        see("/v1/nodes/{node}/states/console"),
        node("PUT", "/v1/nodes/{node}/states/console", json!({"enabled": false})),
        node("PUT", "/v1/nodes/{node}/states/power", json!({"target": "power on"})),
        node("PUT", "/v1/nodes/{node}/states/raid", json!({})),
        node("PUT", "/v1/nodes/{node}/states/boot_mode", json!({"target": "uefi"})),
        node("PUT", "/v1/nodes/{node}/states/secure_boot", json!({"target": true})),
        node("PUT", "/v1/nodes/{node}/states/provision", json!({"target": "manage"})),
        node("PUT", "/v1/nodes/{node}/maintenance", json!({"reason": "x"})),
        node("DELETE", "/v1/nodes/{node}/maintenance", nothing()),
        see("/v1/nodes/{node}/management/boot_device"),
        node("PUT", "/v1/nodes/{node}/management/boot_device", json!({"boot_device": "pxe"})),
        see("/v1/nodes/{node}/management/boot_device/supported"),
        node("PUT", "/v1/nodes/{node}/management/inject_nmi", json!({})),
        see("/v1/nodes/{node}/management/indicators"),
        see("/v1/nodes/{node}/management/indicators/{indicator}"),
        node("PUT", "/v1/nodes/{node}/management/indicators/{indicator}", json!({"state": "on"})),
        see("/v1/nodes/{node}/vendor_passthru/methods"),
        see("/v1/nodes/{node}/vendor_passthru"),
        node("POST", "/v1/nodes/{node}/vendor_passthru", json!({})),
        node("PUT", "/v1/nodes/{node}/vendor_passthru", json!({})),
        node("PATCH", "/v1/nodes/{node}/vendor_passthru", json!({})),
        node("DELETE", "/v1/nodes/{node}/vendor_passthru", json!({})),
        see("/v1/nodes/{node}/vendor_passthru/{method}"),
        node("POST", "/v1/nodes/{node}/vendor_passthru/{method}", json!({"bar": "meow"})),
        node("PUT", "/v1/nodes/{node}/vendor_passthru/{method}", json!({"bar": "meow"})),
        node("PATCH", "/v1/nodes/{node}/vendor_passthru/{method}", json!({"bar": "meow"})),
        node("DELETE", "/v1/nodes/{node}/vendor_passthru/{method}", json!({"bar": "meow"})),
        see("/v1/nodes/{node}/validate"),
        see("/v1/nodes/{node}/traits"),
        node("PUT", "/v1/nodes/{node}/traits", json!({"traits": ["CUSTOM_SLOW"]})),
        node("DELETE", "/v1/nodes/{node}/traits", nothing()),
        node("PUT", "/v1/nodes/{node}/traits/{trait}", nothing()),
        node("DELETE", "/v1/nodes/{node}/traits/{trait}", nothing()),
        see("/v1/nodes/{node}/vifs"),
        node("POST", "/v1/nodes/{node}/vifs", json!({"id": "v"})),
        node("DELETE", "/v1/nodes/{node}/vifs/{vif}", nothing()),
        see("/v1/nodes/{node}/inventory"),
        see("/v1/nodes/{node}/history"),
        see("/v1/nodes/{node}/history/{event}"),

        step(List, "GET", "/v1/ports", nothing()),
        node("POST", "/v1/ports", json!({"node_uuid": "{node}", "address": "02:00:00:00:00:01"})),
        step(List, "GET", "/v1/ports/detail", nothing()),
        see("/v1/ports/{port}"),
        node("PATCH", "/v1/ports/{port}", json!([{"op": "add", "path": "/extra/x", "value": 1}])),
        node("DELETE", "/v1/ports/{port}", nothing()),
        see("/v1/nodes/{node}/ports"),
        see("/v1/nodes/{node}/ports/detail"),

        step(List, "GET", "/v1/portgroups", nothing()),
        node("POST", "/v1/portgroups", json!({"node_uuid": "{node}"})),
        step(List, "GET", "/v1/portgroups/detail", nothing()),
        see("/v1/portgroups/{portgroup}"),
        see("/v1/portgroups/{portgroup}/ports"),
        node("PATCH", "/v1/portgroups/{portgroup}", json!([{"op": "add", "path": "/extra/x", "value": 1}])),
        node("DELETE", "/v1/portgroups/{portgroup}", nothing()),
        see("/v1/nodes/{node}/portgroups"),
        see("/v1/nodes/{node}/portgroups/detail"),

        look("/v1/volume"),
        see("/v1/nodes/{node}/volume"),
        step(List, "GET", "/v1/volume/connectors", nothing()),
        node("POST", "/v1/volume/connectors", json!({"node_uuid": "{node}", "type": "ip", "connector_id": "192.0.2.1"})),
        see("/v1/volume/connectors/{connector}"),
        node("PATCH", "/v1/volume/connectors/{connector}", json!([{"op": "add", "path": "/extra/x", "value": 1}])),
        node("DELETE", "/v1/volume/connectors/{connector}", nothing()),
        see("/v1/nodes/{node}/volume/connectors"),
        step(List, "GET", "/v1/volume/targets", nothing()),
        node("POST", "/v1/volume/targets", json!({"node_uuid": "{node}", "volume_type": "iscsi", "volume_id": "v", "boot_index": 1})),
        see("/v1/volume/targets/{target}"),
        node("PATCH", "/v1/volume/targets/{target}", json!([{"op": "add", "path": "/extra/x", "value": 1}])),
        node("DELETE", "/v1/volume/targets/{target}", nothing()),
        see("/v1/nodes/{node}/volume/targets"),

        step(OwnList, "GET", "/v1/allocations", nothing()),
        step(Nobodys, "POST", "/v1/allocations", json!({"resource_class": "none"})),
        step(Own, "GET", "/v1/allocations/{allocation}", nothing()),
        step(Own, "PATCH", "/v1/allocations/{allocation}", json!([{"op": "add", "path": "/extra/x", "value": 1}])),
        step(Own, "DELETE", "/v1/allocations/{allocation}", nothing()),
        see("/v1/nodes/{node}/allocation"),
        node("DELETE", "/v1/nodes/{node}/allocation", nothing()),

        look("/v1/drivers"),
        look("/v1/drivers/{driver}"),
        look("/v1/drivers/{driver}/properties"),
        look("/v1/drivers/{driver}/raid/logical_disk_properties"),
        look("/v1/drivers/{driver}/vendor_passthru/methods"),
        look("/v1/drivers/{driver}/vendor_passthru"),
        step(Nobodys, "POST", "/v1/drivers/{driver}/vendor_passthru", json!({})),
        step(Nobodys, "PUT", "/v1/drivers/{driver}/vendor_passthru", json!({})),
        step(Nobodys, "PATCH", "/v1/drivers/{driver}/vendor_passthru", json!({})),
        step(Nobodys, "DELETE", "/v1/drivers/{driver}/vendor_passthru", json!({})),
        look("/v1/drivers/{driver}/vendor_passthru/{method}"),
        step(Nobodys, "POST", "/v1/drivers/{driver}/vendor_passthru/{method}", json!({})),
        step(Nobodys, "PUT", "/v1/drivers/{driver}/vendor_passthru/{method}", json!({})),
        step(Nobodys, "PATCH", "/v1/drivers/{driver}/vendor_passthru/{method}", json!({})),
        step(Nobodys, "DELETE", "/v1/drivers/{driver}/vendor_passthru/{method}", json!({})),
        look("/v1/conductors"),
        look("/v1/conductors/{hostname}"),
        look("/v1/shards"),
        step(Nobodys, "POST", "/v1/events", network_event()),
        look("/v1/chassis"),
        look("/v1/chassis/detail"),
        step(Nobodys, "POST", "/v1/chassis", json!({"description": "row 3"})),
        look("/v1/chassis/{chassis}"),
        look("/v1/chassis/{chassis}/nodes"),
        look("/v1/chassis/{chassis}/nodes/detail"),
        step(Nobodys, "PATCH", "/v1/chassis/{chassis}", json!([{"op": "add", "path": "/extra/x", "value": 1}])),
        step(Nobodys, "DELETE", "/v1/chassis/{chassis}", nothing()),
        look("/v1/deploy_templates"),
        step(Nobodys, "POST", "/v1/deploy_templates", json!({"name": trait_name(), "steps": [deploy_step()]})),
        look("/v1/deploy_templates/{template}"),
        step(Nobodys, "PATCH", "/v1/deploy_templates/{template}", json!([{"op": "add", "path": "/extra/x", "value": 1}])),
        step(Nobodys, "DELETE", "/v1/deploy_templates/{template}", nothing()),
        step(OwnList, "GET", "/v1/runbooks", nothing()),
        step(Nobodys, "POST", "/v1/runbooks", json!({"name": trait_name(), "steps": [runbook_step()]})),
        step(Own, "GET", "/v1/runbooks/{runbook}", nothing()),
        step(Own, "PATCH", "/v1/runbooks/{runbook}", json!([{"op": "add", "path": "/extra/x", "value": 1}])),
        step(Own, "DELETE", "/v1/runbooks/{runbook}", nothing()),
        step(Own, "GET", "/v1/runbooks/{runbook}/traits", nothing()),
        step(Own, "PUT", "/v1/runbooks/{runbook}/traits", json!({"traits": ["CUSTOM_FAST"]})),
        step(Own, "DELETE", "/v1/runbooks/{runbook}/traits", nothing()),
        step(Own, "PUT", "/v1/runbooks/{runbook}/traits/{trait}", nothing()),
        step(Own, "DELETE", "/v1/runbooks/{runbook}/traits/{trait}", nothing()),
        look("/v1/inspection_rules"),
        step(Nobodys, "POST", "/v1/inspection_rules", inspection_rule()),
        look("/v1/inspection_rules/{rule}"),
        step(Nobodys, "PATCH", "/v1/inspection_rules/{rule}", json!([{"op": "replace", "path": "/priority", "value": 1}])),
        step(Nobodys, "DELETE", "/v1/inspection_rules/{rule}", nothing()),
        step(Nobodys, "DELETE", "/v1/inspection_rules", nothing()),
        see("/v1/nodes/{node}/vmedia"),
        node("POST", "/v1/nodes/{node}/vmedia", json!({"device_type": "cdrom", "image_url": "http://images.example/a.iso"})),
        node("DELETE", "/v1/nodes/{node}/vmedia", nothing()),
        see("/v1/nodes/{node}/bios"),
        see("/v1/nodes/{node}/bios/{setting}"),
        see("/v1/nodes/{node}/firmware"),

        see("/bedplate/v1/nodes/{node}/explain"),
        see("/bedplate/v1/nodes/{node}/plan"),
        see("/bedplate/v1/nodes/{node}/sensors"),
        see("/bedplate/v1/nodes/{node}/event-log"),
        see("/bedplate/v1/nodes/{node}/console"),
        see("/bedplate/v1/nodes/{node}/console/log"),
        see("/bedplate/v1/nodes/{node}/vnc"),
        node("PUT", "/bedplate/v1/nodes/{node}/identify", json!({"on": true})),
        node("POST", "/bedplate/v1/nodes/{node}/rotate-bmc-password", nothing()),
        look("/bedplate/v1/conductors"),
        look("/bedplate/v1/conductors/{hostname}"),
        step(Nobodys, "PUT", "/bedplate/v1/conductors/{hostname}/drain", nothing()),
        step(Nobodys, "DELETE", "/bedplate/v1/conductors/{hostname}/drain", nothing()),
        look("/bedplate/v1/counts"),
        look("/bedplate/v1/discoveries"),
        step(Nobodys, "DELETE", "/bedplate/v1/discoveries/{discovery}", nothing()),
        step(Nobodys, "POST", "/bedplate/v1/discoveries/{discovery}/accept", json!({})),
        look("/bedplate/v1/racks"),
        step(Nobodys, "POST", "/bedplate/v1/racks", json!({})),
        look("/bedplate/v1/racks/{rack}"),
        step(Nobodys, "DELETE", "/bedplate/v1/racks/{rack}", nothing()),
        step(Nobodys, "PUT", "/bedplate/v1/racks/{rack}/up", json!({})),
        see("/bedplate/v1/nodes/{node}/lease"),
        node("POST", "/bedplate/v1/nodes/{node}/lease", json!({"lessee": "{lessee}", "for": "1d"})),
        node("PUT", "/bedplate/v1/nodes/{node}/lease", json!({"for": "1d"})),
        node("POST", "/bedplate/v1/nodes/{node}/lease/undo", nothing()),
        look("/bedplate/v1/reservations"),
        step(Nobodys, "POST", "/bedplate/v1/reservations", json!({})),
        look("/bedplate/v1/reservations/{reservation}"),
        step(Nobodys, "DELETE", "/bedplate/v1/reservations/{reservation}", nothing()),
        step(Nobodys, "PUT", "/bedplate/v1/reservations/{reservation}/lease", json!({})),
        step(Nobodys, "POST", "/bedplate/v1/reservations/{reservation}/lease/undo", json!({})),
        step(Nobodys, "DELETE", "/bedplate/v1/racks/{rack}/up", nothing()),
        look("/bedplate/v1/health"),
        look("/bedplate/v1/webhooks"),
        see("/bedplate/v1/nodes/{node}/hypervisor"),
        node("PUT", "/bedplate/v1/nodes/{node}/hypervisor/join", nothing()),
        look("/bedplate/v1/hypervisor-profiles"),
        step(Nobodys, "POST", "/bedplate/v1/hypervisor-profiles", json!({})),
        look("/bedplate/v1/hypervisor-profiles/{profile}"),
        step(Nobodys, "PUT", "/bedplate/v1/hypervisor-profiles/{profile}", json!({})),
        step(Nobodys, "DELETE", "/bedplate/v1/hypervisor-profiles/{profile}", nothing()),
        node("PUT", "/bedplate/v1/import/nodes/{node}", json!({"node": {"uuid": "{node}", "driver": "fake-hardware"}})),
        step(Nobodys, "PUT", "/bedplate/v1/import/chassis/{chassis}", json!({"uuid": "{chassis}"})),
        step(Nobodys, "PUT", "/bedplate/v1/import/deploy-templates/{template}", json!({"uuid": "{template}"})),
        step(Nobodys, "PUT", "/bedplate/v1/import/inspection-rules/{rule}", json!({"uuid": "{rule}"})),
        step(Own, "PUT", "/bedplate/v1/import/runbooks/{runbook}", json!({"uuid": "{runbook}"})),
        step(Own, "PUT", "/bedplate/v1/import/allocations/{allocation}", json!({"uuid": "{allocation}"})),
        look("/bedplate/v1/keys"),
        step(Nobodys, "POST", "/bedplate/v1/keys/rotate", nothing()),
        step(Nobodys, "DELETE", "/bedplate/v1/keys/{key}", nothing()),
    ]
}
