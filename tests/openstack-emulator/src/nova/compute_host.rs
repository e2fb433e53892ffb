//! Compute hosts as Nova's database knows them: the compute service that reports, and its hypervisor.

use std::time::Duration;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::object::{Kind, Object, ReadFields};
use crate::settings::{Hypervisor, millis};
use crate::world::{World, new_id};

/// The hidden field of hosts from the settings, whose compute service always counts as up.
const ALWAYS: &str = "always";

/// Creates the service and the hypervisor of a host from the settings, which is not new. The hypervisor has the id of its resource provider.
pub(super) fn plant(world: &mut World, id: &str, host: &Hypervisor) {
    insert(world, id, host);
    world.store.keep(Kind::ComputeHost, id, ALWAYS, true);
    world.store.keep(Kind::ComputeHost, id, "disabled", false);
}

fn insert(world: &mut World, id: &str, host: &Hypervisor) {
    let mut made = world.object("", json!({"id": id, "name": host.name}));
    made.keep("service", new_id());
    made.keep("disabled", !world.settings.enable_new_services);
    made.keep("vcpus", host.vcpus);
    made.keep("memory_mb", host.memory_mb);
    made.keep("disk_gb", host.disk_gb);
    world.store.insert(Kind::ComputeHost, made);
}

#[derive(Deserialize)]
pub(crate) struct Report {
    host: Hypervisor,
    /// The id of the compute node in `/var/lib/nova/compute_id`. With another id than the host's known one, nova-compute refuses to start.
    uuid: Option<String>,
}

/// Handles a report of `nova-compute`, which comes over the message bus in a real cloud. The first report registers the host. Returns the
/// id of the hypervisor and the milliseconds until the next report is due.
pub(crate) fn report(world: &mut World, report: &Report) -> Result<Value, String> {
    let host = &report.host;
    let known = world.store.named(Kind::ComputeHost, &host.name);
    let id = match known {
        Some(known) if report.uuid.as_ref().is_some_and(|id| *id != known.id) => {
            return Err(format!("host {} is known as compute node {}", host.name, known.id));
        }
        Some(known) => known.id.clone(),
        None => {
            let id = report.uuid.clone().unwrap_or_else(new_id);
            insert(world, &id, host);
            if !world.settings.enable_new_services {
                let reason = "New compute service disabled due to config option.";
                world.store.keep(Kind::ComputeHost, &id, "reason", reason);
            }
            id
        }
    };
    world.store.keep(Kind::ComputeHost, &id, "reported", Timestamp::now().as_microsecond());
    Ok(json!({"id": id, "report_again": world.settings.times.report_interval}))
}

fn reported(host: &Object) -> Option<Timestamp> {
    if host.hidden.contains_key(ALWAYS) {
        return Some(Timestamp::now());
    }
    Timestamp::from_microsecond(host.hidden.get("reported")?.as_i64()?).ok()
}

pub(super) fn is_up(world: &World, host: &Object) -> bool {
    let down = millis(world.settings.times.service_down);
    reported(host).is_some_and(|at| Timestamp::now().duration_since(at).unsigned_abs() <= down)
}

pub(super) fn is_disabled(host: &Object) -> bool {
    host.hidden.is("disabled")
}

/// Whether the host is in the cell mapping. Nova shows no hypervisor and finds no host that is missing there.
pub(super) fn is_discovered(world: &World, host: &Object) -> bool {
    let after: Duration = millis(world.settings.times.host_discovery);
    host.hidden.contains_key(ALWAYS) || host.born.elapsed() >= after
}

/// The host of this name, if it is in the cell mapping.
pub(super) fn discovered<'w>(world: &'w World, name: &str) -> Option<&'w Object> {
    let found = world.store.named(Kind::ComputeHost, name)?;
    is_discovered(world, found).then_some(found)
}

/// Whether the scheduler places servers on the host of this resource provider, as Nova's ComputeFilter decides.
pub(super) fn takes_servers(world: &World, provider: &Object) -> bool {
    let host = world.store.get(Kind::ComputeHost, &provider.id);
    host.is_some_and(|host| is_up(world, host) && !is_disabled(host) && is_discovered(world, host))
}

/// The time of the last report.
pub(super) fn stamp(host: &Object) -> Option<String> {
    reported(host).map(|at| at.strftime("%Y-%m-%dT%H:%M:%S.%6f").to_string())
}
