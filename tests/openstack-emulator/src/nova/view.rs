//! Servers as the API shows them, by microversion.

use serde_json::{Map, Value, json};

use crate::object::{Kind, Object};
use crate::request::ApiRequest;
use crate::world::World;

/// Id, name and links of a server.
pub(super) fn brief(asked: &ApiRequest, server: &Object) -> Value {
    json!({"id": server.id, "name": server.text("name"), "links": links(asked, &server.id)})
}

fn links(asked: &ApiRequest, id: &str) -> Value {
    let root = asked.root();
    json!([{"rel": "self", "href": format!("{root}/v2.1/servers/{id}")}, {"rel": "bookmark", "href": format!("{root}/servers/{id}")}])
}

/// All fields of a server.
pub(super) fn detail(world: &World, asked: &ApiRequest, server: &Object) -> Value {
    let status = server.text("status");
    let task = server.note("task");
    let zone = if status == "BUILD" { "" } else { server.note("zone") };
    let power = server.hidden.get("power").and_then(Value::as_i64).unwrap_or_default();
    let power = match status {
        "BUILD" | "ERROR" => 0,
        "PAUSED" => 3,
        "SHUTOFF" | "SUSPENDED" | "SHELVED_OFFLOADED" => 4,
        "RESIZE" | "VERIFY_RESIZE" | "REVERT_RESIZE" if power == 4 => 4,
        _ => 1,
    };
    let image = server.text("image");
    let image = if image.is_empty() {
        json!("")
    } else {
        json!({"id": image, "links": [{"rel": "bookmark", "href": format!("{}/images/{image}", asked.root())}]})
    };
    let host_id = format!(
        "{:0>56}",
        server.note("host").bytes().map(|byte| format!("{byte:02x}")).collect::<String>()
    );
    let volumes =
        server.hidden.get("volumes").and_then(Value::as_array).cloned().unwrap_or_default();
    let mut body = json!({
        "id": server.id,
        "name": server.text("name"),
        "status": status,
        "tenant_id": server.project,
        "user_id": server.text("user_id"),
        "metadata": server.body.get("metadata"),
        "hostId": if server.note("host").is_empty() { String::new() } else { host_id },
        "image": image,
        "flavor": flavor(world, asked, server),
        "created": server.text("created"),
        "updated": server.text("updated"),
        "addresses": addresses(world, asked, server),
        "accessIPv4": "",
        "accessIPv6": "",
        "links": links(asked, &server.id),
        "OS-DCF:diskConfig": "MANUAL",
        "OS-EXT-AZ:availability_zone": zone,
        "config_drive": server.text("config_drive"),
        "key_name": server.body.get("key_name"),
        "OS-SRV-USG:launched_at": server.hidden.get("launched").and_then(Value::as_str).map(|at| at.trim_end_matches('Z').to_owned() + ".000000"),
        "OS-SRV-USG:terminated_at": null,
        "OS-EXT-STS:task_state": if task.is_empty() { Value::Null } else { json!(task) },
        "OS-EXT-STS:vm_state": vm_state(status),
        "OS-EXT-STS:power_state": power,
        "os-extended-volumes:volumes_attached": volumes.iter().map(|one| if asked.since(3) { json!({"id": one["id"], "delete_on_termination": one["delete_on_termination"]}) } else { json!({"id": one["id"]}) }).collect::<Vec<_>>(),
    });
    if ["ACTIVE", "BUILD", "REBUILD", "RESIZE", "VERIFY_RESIZE"].contains(&status) {
        body["progress"] = json!(0);
    }
    if !["BUILD", "ERROR"].contains(&status) {
        body["security_groups"] = server.hidden.get("security_groups").cloned().unwrap_or_default();
    }
    if let Some(fault) =
        server.hidden.get("fault").filter(|_| ["ERROR", "DELETED"].contains(&status))
    {
        let mut fault = fault.clone();
        if !asked.caller.is_admin()
            && let Some(fault) = fault.as_object_mut()
        {
            fault.remove("details");
        }
        body["fault"] = fault;
    }
    extra(asked, server, &mut body);
    if asked.caller.is_admin() {
        let host = server.hidden.get("host");
        body["OS-EXT-SRV-ATTR:host"] = json!(host);
        body["OS-EXT-SRV-ATTR:hypervisor_hostname"] = json!(host);
        body["OS-EXT-SRV-ATTR:instance_name"] = json!(format!("instance-{}", &server.id[..8]));
        if asked.since(3) {
            body["OS-EXT-SRV-ATTR:user_data"] =
                json!(world.user_data.get(&server.id).map(|data| data.to_string()));
            body["OS-EXT-SRV-ATTR:hostname"] = json!(server.text("name"));
        }
    }
    body
}

/// Nova's `vm_state` for a status.
pub(super) fn vm_state(status: &str) -> &'static str {
    match status {
        "BUILD" => "building",
        "ACTIVE" | "REBOOT" | "HARD_REBOOT" | "PASSWORD" | "REBUILD" | "RESIZE" | "MIGRATING" => {
            "active"
        }
        "SHUTOFF" => "stopped",
        "PAUSED" => "paused",
        "SUSPENDED" => "suspended",
        "VERIFY_RESIZE" | "REVERT_RESIZE" => "resized",
        "SHELVED_OFFLOADED" => "shelved_offloaded",
        _ => "error",
    }
}

/// Adds the fields of later microversions.
fn extra(asked: &ApiRequest, server: &Object, body: &mut Value) {
    if asked.since(9) {
        body["locked"] = json!(server.hidden.contains_key("locked"));
    }
    if asked.since(19) {
        body["description"] = json!(server.body.get("description"));
    }
    if asked.since(26) {
        body["tags"] = json!(server.list("tags"));
    }
    if asked.since(63) {
        body["trusted_image_certificates"] = Value::Null;
    }
    if asked.since(71) {
        let group = server.hidden.get("group");
        body["server_groups"] = json!(group.into_iter().collect::<Vec<_>>());
    }
    if asked.since(73) {
        body["locked_reason"] = Value::Null;
    }
    if asked.since(90) {
        body["OS-EXT-SRV-ATTR:hostname"] = json!(server.text("name"));
    }
    if asked.since(96) {
        body["pinned_availability_zone"] = Value::Null;
    }
}

fn flavor(world: &World, asked: &ApiRequest, server: &Object) -> Value {
    let id = server.note("flavor");
    let Some(flavor) = world.store.get(Kind::Flavor, id) else {
        return json!({"id": id, "original_name": id});
    };
    if !asked.since(47) {
        return json!({"id": id, "links": [{"rel": "bookmark", "href": format!("{}/flavors/{id}", asked.root())}]});
    }
    json!({
        "vcpus": flavor.number("vcpus"), "ram": flavor.number("ram"), "disk": flavor.number("disk"), "ephemeral": 0, "swap": 0,
        "original_name": flavor.text("name"), "extra_specs": flavor.hidden.get("extra_specs"),
    })
}

/// The addresses of a server, by network.
pub(super) fn addresses(world: &World, _: &ApiRequest, server: &Object) -> Value {
    let mut networks: Map<String, Value> = Map::new();
    let ports = server.hidden.get("ports").and_then(Value::as_array).into_iter().flatten();
    let ports = ports.filter_map(|id| world.store.get(Kind::Port, id.as_str()?));
    for port in ports {
        let network = world.store.get(Kind::Network, port.text("network_id"));
        let name = network.map(|network| network.text("name").to_owned()).unwrap_or_default();
        let mut row = |address: &str, kind: &str| {
            let version = if address.contains(':') { 6 } else { 4 };
            let entry = json!({"addr": address, "version": version, "OS-EXT-IPS:type": kind, "OS-EXT-IPS-MAC:mac_addr": port.text("mac_address")});
            let list = networks.entry(name.clone()).or_insert_with(|| json!([]));
            if let Some(list) = list.as_array_mut() {
                list.push(entry);
            }
        };
        for ip in port.list("fixed_ips") {
            row(ip["ip_address"].as_str().unwrap_or_default(), "fixed");
        }
        for floating in world.store.with_text(Kind::FloatingIp, "port_id", &port.id) {
            row(floating.text("floating_ip_address"), "floating");
        }
    }
    Value::Object(networks)
}
