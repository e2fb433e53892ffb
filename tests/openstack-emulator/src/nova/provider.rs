//! The resources of hosts, and their use by servers.

use serde_json::json;

use crate::object::{Kind, Object, ReadFields};
use crate::settings::Hypervisor;
use crate::world::World;

/// The overcommit ratio of processors.
const OVERCOMMIT: i64 = 4;

/// Creates the resource provider of a host of the settings, and returns its id.
pub(super) fn plant(world: &mut World, host: &Hypervisor) -> String {
    let mut provider = world.object("", json!({"name": host.name, "generation": 1}));
    provider.keep("VCPU", host.vcpus);
    provider.keep("MEMORY_MB", host.memory_mb);
    provider.keep("DISK_GB", host.disk_gb);
    provider.keep("PGPU", host.gpus);
    let id = provider.id.clone();
    world.store.insert(Kind::Provider, provider);
    id
}

/// The amount of a resource class, without overcommit.
pub(crate) fn total(provider: &Object, class: &str) -> i64 {
    provider.hidden.number_of(class).unwrap_or_default()
}

/// The capacity of a provider for a resource class, with overcommit.
pub(crate) fn capacity(provider: &Object, class: &str) -> i64 {
    total(provider, class) * if class == "VCPU" { OVERCOMMIT } else { 1 }
}

/// The used amount of a resource class.
pub(crate) fn used(provider: &Object, class: &str) -> i64 {
    provider.hidden.number_of(&format!("used {class}")).unwrap_or_default()
}

pub(super) fn resources(flavor: &Object) -> Vec<(String, i64)> {
    let usual = [("VCPU", "vcpus"), ("MEMORY_MB", "ram"), ("DISK_GB", "disk")];
    let usual = usual.map(|(class, field)| (class.to_owned(), flavor.number(field)));
    let mut all = Vec::from(usual);
    for (key, value) in flavor.hidden.object("extra_specs") {
        let amount = value.as_str().and_then(|text| text.parse().ok());
        if let (Some(class), Some(amount)) = (key.strip_prefix("resources:"), amount) {
            all.retain(|(known, _)| known != class);
            all.push((class.to_owned(), amount));
        }
    }
    all.retain(|(_, amount)| *amount > 0);
    all
}

/// The resources of a server on its host.
pub(crate) fn allocations(server: &Object) -> Vec<(String, i64)> {
    let all = server.hidden.list("allocations").iter();
    all.filter_map(|one| Some((one[0].as_str()?.to_owned(), one[1].as_i64()?))).collect()
}
