//! Allocation candidates: the hosts that have enough free resources for a server now.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{MICROVERSION, SERVICE};
use crate::error::Result;
use crate::session::Session;

/// The resources and traits that a server needs: `VCPU`, `MEMORY_MB`, `DISK_GB`, `PCI_DEVICE`, `CUSTOM_*`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Need {
    /// The amount of each resource class.
    pub resources: BTreeMap<String, u64>,
    /// Traits that the host must have.
    pub traits: Vec<String>,
}

/// A host with enough free resources.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Candidate {
    /// The id of the resource provider, which is the hypervisor's id.
    pub provider: String,
    /// The free amount of each resource class.
    pub free: BTreeMap<String, u64>,
}

#[derive(Deserialize)]
struct Answer {
    #[serde(default)]
    allocation_requests: Vec<Allocation>,
    #[serde(default)]
    provider_summaries: BTreeMap<String, Summary>,
}

#[derive(Deserialize)]
struct Allocation {
    #[serde(default)]
    allocations: BTreeMap<String, serde::de::IgnoredAny>,
}

#[derive(Default, Deserialize)]
struct Summary {
    #[serde(default)]
    resources: BTreeMap<String, ResourceUsage>,
    #[serde(default)]
    root_provider_uuid: Option<String>,
}

#[derive(Deserialize)]
struct ResourceUsage {
    #[serde(default)]
    capacity: u64,
    #[serde(default)]
    used: u64,
}

impl Need {
    /// Makes the need of a flavor's size.
    pub fn of(vcpus: u64, ram: u64, disk: u64) -> Need {
        let needs = [("VCPU", vcpus), ("MEMORY_MB", ram), ("DISK_GB", disk)];
        // Placement refuses a query for an amount of 0.
        let needs = needs.into_iter().filter(|(_, amount)| *amount > 0);
        let resources = needs.map(|(class, amount)| (class.to_owned(), amount)).collect();
        Need { resources, traits: Vec::new() }
    }
}

impl Candidate {
    /// Returns how many servers with this need fit on the host.
    pub fn holds(&self, need: &Need) -> u64 {
        let of_each = need
            .resources
            .iter()
            .filter(|(_, amount)| **amount > 0)
            .map(|(class, amount)| self.free.get(class).copied().unwrap_or(0) / amount);
        of_each.min().unwrap_or(0)
    }
}

/// Lists the hosts that have enough for one such server, at most `limit` of them.
pub async fn list(session: &Session, need: &Need, limit: u32) -> Result<Vec<Candidate>> {
    let resources: Vec<String> =
        need.resources.iter().map(|(class, amount)| format!("{class}:{amount}")).collect();
    let mut call = session.get(SERVICE, &["allocation_candidates"]).microversion(MICROVERSION);
    call = call.query("resources", resources.join(",")).query("limit", limit.to_string());
    if !need.traits.is_empty() {
        call = call.query("required", need.traits.join(","));
    }
    Ok(candidates(call.send().await?.whole()?))
}

/// Returns one candidate for each host: Placement lists a host with nested providers (GPUs, NUMA nodes) once for each way to divide it.
fn candidates(answer: Answer) -> Vec<Candidate> {
    let root = |id: &str| {
        let summary = answer.provider_summaries.get(id);
        summary.and_then(|it| it.root_provider_uuid.clone()).unwrap_or_else(|| id.to_owned())
    };
    let mut hosts: BTreeMap<String, Candidate> = BTreeMap::new();
    for provider in answer.allocation_requests.iter().flat_map(|one| one.allocations.keys()) {
        let provider = root(provider);
        hosts.insert(provider.clone(), Candidate { provider, free: BTreeMap::new() });
    }
    for (id, summary) in &answer.provider_summaries {
        let Some(host) = hosts.get_mut(&root(id)) else { continue };
        for (class, stock) in &summary.resources {
            *host.free.entry(class.clone()).or_default() +=
                stock.capacity.saturating_sub(stock.used);
        }
    }
    hosts.into_values().collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_host_is_counted_once_with_all_that_is_in_it() {
        let answer = json!({
            "allocation_requests": [
                {"allocations": {"h": {"resources": {"VCPU": 2}}, "gpu1": {"resources": {"VGPU": 1}}}},
                {"allocations": {"h": {"resources": {"VCPU": 2}}, "gpu2": {"resources": {"VGPU": 1}}}},
            ],
            "provider_summaries": {
                "h": {"resources": {"VCPU": {"capacity": 16, "used": 5}}, "root_provider_uuid": "h"},
                "gpu1": {"resources": {"VGPU": {"capacity": 4, "used": 1}}, "root_provider_uuid": "h"},
                "gpu2": {"resources": {"VGPU": {"capacity": 4, "used": 4}}, "root_provider_uuid": "h"},
                "other": {"resources": {"VCPU": {"capacity": 9, "used": 0}}},
            },
        });
        let found = candidates(serde_json::from_value(answer).unwrap());
        let free = BTreeMap::from([("VCPU".to_owned(), 11), ("VGPU".to_owned(), 3)]);
        assert_eq!(found, [Candidate { provider: "h".to_owned(), free }]);
        assert_eq!(found[0].holds(&Need::of(2, 0, 0)), 5);
        assert_eq!(found[0].holds(&Need::of(2, 512, 0)), 0);
    }
}
