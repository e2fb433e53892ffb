//! Compute hosts as Nova's database knows them: the compute service that reports, and its hypervisor.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::aggregate;
use super::hosts::used;
use crate::object::{Kind, Object};
use crate::problem::ApiError;
use crate::request::{Answer, AnswerResult, ApiRequest};
use crate::settings::{Hypervisor, millis};
use crate::world::{World, new_id};

/// The hidden field of hosts from the settings, whose compute service always counts as up.
const ALWAYS: &str = "always";

/// Creates the service and the hypervisor of a host from the settings. The hypervisor has the id of its resource provider.
pub(super) fn plant(world: &mut World, id: &str, host: &Hypervisor) {
    insert(world, id, host);
    if let Some(planted) = world.store.get_mut(Kind::ComputeHost, id) {
        planted.keep(ALWAYS, true);
    }
}

fn insert(world: &mut World, id: &str, host: &Hypervisor) {
    let mut made = world.object("", json!({"id": id, "name": host.name}));
    made.keep("service", new_id());
    made.keep("disabled", !world.settings.enable_new_services);
    for (key, value) in
        [("vcpus", host.vcpus), ("memory_mb", host.memory_mb), ("disk_gb", host.disk_gb)]
    {
        made.keep(key, value);
    }
    world.store.insert(Kind::ComputeHost, made);
}

/// A report of nova-compute.
#[derive(Deserialize)]
pub(crate) struct Report {
    host: Hypervisor,
    /// The id of the compute node in `/var/lib/nova/compute_id`. With another id than the host's known one, nova-compute refuses to start.
    #[serde(default)]
    uuid: Option<String>,
}

/// Handles a report of `nova-compute`, which comes over the message bus in a real cloud. The first report registers the host. Returns the
/// id of
/// the hypervisor and the milliseconds until the next report is due.
pub(crate) fn report(world: &mut World, report: &Report) -> Result<Value, String> {
    let host = &report.host;
    let known = world.store.find(Kind::ComputeHost, |one| one.text("name") == host.name);
    let id = match known {
        Some(known) if report.uuid.as_ref().is_some_and(|id| *id != known.id) => {
            return Err(format!("host {} is known as compute node {}", host.name, known.id));
        }
        Some(known) => known.id.clone(),
        None => {
            let id = report.uuid.clone().unwrap_or_else(new_id);
            insert(world, &id, host);
            if let Some(made) = world.store.get_mut(Kind::ComputeHost, &id)
                && !world.settings.enable_new_services
            {
                made.keep("reason", "New compute service disabled due to config option.");
            }
            id
        }
    };
    if let Some(host) = world.store.get_mut(Kind::ComputeHost, &id) {
        host.keep("reported", Timestamp::now().as_microsecond());
    }
    Ok(json!({"id": id, "report_again": world.settings.times.report_interval}))
}

fn reported(host: &Object) -> Option<Timestamp> {
    if host.hidden.contains_key(ALWAYS) {
        return Some(Timestamp::now());
    }
    Timestamp::from_microsecond(host.hidden.get("reported")?.as_i64()?).ok()
}

fn is_up(world: &World, host: &Object) -> bool {
    let down = millis(world.settings.times.service_down);
    reported(host).is_some_and(|at| Timestamp::now().duration_since(at).unsigned_abs() <= down)
}

fn is_disabled(host: &Object) -> bool {
    host.hidden.get("disabled").and_then(Value::as_bool).unwrap_or_default()
}

/// Whether the host is in the cell mapping. Nova shows no hypervisor and finds no host that is missing there.
fn is_discovered(world: &World, host: &Object) -> bool {
    let after: Duration = millis(world.settings.times.host_discovery);
    host.hidden.contains_key(ALWAYS) || host.born.elapsed() >= after
}

/// The host of this name, if it is in the cell mapping.
pub(super) fn discovered<'w>(world: &'w World, name: &str) -> Option<&'w Object> {
    let found = world.store.find(Kind::ComputeHost, |one| one.text("name") == name)?;
    is_discovered(world, found).then_some(found)
}

/// Whether the scheduler places servers on the host of this resource provider, as Nova's ComputeFilter decides.
pub(super) fn takes_servers(world: &World, provider: &Object) -> bool {
    let host = world.store.get(Kind::ComputeHost, &provider.id);
    host.is_some_and(|host| is_up(world, host) && !is_disabled(host) && is_discovered(world, host))
}

/// Answers `GET /os-availability-zone`.
pub(super) fn zones(world: &World, detail: bool) -> AnswerResult {
    let mut zones: BTreeMap<&str, Vec<&Object>> = BTreeMap::new();
    for host in world.store.all(Kind::ComputeHost) {
        zones.entry(aggregate::zone(world, host.text("name"))).or_default().push(host);
    }
    let zones = zones.iter().map(|(name, hosts)| {
        let service = |host: &&Object| {
            (
                host.text("name").to_owned(),
                json!({"nova-compute": {"available": is_up(world, host), "active": !is_disabled(host), "updated_at": stamp(host)}}),
            )
        };
        // Nova marks a zone as unavailable if all its hosts are disabled.
        let available = hosts.iter().any(|host| !is_disabled(host));
        let hosts = detail.then(|| hosts.iter().map(service).collect::<Map<_, _>>());
        json!({"zoneName": name, "zoneState": {"available": available}, "hosts": hosts})
    });
    Ok(Answer::ok(json!({"availabilityZoneInfo": zones.collect::<Vec<_>>()})))
}

fn stamp(host: &Object) -> Option<String> {
    reported(host).map(|at| at.strftime("%Y-%m-%dT%H:%M:%S.%6f").to_string())
}

/// Answers `/os-hypervisors`.
pub(super) fn hypervisors(world: &World, asked: &ApiRequest, path: &[&str]) -> AnswerResult {
    asked.admin("os_compute_api:os-hypervisors:list")?;
    let detail = |host: &Object| {
        let provider = world.store.get(Kind::Provider, &host.id);
        let taken = |class: &str| provider.map_or(0, |provider| used(provider, class));
        let state = if is_up(world, host) { "up" } else { "down" };
        let status = if is_disabled(host) { "disabled" } else { "enabled" };
        json!({
            "id": host.id, "hypervisor_hostname": host.text("name"), "state": state, "status": status, "hypervisor_type": "QEMU",
            "hypervisor_version": 7002000, "host_ip": "127.0.0.1",
            "service": {"id": host.note("service"), "host": host.text("name"), "disabled_reason": host.hidden.get("reason")},
            "vcpus": host.hidden.get("vcpus"), "vcpus_used": taken("VCPU"), "memory_mb": host.hidden.get("memory_mb"),
            "memory_mb_used": taken("MEMORY_MB"), "local_gb": host.hidden.get("disk_gb"), "local_gb_used": taken("DISK_GB"),
            "servers": [],
        })
    };
    let listed = world.store.all(Kind::ComputeHost).filter(|host| is_discovered(world, host));
    match path {
        [] | ["detail"] => {
            let pattern = asked.query("hypervisor_hostname_pattern").filter(|_| asked.since(53));
            let fits =
                |host: &&Object| pattern.is_none_or(|pattern| host.text("name").contains(pattern));
            let all: Vec<Value> = listed.filter(fits).map(detail).collect();
            if let (Some(pattern), true) = (pattern, all.is_empty()) {
                let message = format!("No hypervisor matching '{pattern}' could be found.");
                return Err(ApiError::missing(message));
            }
            Ok(Answer::ok(json!({"hypervisors": all})))
        }
        [id] => {
            let mut listed = listed;
            let host = listed.find(|host| host.id == *id).ok_or_else(|| {
                ApiError::missing(format!("Hypervisor with ID '{id}' could not be found."))
            })?;
            Ok(Answer::ok(json!({"hypervisor": detail(host)})))
        }
        _ => Err(ApiError::unknown_path()),
    }
}

/// Answers `/os-services`.
pub(super) fn services(world: &mut World, asked: &ApiRequest, path: &[&str]) -> AnswerResult {
    match (asked.method.as_str(), path) {
        ("GET", []) => {
            asked.admin("os_compute_api:os-services:list")?;
            let wanted = |host: &&Object| {
                asked.query("host").is_none_or(|name| host.text("name") == name)
                    && asked.query("binary").is_none_or(|binary| binary == "nova-compute")
            };
            let all = world.store.all(Kind::ComputeHost).filter(wanted);
            let all: Vec<Value> = all.map(|host| service(world, host)).collect();
            Ok(Answer::ok(json!({"services": all})))
        }
        // Microversion 2.53 replaced `/os-services/disable` and similar requests.
        ("PUT", [id]) if asked.since(53) => {
            asked.admin("os_compute_api:os-services:update")?;
            let body = asked.json()?;
            let host = of_service(world, id)?;
            let disabled = is_to_be_disabled(&body)?;
            if let Some(host) = world.store.get_mut(Kind::ComputeHost, &host) {
                host.keep("disabled", disabled);
                let reason = body["disabled_reason"].clone();
                host.keep("reason", if disabled { reason } else { Value::Null });
            }
            let changed = world.store.get(Kind::ComputeHost, &host).map(|it| service(world, it));
            Ok(Answer::ok(json!({"service": changed})))
        }
        ("DELETE", [id]) => {
            asked.admin("os_compute_api:os-services:delete")?;
            let host = of_service(world, id)?;
            if world.store.all(Kind::Server).any(|server| server.note("provider") == host) {
                return Err(ApiError::conflict(
                    "Unable to delete compute service that is hosting instances. Migrate or delete the instances first.",
                ));
            }
            let gone = world.store.get(Kind::ComputeHost, &host);
            let name = gone.map(|gone| gone.text("name").to_owned()).unwrap_or_default();
            aggregate::forget(world, &name);
            world.store.remove(Kind::ComputeHost, &host);
            world.store.remove(Kind::Provider, &host);
            Ok(Answer::empty(204))
        }
        _ => Err(ApiError::unknown_path()),
    }
}

/// Whether an update disables the service.
fn is_to_be_disabled(body: &Value) -> Result<bool, ApiError> {
    match body["status"].as_str() {
        Some("disabled") => Ok(true),
        Some("enabled") if body.get("disabled_reason").is_some() => {
            Err(ApiError::bad("Specifying 'disabled_reason' when status is 'enabled' is invalid."))
        }
        Some("enabled") => Ok(false),
        Some(_) => Err(ApiError::bad(
            "Invalid input for field/attribute status. It is not one of ['enabled', 'disabled']",
        )),
        None => Err(ApiError::bad(
            "No updates were requested. Fields 'status' or 'forced_down' should be specified.",
        )),
    }
}

/// The id of the host with this service.
fn of_service(world: &World, service: &str) -> Result<String, ApiError> {
    let found = world.store.find(Kind::ComputeHost, |host| host.note("service") == service);
    let missing = || ApiError::missing(format!("Service {service} could not be found."));
    found.map(|host| host.id.clone()).ok_or_else(missing)
}

fn service(world: &World, host: &Object) -> Value {
    let name = host.text("name");
    json!({
        "id": host.note("service"), "binary": "nova-compute", "host": name, "zone": aggregate::zone(world, name),
        "status": if is_disabled(host) { "disabled" } else { "enabled" },
        "state": if is_up(world, host) { "up" } else { "down" },
        "updated_at": stamp(host), "disabled_reason": host.hidden.get("reason"), "forced_down": false,
    })
}
