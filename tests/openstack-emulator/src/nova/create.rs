//! Answers `POST /servers`.

use base64::Engine;
use serde_json::{Map, Value, json};

use super::flavor::is_open;
use super::history::note_action;
use super::life::gone;
use super::{group, limits, parts};
use crate::object::{Kind, Object};
use crate::problem::ApiError;
use crate::request::{Answer, AnswerResult, ApiRequest};
use crate::world::{World, short_id, stamp};
use crate::{cinder, misbehave::End, neutron, world};

/// The most bytes of user data in base64 (Nova's `MAX_USERDATA_SIZE`).
const LONGEST_USER_DATA: usize = 65535;

/// A validated request.
struct ServerRequest {
    name: String,
    flavor: Object,
    given: Map<String, Value>,
    group: Option<String>,
    ports: Vec<Port>,
}

/// A port to use or to create.
enum Port {
    There { id: String, tag: Value },
    New { network: String, ip: Option<String>, tag: Value },
}

pub(super) fn create(world: &mut World, asked: &ApiRequest) -> AnswerResult {
    let body = asked.json()?;
    let given = asked.wrapped("server")?;
    let hints =
        ["os:scheduler_hints", "OS-SCH-HNT:scheduler_hints"].iter().find_map(|key| body.get(*key));
    let wanted = check(world, asked, given, hints)?;
    let count = |key: &str, default: u64| {
        wanted
            .given
            .get(key)
            .and_then(|count| count.as_u64().or_else(|| count.as_str()?.parse().ok()))
            .unwrap_or(default)
    };
    let (least, most) = (count("min_count", 1), count("max_count", count("min_count", 1)));
    let count = usize::try_from(most.max(least)).unwrap_or(1);
    if count > 1 && wanted.ports.iter().any(|port| matches!(port, Port::There { .. })) {
        return Err(ApiError::bad(
            "Unable to launch multiple instances with a single configured port ID. Please launch your instance one by one with different ports.",
        ));
    }
    limits::check(world, asked, &wanted.flavor, count)?;
    if let Some(id) = &wanted.group {
        group::check_limit(world, asked, id, count)?;
    }
    let password = short_id()[..12].to_owned();
    world.secrets.push(password.clone());
    let mut first = None;
    for number in 1..=count {
        let name =
            if count == 1 { wanted.name.clone() } else { format!("{}-{number}", wanted.name) };
        let id = begin(world, asked, &wanted, name)?;
        first.get_or_insert(id);
    }
    let id = first.unwrap_or_default();
    if wanted.given.get("return_reservation_id") == Some(&json!(true)) {
        return Ok(Answer::json(202, json!({"reservation_id": format!("r-{}", &short_id()[..8])})));
    }
    let href = format!("{}/v2.1/servers/{id}", asked.root());
    let links = json!([{"rel": "self", "href": href}, {"rel": "bookmark", "href": format!("{}/servers/{id}", asked.root())}]);
    let groups = wanted
        .given
        .get("security_groups")
        .cloned()
        .unwrap_or_else(|| json!([{"name": "default"}]));
    let server = json!({"id": id, "links": links, "OS-DCF:diskConfig": "MANUAL", "security_groups": groups, "adminPass": password});
    Ok(Answer::json(202, json!({"server": server})).with("location", href))
}

fn check(
    world: &World,
    asked: &ApiRequest,
    given: Map<String, Value>,
    hints: Option<&Value>,
) -> Result<ServerRequest, ApiError> {
    let text = |key: &str| given.get(key).and_then(Value::as_str);
    let name = text("name").filter(|name| !name.is_empty() && name.len() <= 255);
    let name = name
        .ok_or_else(|| {
            ApiError::bad("Invalid input for field/attribute name. Value: . '' is too short")
        })?
        .to_owned();
    let flavor = given
        .get("flavorRef")
        .map(|flavor| flavor.as_str().map_or_else(|| flavor.to_string(), str::to_owned))
        .unwrap_or_default();
    let flavor = flavor.rsplit('/').next().unwrap_or_default();
    let flavor = world
        .store
        .get(Kind::Flavor, flavor)
        .filter(|it| is_open(asked, it))
        .cloned()
        .ok_or_else(|| ApiError::bad(format!("Flavor {flavor} could not be found.")))?;
    check_image(world, asked, &given, &flavor)?;
    if let Some(data) = text("user_data") {
        if data.len() > LONGEST_USER_DATA {
            return Err(ApiError::bad(format!(
                "Invalid input for field/attribute user_data. Value: {}... '...' is too long",
                &data[..16]
            )));
        }
        if base64::engine::general_purpose::STANDARD.decode(data).is_err() {
            return Err(ApiError::bad(format!(
                "Invalid input for field/attribute user_data. Value: {data}. '{data}' is not a 'base64'"
            )));
        }
    }
    if let Some(key) = text("key_name") {
        let known = super::keypair::of_user(world, &asked.caller.user, key);
        known.ok_or_else(|| ApiError::bad("Invalid key_name provided."))?;
    }
    if let Some(zone) = text("availability_zone") {
        let zone = zone.split(':').next().unwrap_or_default();
        let known = world.store.find(Kind::ComputeHost, |host| {
            super::aggregate::zone(world, host.text("name")) == zone
        });
        if known.is_none() {
            return Err(ApiError::bad("The requested availability zone is not available"));
        }
    }
    if let Some(tags) = given.get("tags").and_then(Value::as_array) {
        parts::check_tags(tags)?;
    }
    for device in
        given.get("block_device_mapping_v2").and_then(Value::as_array).into_iter().flatten()
    {
        let Some(tag) = device.get("tag") else { continue };
        parts::check_tags(std::slice::from_ref(tag))?;
    }
    for one in given.get("security_groups").and_then(Value::as_array).into_iter().flatten() {
        let wanted = one["name"].as_str().unwrap_or_default();
        let project = &asked.caller.project;
        if wanted != "default" && neutron::group_called(world, project, wanted).is_none() {
            return Err(ApiError::bad(format!(
                "Security group {wanted} not found for project {}.",
                asked.caller.project
            )));
        }
    }
    let group = hints
        .and_then(|hints| hints["group"].as_str().or_else(|| hints["group"][0].as_str()))
        .map(str::to_owned);
    if let Some(id) = &group {
        let known =
            world.store.get(Kind::ServerGroup, id).filter(|group| asked.sees(&group.project));
        known.ok_or_else(|| ApiError::bad(format!("Instance group {id} could not be found.")))?;
    }
    let ports = ports(world, asked, &given)?;
    Ok(ServerRequest { name, flavor, given, group, ports })
}

fn check_image(
    world: &World,
    asked: &ApiRequest,
    given: &Map<String, Value>,
    flavor: &Object,
) -> Result<(), ApiError> {
    let devices = given.get("block_device_mapping_v2").and_then(Value::as_array);
    let boot = devices
        .and_then(|all| all.iter().find(|one| one["boot_index"] == 0 || one["boot_index"] == "0"));
    let image = given.get("imageRef").and_then(Value::as_str).unwrap_or_default();
    let image = image.rsplit('/').next().unwrap_or_default();
    let image = if image.is_empty() {
        let Some(boot) = boot else {
            return Err(ApiError::bad(
                "Block Device Mapping is Invalid: Boot sequence for the instance and image/block device mapping combination is not valid.",
            ));
        };
        if boot["source_type"] == "volume" {
            let volume = boot["uuid"].as_str().unwrap_or_default();
            let volume =
                world.store.get(Kind::Volume, volume).filter(|volume| asked.sees(&volume.project));
            return match volume.map(|volume| volume.text("status")) {
                Some("available") => Ok(()),
                Some(_) => Err(ApiError::bad(
                    "Invalid volume: The volume is not in a state to be attached.",
                )),
                None => Err(ApiError::bad(format!(
                    "Block Device Mapping is Invalid: failed to get volume {}.",
                    boot["uuid"]
                ))),
            };
        }
        if boot["source_type"] != "image" {
            return Ok(());
        }
        boot["uuid"].as_str().unwrap_or_default()
    } else {
        image
    };
    let found = world
        .store
        .get(Kind::Image, image)
        .filter(|one| asked.sees(&one.project) || one.text("visibility") == "public");
    let found = found.ok_or_else(|| {
        ApiError::bad(format!(
            "Invalid image identifier or unable to access requested image: {image}"
        ))
    })?;
    if found.text("status") != "active" {
        return Err(ApiError::bad(format!("Image {image} is not active.")));
    }
    if found.number("min_ram") > flavor.number("ram") {
        return Err(ApiError::bad("Flavor's memory is too small for requested image."));
    }
    let on_volume = boot.filter(|boot| boot["destination_type"] == "volume");
    match on_volume.map(|boot| boot["volume_size"].as_i64()) {
        Some(size) if size.is_some_and(|size| size < found.number("min_disk")) => {
            Err(ApiError::bad(format!(
                "Volume is smaller than the minimum size specified in image metadata. Volume size is {} bytes, minimum size is {} bytes.",
                size.unwrap_or_default() << 30,
                found.number("min_disk") << 30
            )))
        }
        Some(_) => Ok(()),
        None => fits_disk(found, flavor),
    }
}

/// Refuses a flavor whose disk is smaller than the image needs. A disk of 0 GiB takes the size of the image.
pub(super) fn fits_disk(image: &Object, flavor: &Object) -> Result<(), ApiError> {
    let (least, disk) = (image.number("min_disk"), flavor.number("disk"));
    if disk > 0 && least > disk {
        return Err(ApiError::bad(format!(
            "Flavor's disk is too small for requested image. Flavor disk is {} bytes, minimum size is {} bytes.",
            disk << 30,
            least << 30
        )));
    }
    Ok(())
}

fn ports(
    world: &World,
    asked: &ApiRequest,
    given: &Map<String, Value>,
) -> Result<Vec<Port>, ApiError> {
    let project = &asked.caller.project;
    let usable = |network: &&Object| {
        (network.project == *project || network.is("shared"))
            && !network.list("subnets").is_empty()
            && !network.is("router:external")
    };
    let new =
        |network: &Object| Port::New { network: network.id.clone(), ip: None, tag: Value::Null };
    let wanted = match given.get("networks") {
        Some(Value::String(word)) if word == "none" => return Ok(Vec::new()),
        Some(Value::Array(all)) if !all.is_empty() => all,
        Some(Value::String(_)) | Some(Value::Array(_)) | None => {
            if asked.since(37) && !given.contains_key("networks") {
                return Err(ApiError::bad(
                    "Invalid input for field/attribute server. 'networks' is a required property",
                ));
            }
            let mine: Vec<&Object> = world.store.all(Kind::Network).filter(usable).collect();
            return match mine.as_slice() {
                [] => Ok(Vec::new()),
                [one] => Ok(vec![new(one)]),
                _ => Err(ApiError::conflict(
                    "Multiple possible networks found, use a Network ID to be more specific.",
                )),
            };
        }
        Some(_) => return Err(ApiError::bad("Invalid input for field/attribute networks.")),
    };
    let mut ports = Vec::new();
    for one in wanted {
        let tag = one["tag"].clone();
        if let Some(id) = one["port"].as_str() {
            let port = world.store.get(Kind::Port, id).filter(|port| asked.sees(&port.project));
            let port =
                port.ok_or_else(|| ApiError::bad(format!("Port {id} could not be found.")))?;
            if !port.text("device_id").is_empty() {
                return Err(ApiError::conflict(format!("Port {id} is still in use.")));
            }
            if port.list("fixed_ips").is_empty() {
                return Err(ApiError::bad(format!(
                    "Port {id} requires a FixedIP in order to be used."
                )));
            }
            if ports.iter().any(|port| matches!(port, Port::There { id: other, .. } if other == id))
            {
                return Err(ApiError::bad(format!("Port {id} is given twice.")));
            }
            ports.push(Port::There { id: id.to_owned(), tag });
            continue;
        }
        let id = one["uuid"].as_str().unwrap_or_default();
        let network = world.store.get(Kind::Network, id).filter(|network| {
            asked.sees(&network.project) || network.is("shared") || network.is("router:external")
        });
        let network =
            network.ok_or_else(|| ApiError::bad(format!("Network {id} could not be found.")))?;
        if network.list("subnets").is_empty() {
            return Err(ApiError::bad(format!(
                "Network {id} requires a subnet in order to boot instances on."
            )));
        }
        if network.is("router:external") && !network.is("shared") && !asked.caller.is_admin() {
            return Err(ApiError::forbidden(format!(
                "It is not allowed to create an interface on external network {id}"
            )));
        }
        ports.push(Port::New {
            network: id.to_owned(),
            ip: one["fixed_ip"].as_str().map(str::to_owned),
            tag,
        });
    }
    let new = ports.iter().filter(|port| matches!(port, Port::New { .. })).count();
    neutron::check_quota(world, project, Kind::Port, new)
        .map_err(|_| ApiError::forbidden("Maximum number of ports exceeded"))?;
    Ok(ports)
}

/// Creates the record of one server with its ports and volumes, and starts the build.
fn begin(
    world: &mut World,
    asked: &ApiRequest,
    wanted: &ServerRequest,
    name: String,
) -> Result<String, ApiError> {
    let project = asked.caller.project.clone();
    let given = &wanted.given;
    let now = stamp();
    let zone = given.get("availability_zone").and_then(Value::as_str).unwrap_or_default();
    let body = json!({
        "name": name,
        "status": "BUILD",
        "user_id": asked.caller.user,
        "created": now,
        "updated": now,
        "metadata": given.get("metadata").cloned().unwrap_or_else(|| json!({})),
        "key_name": given.get("key_name"),
        "config_drive": if given.get("config_drive").is_some_and(|drive| *drive == json!(true) || *drive == "True" || *drive == "true") { "True" } else { "" },
        "tags": given.get("tags").cloned().unwrap_or_else(|| json!([])),
        "description": given.get("description"),
        "image": given.get("imageRef").and_then(Value::as_str).map(|image| image.rsplit('/').next().unwrap_or_default()).unwrap_or_default(),
    });
    let mut server = world.object(&project, body);
    let id = server.id.clone();
    server.keep("flavor", wanted.flavor.id.clone());
    server.keep("task", "scheduling");
    server.keep("zone", zone.split(':').next().unwrap_or_default());
    server.keep(
        "forced_host",
        zone.split(':')
            .nth(1)
            .or_else(|| given.get("host").and_then(Value::as_str))
            .unwrap_or_default(),
    );
    server.keep(
        "security_groups",
        given.get("security_groups").cloned().unwrap_or_else(|| json!([{"name": "default"}])),
    );
    if let Some(group) = &wanted.group {
        server.keep("group", group.clone());
        group::join(world, group, &id);
    }
    world.store.insert(Kind::Server, server);
    limits::take(world, &project, &wanted.flavor);
    if let Some(data) = given.get("user_data").and_then(Value::as_str) {
        world.user_data.insert(id.clone(), data.into());
    }
    if let Err(problem) = furnish(world, asked, wanted, &id) {
        gone(world, &id);
        return Err(problem);
    }
    note_action(world, asked, &id, "create");
    let usual = world.settings.times.server_build;
    let fate = world.misbehaviour.on_create(Kind::Server, &name);
    if let Some(server) = world.store.get_mut(Kind::Server, &id) {
        match &fate {
            Some(End::Error(message)) => server.keep("doom", message.clone()),
            Some(End::NeverBoots) => server.keep("never_boots", true),
            _ => {}
        }
    }
    match fate {
        Some(End::Stuck) => {}
        Some(End::Takes(time)) => world.later(time, world::Event::Built(id.clone())),
        _ => world.later(usual, world::Event::Built(id.clone())),
    }
    Ok(id)
}

/// Prepares the ports and volumes of a new server.
fn furnish(
    world: &mut World,
    asked: &ApiRequest,
    wanted: &ServerRequest,
    id: &str,
) -> Result<(), ApiError> {
    let project = asked.caller.project.clone();
    let groups = group_ids(world, asked, &wanted.given);
    let (mut ports, mut made) = (Vec::new(), Vec::new());
    for port in &wanted.ports {
        let (port_id, tag) = match port {
            Port::There { id, tag } => (id.clone(), tag),
            Port::New { network, ip, tag } => {
                let mut body = json!({"network_id": network, "security_groups": groups});
                if let Some(ip) = ip {
                    body["fixed_ips"] = json!([{"ip_address": ip}]);
                }
                let port_id =
                    neutron::make_port(world, &project, body).map_err(|problem| ApiError {
                        status: if problem.status == 409 { 400 } else { problem.status },
                        ..problem
                    })?;
                made.push(json!(port_id));
                (port_id, tag)
            }
        };
        if let Some(port) = world.store.get_mut(Kind::Port, &port_id) {
            port.set("device_id", id);
            port.set("device_owner", "compute:nova");
            port.keep("tag", tag.clone());
        }
        ports.push(json!(port_id));
    }
    let mut volumes = Vec::new();
    for device in
        wanted.given.get("block_device_mapping_v2").and_then(Value::as_array).into_iter().flatten()
    {
        if let Some(volume) = cinder::for_server(world, &project, id, device)? {
            volumes.push(json!({"id": volume, "tag": device["tag"], "boot_index": device["boot_index"], "delete_on_termination": device["delete_on_termination"] == true}));
        }
    }
    if let Some(server) = world.store.get_mut(Kind::Server, id) {
        server.keep("ports", ports);
        server.keep("made_ports", made);
        server.keep("volumes", volumes);
    }
    Ok(())
}

/// The ids of the security groups in a request.
fn group_ids(world: &mut World, asked: &ApiRequest, given: &Map<String, Value>) -> Vec<Value> {
    let default = neutron::default_group(world, &asked.caller.project);
    let Some(names) = given.get("security_groups").and_then(Value::as_array) else {
        return vec![json!(default)];
    };
    let find = |one: &Value| {
        let name = one["name"].as_str().unwrap_or_default();
        neutron::group_called(world, &asked.caller.project, name).map(|group| json!(group.id))
    };
    names.iter().filter_map(find).collect()
}
