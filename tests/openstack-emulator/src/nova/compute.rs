//! Answers requests for compute services, their hypervisors and zones.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::aggregate;
use super::compute_host::{is_disabled, is_discovered, is_up, stamp};
use super::provider::used;
use crate::object::{Kind, Object};
use crate::problem::ApiError;
use crate::request::{Answer, AnswerResult, ApiRequest};
use crate::world::World;

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
