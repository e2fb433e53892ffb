//! Placement of servers on hosts, and the resources of hosts.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::provider::{allocations, capacity, resources, used};
use super::{aggregate, compute_host};
use crate::object::{Kind, Object};
use crate::settings::Hypervisor;
use crate::world::World;

/// Creates the hosts of the settings, whose compute services always count as up.
pub(crate) fn plant(world: &mut World) {
    for host in world.settings.hypervisors.clone() {
        let body = json!({"name": host.name, "generation": 1});
        let mut provider = world.object("", body);
        stock(&mut provider, &host);
        let id = provider.id.clone();
        world.store.insert(Kind::Provider, provider);
        compute_host::plant(world, &id, &host);
        aggregate::plant(world, &host.name, &host.zone);
    }
}

/// Sets the inventory of a provider.
fn stock(provider: &mut Object, host: &Hypervisor) {
    for (class, total) in [
        ("VCPU", host.vcpus),
        ("MEMORY_MB", host.memory_mb),
        ("DISK_GB", host.disk_gb),
        ("PGPU", host.gpus),
    ] {
        provider.keep(class, total);
    }
}

fn fits(provider: &Object, wanted: &[(String, i64)]) -> bool {
    wanted.iter().all(|(class, amount)| used(provider, class) + amount <= capacity(provider, class))
}

/// Chooses a host for a server and reserves the resources. Returns the name and zone of the host. `None` if no host fits.
pub(super) fn place(world: &mut World, id: &str) -> Option<(String, String)> {
    let server = world.store.get(Kind::Server, id)?;
    let flavor = world.store.get(Kind::Flavor, server.note("flavor"))?;
    let mut wanted = resources(flavor);
    if server.text("image").is_empty() {
        wanted.retain(|(class, _)| class != "DISK_GB");
    }
    let (zone, forced) = (server.note("zone"), server.note("forced_host"));
    let avoided = server.note("avoided_host");
    let group = world.store.get(Kind::ServerGroup, server.note("group"));
    let policy = group.map(|group| group.note("policy")).unwrap_or_default();
    let most =
        group.and_then(|group| group.hidden.get("max_server_per_host")?.as_i64()).unwrap_or(1);
    let mut companions: BTreeMap<&str, i64> = BTreeMap::new();
    let members = group.map(|group| group.list("members")).unwrap_or_default();
    for member in members.iter().filter(|member| **member != id) {
        let host = world
            .store
            .get(Kind::Server, member.as_str().unwrap_or_default())
            .map(|other| other.note("host"));
        if let Some(host) = host.filter(|host| !host.is_empty()) {
            *companions.entry(host).or_default() += 1;
        }
    }
    let near = |host: &Object| companions.get(host.text("name")).copied().unwrap_or_default();
    let candidates = world.store.all(Kind::Provider).filter(|host| {
        (zone.is_empty() || aggregate::zone(world, host.text("name")) == zone)
            && compute_host::takes_servers(world, host)
            && (forced.is_empty() || host.text("name") == forced)
            && (avoided.is_empty() || host.text("name") != avoided)
            && fits(host, &wanted)
            && (policy != "anti-affinity" || near(host) < most)
            && (policy != "affinity" || companions.is_empty() || near(host) > 0)
    });
    // Chooses the host with the most free memory. For a soft policy, the number of group members on the host comes first.
    let chosen = candidates.min_by_key(|host| {
        let wish = match policy {
            "soft-anti-affinity" => near(host),
            "soft-affinity" => -near(host),
            _ => 0,
        };
        (wish, used(host, "MEMORY_MB") - capacity(host, "MEMORY_MB"))
    })?;
    let (provider, name) = (chosen.id.clone(), chosen.text("name").to_owned());
    let zone = aggregate::zone(world, &name).to_owned();
    change(world, &provider, &wanted, 1);
    let allocations: Vec<Value> =
        wanted.iter().map(|(class, amount)| json!([class, amount])).collect();
    let server = world.store.get_mut(Kind::Server, id)?;
    server.keep("provider", provider);
    server.keep("allocations", allocations);
    Some((name, zone))
}

/// Places a server again for its current flavor. Returns false, and keeps the old host, if no host fits.
pub(super) fn replace(world: &mut World, before: &Object) -> bool {
    leave(world, before);
    let Some((host, zone)) = place(world, &before.id) else {
        change(world, before.note("provider"), &allocations(before), 1);
        return false;
    };
    if let Some(server) = world.store.get_mut(Kind::Server, &before.id) {
        server.keep("host", host);
        server.keep("zone", zone);
    }
    true
}

/// Releases the resources of a server on its host.
pub(super) fn leave(world: &mut World, server: &Object) {
    change(world, server.note("provider"), &allocations(server), -1);
}

fn change(world: &mut World, provider: &str, amounts: &[(String, i64)], sign: i64) {
    let Some(provider) = world.store.get_mut(Kind::Provider, provider) else { return };
    for (class, amount) in amounts {
        let now = used(provider, class) + sign * amount;
        provider.keep(&format!("used {class}"), now);
    }
    let generation = provider.number("generation") + 1;
    provider.set("generation", generation);
}
