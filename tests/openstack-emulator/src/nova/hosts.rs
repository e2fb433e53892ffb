//! Placement of servers on hosts, and the resources of hosts.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::provider::{allocations, capacity, plant as plant_provider, resources, used};
use super::{aggregate, compute_host};
use crate::object::{Kind, Object, ReadFields};
use crate::world::World;

/// Creates the hosts of the settings, whose compute services always count as up.
pub(crate) fn plant(world: &mut World) {
    for host in world.settings.hypervisors.clone() {
        let id = plant_provider(world, &host);
        compute_host::plant(world, &id, &host);
        aggregate::plant(world, &host.name, &host.zone);
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
    let policy = group.map(|group| group.text("policy")).unwrap_or_default();
    let rules = group.map(|group| group.body.field("rules"));
    let most = rules.and_then(|rules| rules.number_of("max_server_per_host")).unwrap_or(1);
    let mut companions: BTreeMap<&str, i64> = BTreeMap::new();
    let members = group.into_iter().flat_map(|group| group.body.texts("members"));
    for member in members.filter(|member| *member != id) {
        let host = world.store.get(Kind::Server, member).map(|other| other.note("host"));
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
    let reserved = wanted.iter().map(|(class, amount)| json!([class, amount]));
    world.store.keep(Kind::Server, id, "allocations", reserved.collect::<Vec<Value>>());
    world.store.keep(Kind::Server, id, "provider", provider);
    Some((name, zone))
}

/// Places a server again for its current flavor. Returns false, and keeps the old host, if no host fits.
pub(super) fn replace(world: &mut World, before: &Object) -> bool {
    leave(world, before);
    let Some((host, zone)) = place(world, &before.id) else {
        change(world, before.note("provider"), &allocations(before), 1);
        return false;
    };
    world.store.keep(Kind::Server, &before.id, "host", host);
    world.store.keep(Kind::Server, &before.id, "zone", zone);
    true
}

/// Releases the resources of a server on its host.
pub(super) fn leave(world: &mut World, server: &Object) {
    change(world, server.note("provider"), &allocations(server), -1);
}

fn change(world: &mut World, provider: &str, amounts: &[(String, i64)], sign: i64) {
    world.store.change(Kind::Provider, provider, |provider| {
        for (class, amount) in amounts {
            let now = used(provider, class) + sign * amount;
            provider.keep(&format!("used {class}"), now);
        }
        provider.set("generation", provider.number("generation") + 1);
    });
}
