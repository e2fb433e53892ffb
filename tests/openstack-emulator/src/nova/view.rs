//! Servers as the API shows them, by microversion.

use serde_json::{Value, json};

use super::server::{ports, vm_state};
use super::types::SERVER;
use crate::object::{ChangeLists, Fields, Kind, Object, ReadFields};
use crate::request::ApiRequest;
use crate::world::World;

/// The URLs of a server.
pub(super) fn links(asked: &ApiRequest, id: &str) -> Value {
    let root = asked.root();
    json!([{"rel": "self", "href": format!("{root}/v2.1/servers/{id}")}, {"rel": "bookmark", "href": format!("{root}/servers/{id}")}])
}

/// All fields of a server: those in the table of the type, and those that follow from others.
pub(super) fn detail(world: &World, asked: &ApiRequest, server: &Object) -> Value {
    let (status, task, host) = (server.text("status"), server.note("task"), server.note("host"));
    let is_built = !["BUILD", "ERROR"].contains(&status);
    let digits: String = host.bytes().map(|byte| format!("{byte:02x}")).collect();
    let launched = server.hidden.text_of("launched").map(|at| at.trim_end_matches('Z').to_owned());
    let volumes = server.hidden.list("volumes").iter().map(|one| match asked.since(3) {
        true => json!({"id": one["id"], "delete_on_termination": one["delete_on_termination"]}),
        false => json!({"id": one["id"]}),
    });
    let mut body = SERVER.view(asked, server);
    for (key, value) in [
        ("tenant_id", json!(server.project)),
        ("hostId", json!(if host.is_empty() { String::new() } else { format!("{digits:0>56}") })),
        ("image", image(asked, server.text("image"))),
        ("flavor", flavor(world, asked, server)),
        ("addresses", addresses(world, server)),
        ("links", links(asked, &server.id)),
        (
            "OS-EXT-AZ:availability_zone",
            json!(if status == "BUILD" { "" } else { server.note("zone") }),
        ),
        ("OS-SRV-USG:launched_at", json!(launched.map(|at| at + ".000000"))),
        ("OS-EXT-STS:task_state", json!(Some(task).filter(|task| !task.is_empty()))),
        ("OS-EXT-STS:vm_state", json!(vm_state(status))),
        ("OS-EXT-STS:power_state", json!(power_state(server))),
        ("os-extended-volumes:volumes_attached", json!(volumes.collect::<Vec<_>>())),
    ] {
        body[key] = value;
    }
    if ["ACTIVE", "BUILD", "REBUILD", "RESIZE", "VERIFY_RESIZE"].contains(&status) {
        body["progress"] = json!(0);
    }
    if is_built {
        body["security_groups"] = server.hidden.field("security_groups").clone();
    }
    if let Some(fault) = server.hidden.get("fault").filter(|_| status == "ERROR") {
        body["fault"] = fault.clone();
        if let Some(fault) = body["fault"].as_object_mut().filter(|_| !asked.caller.is_admin()) {
            fault.remove("details");
        }
    }
    if asked.since(9) {
        body["locked"] = json!(server.hidden.contains_key("locked"));
    }
    if asked.since(71) {
        body["server_groups"] = json!(server.hidden.get("group").into_iter().collect::<Vec<_>>());
    }
    if asked.since(90) || (asked.caller.is_admin() && asked.since(3)) {
        body["OS-EXT-SRV-ATTR:hostname"] = json!(server.text("name"));
    }
    if asked.caller.is_admin() {
        let host = server.hidden.get("host");
        body["OS-EXT-SRV-ATTR:host"] = json!(host);
        body["OS-EXT-SRV-ATTR:hypervisor_hostname"] = json!(host);
        body["OS-EXT-SRV-ATTR:instance_name"] = json!(format!("instance-{}", &server.id[..8]));
        if asked.since(3) {
            let data = world.records.user_data.get(&server.id);
            body["OS-EXT-SRV-ATTR:user_data"] = json!(data.map(|data| data.to_string()));
        }
    }
    body
}

fn power_state(server: &Object) -> i64 {
    match server.text("status") {
        "BUILD" | "ERROR" => 0,
        "PAUSED" => 3,
        "SHUTOFF" | "SUSPENDED" | "SHELVED_OFFLOADED" => 4,
        "RESIZE" | "VERIFY_RESIZE" | "REVERT_RESIZE" if server.hidden.field("power") == 4 => 4,
        _ => 1,
    }
}

fn image(asked: &ApiRequest, id: &str) -> Value {
    let href = format!("{}/images/{id}", asked.root());
    match id {
        "" => json!(""),
        id => json!({"id": id, "links": [{"rel": "bookmark", "href": href}]}),
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
pub(super) fn addresses(world: &World, server: &Object) -> Value {
    let mut networks = Fields::new();
    for port in ports(world, server) {
        let network = world.store.get(Kind::Network, port.text("network_id"));
        let name = network.map(|network| network.text("name")).unwrap_or_default();
        let fixed = port.list("fixed_ips").iter().map(|ip| (ip.text("ip_address"), "fixed"));
        let floating = world.store.with_text(Kind::FloatingIp, "port_id", &port.id);
        let floating = floating.map(|one| (one.text("floating_ip_address"), "floating"));
        for (address, kind) in fixed.chain(floating) {
            let version = if address.contains(':') { 6 } else { 4 };
            networks.push_to(name, json!({"addr": address, "version": version, "OS-EXT-IPS:type": kind, "OS-EXT-IPS-MAC:mac_addr": port.text("mac_address")}));
        }
    }
    Value::Object(networks)
}
