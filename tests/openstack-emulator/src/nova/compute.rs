//! Answers requests for compute services, their hypervisors and zones.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::compute_host::{is_disabled, is_discovered, is_up, stamp};
use super::provider::used;
use super::{aggregate, refuse};
use crate::object::{Kind, Object};
use crate::request::{Answer, ApiAnswer, ApiError, ApiRequest, ApiResult};
use crate::world::World;

/// Answers `GET /os-availability-zone`.
pub(super) fn zones(world: &World, detail: bool) -> ApiAnswer {
    let mut zones: BTreeMap<&str, Vec<&Object>> = BTreeMap::new();
    for host in world.store.all(Kind::ComputeHost) {
        zones.entry(aggregate::zone(world, host.text("name"))).or_default().push(host);
    }
    let zones = zones.iter().map(|(name, hosts)| {
        let service = |host: &&Object| {
            let service = json!({"available": is_up(world, host), "active": !is_disabled(host), "updated_at": stamp(host)});
            (host.text("name").to_owned(), json!({"nova-compute": service}))
        };
        // Nova marks a zone as unavailable if all its hosts are disabled.
        let available = hosts.iter().any(|host| !is_disabled(host));
        let hosts = detail.then(|| hosts.iter().map(service).collect::<Map<_, _>>());
        json!({"zoneName": name, "zoneState": {"available": available}, "hosts": hosts})
    });
    Ok(Answer::ok(json!({"availabilityZoneInfo": zones.collect::<Vec<_>>()})))
}

fn state(world: &World, host: &Object) -> &'static str {
    if is_up(world, host) { "up" } else { "down" }
}

fn status(host: &Object) -> &'static str {
    if is_disabled(host) { "disabled" } else { "enabled" }
}

fn hypervisor(world: &World, host: &Object) -> Value {
    let provider = world.store.get(Kind::Provider, &host.id);
    let taken = |class: &str| provider.map_or(0, |provider| used(provider, class));
    json!({
        "id": host.id, "hypervisor_hostname": host.text("name"), "state": state(world, host), "status": status(host), "hypervisor_type": "QEMU",
        "hypervisor_version": 7002000, "host_ip": "127.0.0.1",
        "service": {"id": host.note("service"), "host": host.text("name"), "disabled_reason": host.hidden.get("reason")},
        "vcpus": host.hidden.get("vcpus"), "vcpus_used": taken("VCPU"), "memory_mb": host.hidden.get("memory_mb"),
        "memory_mb_used": taken("MEMORY_MB"), "local_gb": host.hidden.get("disk_gb"), "local_gb_used": taken("DISK_GB"),
        "servers": [],
    })
}

/// Answers `/os-hypervisors`.
pub(super) fn hypervisors(world: &World, asked: &ApiRequest, path: &[&str]) -> ApiAnswer {
    asked.admin("os_compute_api:os-hypervisors:list")?;
    let mut listed = world.store.all(Kind::ComputeHost).filter(|host| is_discovered(world, host));
    match path {
        [] | ["detail"] => {
            let pattern = asked.query("hypervisor_hostname_pattern").filter(|_| asked.since(53));
            let fits = |host: &&Object| pattern.is_none_or(|it| host.text("name").contains(it));
            let all = listed.filter(fits).map(|host| hypervisor(world, host));
            let all: Vec<Value> = all.collect();
            match pattern.filter(|_| all.is_empty()) {
                Some(pattern) => Err(refuse::no_matching_hypervisor(pattern)),
                None => Ok(Answer::ok(json!({"hypervisors": all}))),
            }
        }
        [id] => {
            let host = listed.find(|host| host.id == *id);
            let host = host.ok_or_else(|| refuse::no_hypervisor(id))?;
            Ok(Answer::ok(json!({"hypervisor": hypervisor(world, host)})))
        }
        _ => Err(ApiError::unknown_path()),
    }
}

/// Answers `/os-services`.
pub(super) fn services(world: &mut World, asked: &ApiRequest, path: &[&str]) -> ApiAnswer {
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
            world.store.change(Kind::ComputeHost, &host, |host| {
                host.keep("disabled", disabled);
                host.keep("reason", body["disabled_reason"].clone());
            });
            let changed = world.store.get(Kind::ComputeHost, &host).map(|it| service(world, it));
            Ok(Answer::ok(json!({"service": changed})))
        }
        ("DELETE", [id]) => {
            asked.admin("os_compute_api:os-services:delete")?;
            let host = of_service(world, id)?;
            if world.store.with_text(Kind::Server, "provider", &host).next().is_some() {
                return Err(refuse::service_hosts_servers());
            }
            if let Some(gone) = world.store.remove(Kind::ComputeHost, &host) {
                aggregate::forget(world, gone.text("name"));
            }
            world.store.remove(Kind::Provider, &host);
            Ok(Answer::empty(204))
        }
        _ => Err(ApiError::unknown_path()),
    }
}

fn is_to_be_disabled(body: &Value) -> ApiResult<bool> {
    match body["status"].as_str() {
        Some("disabled") => Ok(true),
        Some("enabled") if body.get("disabled_reason").is_some() => {
            Err(refuse::reason_while_enabled())
        }
        Some("enabled") => Ok(false),
        Some(_) => Err(refuse::bad_service_status()),
        None => Err(refuse::nothing_to_update()),
    }
}

/// The id of the host with this service.
fn of_service(world: &World, service: &str) -> ApiResult<String> {
    let found = world.store.find(Kind::ComputeHost, |host| host.note("service") == service);
    found.map(|host| host.id.clone()).ok_or_else(|| refuse::no_service(service))
}

fn service(world: &World, host: &Object) -> Value {
    let name = host.text("name");
    json!({
        "id": host.note("service"), "binary": "nova-compute", "host": name, "zone": aggregate::zone(world, name),
        "status": status(host), "state": state(world, host), "updated_at": stamp(host), "disabled_reason": host.hidden.get("reason"),
        "forced_down": false,
    })
}
