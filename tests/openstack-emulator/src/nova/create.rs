//! Answers `POST /servers`.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::flavor::is_open;
use super::life::gone;
use super::server::note_action;
use super::types::SERVER;
use super::{aggregate, group, keypair, limits, parts, refuse, view};
use crate::misbehave::End;
use crate::object::{ChangeLists, Fields, Kind, Object, ReadFields};
use crate::page;
use crate::request::{Answer, ApiAnswer, ApiError, ApiRequest, ApiResult};
use crate::world::{Event, World, short_id, stamp};
use crate::{cinder, neutron};

/// The most bytes of user data in base64 (Nova's `MAX_USERDATA_SIZE`).
const LONGEST_USER_DATA: usize = 65535;

struct ServerRequest {
    name: String,
    flavor: Object,
    given: Fields,
    group: Option<String>,
    ports: Vec<Port>,
    security_groups: Value,
}

/// A port to use or to create.
enum Port {
    There { id: String, tag: Value },
    New { network: String, ip: Option<String>, tag: Value },
}

pub(super) fn create(world: &mut World, asked: &ApiRequest) -> ApiAnswer {
    let (body, given) = (asked.json()?, asked.wrapped("server")?);
    let hints = ["os:scheduler_hints", "OS-SCH-HNT:scheduler_hints"];
    let wanted = check(world, asked, given, hints.iter().find_map(|key| body.get(*key)))?;
    let count = |key: &str, default: i64| wanted.given.number_of(key).unwrap_or(default);
    let (least, most) = (count("min_count", 1), count("max_count", count("min_count", 1)));
    let count = usize::try_from(most.max(least)).unwrap_or(1);
    if count > 1 && wanted.ports.iter().any(|port| matches!(port, Port::There { .. })) {
        return Err(refuse::one_port_for_many());
    }
    limits::check(world, asked, &wanted.flavor, count)?;
    if let Some(id) = &wanted.group {
        group::check_limit(world, asked, id, count)?;
    }
    let password = short_id()[..12].to_owned();
    world.secrets.push(password.clone());
    let mut ids = Vec::new();
    for number in 1..=count {
        let name =
            if count == 1 { wanted.name.clone() } else { format!("{}-{number}", wanted.name) };
        ids.push(begin(world, asked, &wanted, name)?);
    }
    if wanted.given.is("return_reservation_id") {
        return Ok(Answer::json(202, json!({"reservation_id": format!("r-{}", &short_id()[..8])})));
    }
    let id = ids.first().map(String::as_str).unwrap_or_default();
    let server = json!({
        "id": id, "links": view::links(asked, id), "OS-DCF:diskConfig": "MANUAL", "security_groups": wanted.security_groups, "adminPass": password,
    });
    let href = format!("{}/v2.1/servers/{id}", asked.root());
    Ok(Answer::json(202, json!({"server": server})).with("location", href))
}

fn check(
    world: &World,
    asked: &ApiRequest,
    given: Fields,
    hints: Option<&Value>,
) -> ApiResult<ServerRequest> {
    let name = given.text_of("name").filter(|name| !name.is_empty() && name.len() <= 255);
    let name = name.ok_or_else(refuse::bad_name)?.to_owned();
    let flavor = page::words(given.get("flavorRef"));
    let flavor = flavor.rsplit('/').next().unwrap_or_default();
    let found = world.store.get(Kind::Flavor, flavor).filter(|it| is_open(asked, it));
    let flavor = found.ok_or_else(|| refuse::no_flavor(flavor))?.clone();
    check_image(world, asked, &given, &flavor)?;
    if let Some(data) = given.text_of("user_data") {
        if data.len() > LONGEST_USER_DATA {
            return Err(refuse::long_user_data(&data[..16]));
        }
        STANDARD.decode(data).map_err(|_| refuse::bad_user_data(data))?;
    }
    if let Some(key) = given.text_of("key_name") {
        let known = keypair::of_user(world, &asked.caller.user, key);
        known.ok_or_else(|| ApiError::bad("Invalid key_name provided."))?;
    }
    if let Some(zone) = given.text_of("availability_zone") {
        let zone = zone.split(':').next().unwrap_or_default();
        let is_in = |host: &Object| aggregate::zone(world, host.text("name")) == zone;
        world.store.find(Kind::ComputeHost, is_in).ok_or_else(refuse::no_zone)?;
    }
    parts::check_tags(given.list("tags"))?;
    for tag in given.list("block_device_mapping_v2").iter().filter_map(|one| one.get("tag")) {
        parts::check_tags(std::slice::from_ref(tag))?;
    }
    let project = &asked.caller.project;
    for name in given.list("security_groups").iter().map(|one| one.text("name")) {
        if name != "default" && neutron::group_called(world, project, name).is_none() {
            return Err(refuse::no_security_group(name, project));
        }
    }
    let group = hints.and_then(|hints| hints["group"].as_str().or(hints["group"][0].as_str()));
    if let Some(id) = group {
        let known = world.seen(Kind::ServerGroup, id, asked);
        known.ok_or_else(|| refuse::no_server_group(id))?;
    }
    let ports = ports(world, asked, &given)?;
    let groups = given.get("security_groups").cloned();
    let security_groups = groups.unwrap_or_else(|| json!([{"name": "default"}]));
    let group = group.map(str::to_owned);
    Ok(ServerRequest { name, flavor, given, group, ports, security_groups })
}

fn check_image(world: &World, asked: &ApiRequest, given: &Fields, flavor: &Object) -> ApiResult {
    let mut devices = given.list("block_device_mapping_v2").iter();
    let boot = devices.find(|one| one.number_of("boot_index") == Some(0));
    let image = match (given.text("imageRef"), boot) {
        ("", None) => return Err(refuse::no_boot_device()),
        ("", Some(boot)) => match boot.text("source_type") {
            "volume" => {
                let volume = world.seen(Kind::Volume, boot.text("uuid"), asked);
                return match volume.map(|volume| volume.text("status")) {
                    Some("available") => Ok(()),
                    Some(_) => Err(refuse::volume_not_attachable()),
                    None => Err(refuse::no_boot_volume(&boot["uuid"])),
                };
            }
            "image" => boot.text("uuid"),
            _ => return Ok(()),
        },
        (image, _) => image.rsplit('/').next().unwrap_or_default(),
    };
    let found = world.store.get(Kind::Image, image);
    let found = found.filter(|one| asked.sees(&one.project) || one.text("visibility") == "public");
    let found = found.ok_or_else(|| refuse::no_image(image))?;
    if found.text("status") != "active" {
        return Err(refuse::image_not_active(image));
    }
    let least = found.number("min_disk");
    let on_volume = boot.filter(|boot| boot["destination_type"] == "volume");
    match on_volume.map(|boot| boot["volume_size"].as_i64()) {
        None => fits(found, flavor),
        Some(size) => {
            fits_memory(found, flavor)?;
            match size.filter(|size| *size < least) {
                Some(size) => Err(refuse::volume_too_small(size << 30, least << 30)),
                None => Ok(()),
            }
        }
    }
}

fn fits_memory(image: &Object, flavor: &Object) -> ApiResult {
    let is_small = image.number("min_ram") > flavor.number("ram");
    if is_small { Err(refuse::memory_too_small()) } else { Ok(()) }
}

/// Refuses a flavor with less memory or a smaller disk than the image needs. A disk of 0 GiB takes the size of the image.
pub(super) fn fits(image: &Object, flavor: &Object) -> ApiResult {
    fits_memory(image, flavor)?;
    let (least, disk) = (image.number("min_disk"), flavor.number("disk"));
    if disk > 0 && least > disk {
        return Err(refuse::disk_too_small(disk << 30, least << 30));
    }
    Ok(())
}

fn ports(world: &World, asked: &ApiRequest, given: &Fields) -> ApiResult<Vec<Port>> {
    let wanted = match given.get("networks") {
        Some(Value::String(word)) if word == "none" => return Ok(Vec::new()),
        Some(Value::Array(all)) if !all.is_empty() => all,
        None if asked.since(37) => return Err(refuse::networks_needed()),
        Some(Value::String(_) | Value::Array(_)) | None => return only_network(world, asked),
        Some(_) => return Err(ApiError::bad("Invalid input for field/attribute networks.")),
    };
    let mut ports = Vec::new();
    for (at, one) in wanted.iter().enumerate() {
        ports.push(match one["port"].as_str() {
            Some(id) => existing(world, asked, id, one["tag"].clone())?,
            None => new(world, asked, one)?,
        });
        let is_twin = |other: &Value| one["port"].is_string() && other["port"] == one["port"];
        if wanted[..at].iter().any(is_twin) {
            return Err(refuse::port_twice(one.text("port")));
        }
    }
    let new = ports.iter().filter(|port| matches!(port, Port::New { .. })).count();
    let quota = neutron::check_quota(world, &asked.caller.project, Kind::Port, new);
    quota.map_err(|_| refuse::too_many_ports())?;
    Ok(ports)
}

/// A new port on the only network that the project can use, or no port if there is none.
fn only_network(world: &World, asked: &ApiRequest) -> ApiResult<Vec<Port>> {
    let usable = |network: &&Object| {
        (network.project == asked.caller.project || network.is("shared"))
            && !network.list("subnets").is_empty()
            && !network.is("router:external")
    };
    let usable = world.store.all(Kind::Network).filter(usable);
    let new =
        |network: &Object| Port::New { network: network.id.clone(), ip: None, tag: Value::Null };
    let ports: Vec<Port> = usable.map(new).collect();
    if ports.len() > 1 { Err(refuse::many_networks()) } else { Ok(ports) }
}

fn existing(world: &World, asked: &ApiRequest, id: &str, tag: Value) -> ApiResult<Port> {
    let port = world.seen(Kind::Port, id, asked).ok_or_else(|| refuse::no_such_port(id))?;
    if !port.text("device_id").is_empty() {
        return Err(refuse::port_taken(id));
    }
    if port.list("fixed_ips").is_empty() {
        return Err(refuse::port_without_address(id));
    }
    Ok(Port::There { id: id.to_owned(), tag })
}

fn new(world: &World, asked: &ApiRequest, wanted: &Value) -> ApiResult<Port> {
    let id = wanted.text("uuid");
    let (is_shared, is_outside) =
        (|it: &Object| it.is("shared"), |it: &Object| it.is("router:external"));
    let network = world.store.get(Kind::Network, id);
    let network = network.filter(|it| asked.sees(&it.project) || is_shared(it) || is_outside(it));
    let network = network.ok_or_else(|| refuse::no_network(id))?;
    if network.list("subnets").is_empty() {
        return Err(refuse::network_without_subnet(id));
    }
    if is_outside(network) && !is_shared(network) && !asked.caller.is_admin() {
        return Err(refuse::external_network(id));
    }
    let ip = wanted.text_of("fixed_ip").map(str::to_owned);
    Ok(Port::New { network: id.to_owned(), ip, tag: wanted["tag"].clone() })
}

/// Creates the record of one server with its ports and volumes, and starts the build.
fn begin(
    world: &mut World,
    asked: &ApiRequest,
    wanted: &ServerRequest,
    name: String,
) -> ApiResult<String> {
    let (project, given) = (&asked.caller.project, &wanted.given);
    let mut body = SERVER.new_body(given);
    let drive = given.field("config_drive");
    let has_drive = *drive == true || *drive == "True" || *drive == "true";
    let image = given.text("imageRef").rsplit('/').next();
    let now = stamp();
    for (key, value) in [
        ("name", name.as_str()),
        ("user_id", &asked.caller.user),
        ("created", &now),
        ("updated", &now),
        ("config_drive", if has_drive { "True" } else { "" }),
        ("image", image.unwrap_or_default()),
    ] {
        body[key] = json!(value);
    }
    let mut server = world.object(project, body);
    let id = server.id.clone();
    let mut zone = given.text("availability_zone").split(':');
    server.keep("flavor", wanted.flavor.id.as_str());
    server.keep("task", "scheduling");
    server.keep("zone", zone.next().unwrap_or_default());
    server.keep("forced_host", zone.next().unwrap_or(given.text("host")));
    server.keep("security_groups", wanted.security_groups.clone());
    if let Some(group) = &wanted.group {
        server.keep("group", group.as_str());
        group::join(world, group, &id);
    }
    world.store.insert(Kind::Server, server);
    limits::take(world, project, &wanted.flavor);
    if let Some(data) = given.text_of("user_data") {
        world.records.user_data.insert(id.clone(), data.into());
    }
    if let Err(problem) = furnish(world, asked, wanted, &id) {
        gone(world, &id);
        return Err(problem);
    }
    note_action(world, asked, &id, "create");
    let mut time = Some(world.settings.times.server_build);
    match world.misbehaviour.on_create(Kind::Server, &name) {
        Some(End::Error(message)) => world.store.keep(Kind::Server, &id, "doom", message),
        Some(End::NeverBoots) => world.store.keep(Kind::Server, &id, "never_boots", true),
        Some(End::Stuck) => time = None,
        Some(End::Takes(longer)) => time = Some(longer),
        None => {}
    }
    if let Some(time) = time {
        world.later(time, Event::Built(id.clone()));
    }
    Ok(id)
}

/// Prepares the ports and volumes of a new server.
fn furnish(world: &mut World, asked: &ApiRequest, wanted: &ServerRequest, id: &str) -> ApiResult {
    let project = &asked.caller.project;
    let groups = group_ids(world, asked, &wanted.given);
    let mut kept = Fields::new();
    for port in &wanted.ports {
        let (port_id, tag) = match port {
            Port::There { id, tag } => (id.clone(), tag),
            Port::New { network, ip, tag } => {
                let mut body = json!({"network_id": network, "security_groups": groups});
                if let Some(ip) = ip {
                    body["fixed_ips"] = json!([{"ip_address": ip}]);
                }
                let made = neutron::make_port(world, project, body);
                let made = made.map_err(|problem| ApiError {
                    status: if problem.status == 409 { 400 } else { problem.status },
                    ..problem
                })?;
                kept.push_to("made_ports", made.as_str());
                (made, tag)
            }
        };
        world.store.change(Kind::Port, &port_id, |port| {
            port.set("device_id", id);
            port.set("device_owner", "compute:nova");
            port.keep("tag", tag.clone());
        });
        kept.push_to("ports", port_id);
    }
    for device in wanted.given.list("block_device_mapping_v2") {
        if let Some(volume) = cinder::for_server(world, project, id, device)? {
            kept.push_to("volumes", json!({"id": volume, "tag": device["tag"], "boot_index": device["boot_index"], "delete_on_termination": device.is("delete_on_termination")}));
        }
    }
    world.store.change(Kind::Server, id, |server| server.hidden.extend(kept));
    Ok(())
}

/// The ids of the security groups in a request.
fn group_ids(world: &mut World, asked: &ApiRequest, given: &Fields) -> Vec<Value> {
    let project = &asked.caller.project;
    let default = neutron::default_group(world, project);
    if !given.field("security_groups").is_array() {
        return vec![json!(default)];
    }
    let find = |one: &Value| {
        neutron::group_called(world, project, one.text("name")).map(|group| json!(group.id))
    };
    given.list("security_groups").iter().filter_map(find).collect()
}
