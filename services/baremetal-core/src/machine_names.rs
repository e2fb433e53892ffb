//! The names of machines in DNS: the recordsets that a zone should have, compared with those that it has.
//!
//! A recordset belongs to the node that its description names. Recordsets of others are never changed.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::Deserialize;

use crate::{NodeName, NodeUuid};

/// RFC 1035 §2.3.4: the longest label, and the longest name without its final dot.
const LONGEST_LABEL: usize = 63;
const LONGEST_NAME: usize = 253;

/// A zone in DNS, such as `machines.example.`: lower case, with a final dot.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct DnsZone(String);

/// The text is not the name of a zone.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{raw:?} is not the name of a DNS zone, such as machines.example")]
pub struct InvalidZone {
    /// The text, cut to 64 characters.
    pub raw: String,
}

/// A node with a name whose ports have addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedMachine {
    pub node: NodeUuid,
    pub name: NodeName,
    /// In their order.
    pub addresses: Vec<IpAddr>,
}

/// A recordset with addresses in the zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenName {
    pub id: String,
    /// With a final dot.
    pub name: String,
    pub addresses: Vec<String>,
    pub description: String,
}

/// A change of the zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NameChange {
    Add { name: String, addresses: Vec<IpAddr>, description: String },
    Replace { id: String, name: String, addresses: Vec<IpAddr> },
    Remove { id: String, name: String },
}

/// The changes of a zone, and the nodes that get no name in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamePlan {
    pub changes: Vec<NameChange>,
    /// The names of nodes, each with the reason.
    pub refused: BTreeMap<NodeName, &'static str>,
}

impl DnsZone {
    /// Returns the zone's name with its final dot.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the name of a node in the zone, with a final dot; `None` if the node's name cannot be a host name. A name that ends with the
    /// zone's name is complete.
    fn host(&self, name: &NodeName) -> Option<String> {
        let name = name.as_str().to_ascii_lowercase();
        let zone = self.0.trim_end_matches('.');
        let is_complete = name.strip_suffix(zone).is_some_and(|host| host.ends_with('.'));
        let host = if is_complete { name } else { format!("{name}.{zone}") };
        is_host_name(&host).then(|| format!("{host}."))
    }
}

impl TryFrom<String> for DnsZone {
    type Error = InvalidZone;

    fn try_from(raw: String) -> Result<Self, InvalidZone> {
        let name = raw.strip_suffix('.').unwrap_or(&raw).to_ascii_lowercase();
        match is_host_name(&name) {
            true => Ok(DnsZone(format!("{name}."))),
            false => Err(InvalidZone { raw: raw.chars().take(64).collect() }),
        }
    }
}

/// RFC 1123 §2.1: labels of letters, digits and hyphens, without a hyphen at either end.
fn is_host_name(name: &str) -> bool {
    let is_label = |label: &str| {
        (1..=LONGEST_LABEL).contains(&label.len())
            && label.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    name.len() <= LONGEST_NAME && name.split('.').all(is_label)
}

/// Compares the names that `machines` should have in the zone with the recordsets `seen` in it. `installation` tells the recordsets of this
/// service from those of another one.
///
/// A name that changes its node is removed first, because the cloud removes it in the background. The next comparison adds it.
pub fn plan_names(
    zone: &DnsZone,
    installation: &str,
    machines: &[NamedMachine],
    seen: &[SeenName],
) -> NamePlan {
    let mut plan = NamePlan::default();
    let mut wanted: BTreeMap<String, &NamedMachine> = BTreeMap::new();
    for machine in machines {
        match zone.host(&machine.name) {
            None => plan.refuse(machine, "it is not a host name"),
            Some(host) if wanted.contains_key(&host) => {
                plan.refuse(machine, "another node has this name in DNS");
            }
            Some(host) => {
                wanted.insert(host, machine);
            }
        }
    }
    let ours = format!("baremetald {installation}, node ");
    for seen in seen {
        let machine = wanted.remove(&seen.name);
        let Some(node) = seen.description.strip_prefix(&ours) else {
            if let Some(machine) = machine {
                plan.refuse(machine, "the zone has this name for something else");
            }
            continue;
        };
        let (id, name) = (seen.id.clone(), seen.name.clone());
        plan.changes.extend(match machine {
            Some(machine) if machine.node.to_string() == node => {
                let addresses = machine.addresses.clone();
                let replace = NameChange::Replace { id, name, addresses };
                (!has_addresses(seen, machine)).then_some(replace)
            }
            Some(_) | None => Some(NameChange::Remove { id, name }),
        });
    }
    plan.changes.extend(wanted.into_iter().map(|(name, machine)| NameChange::Add {
        name,
        addresses: machine.addresses.clone(),
        description: format!("{ours}{}", machine.node),
    }));
    plan
}

impl NamePlan {
    fn refuse(&mut self, machine: &NamedMachine, why: &'static str) {
        self.refused.insert(machine.name.clone(), why);
    }
}

/// Whether the recordset has the machine's addresses, in any order.
fn has_addresses(seen: &SeenName, machine: &NamedMachine) -> bool {
    let mut has = seen.addresses.clone();
    let mut wants: Vec<String> = machine.addresses.iter().map(IpAddr::to_string).collect();
    has.sort();
    wants.sort();
    has == wants
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn node(n: u8) -> NodeUuid {
        format!("00000000-0000-0000-0000-0000000000{n:02}").parse().unwrap()
    }

    fn machine(n: u8, name: &str, addresses: &[u8]) -> NamedMachine {
        let addresses = addresses.iter().map(|last| IpAddr::from([10, 0, 0, *last])).collect();
        NamedMachine { node: node(n), name: name.to_owned().try_into().unwrap(), addresses }
    }

    fn seen(description: &str, name: &str, addresses: &[&str]) -> SeenName {
        let addresses = addresses.iter().map(|&address| address.to_owned()).collect();
        let (id, name) = (format!("id of {name}"), name.to_owned());
        SeenName { id, name, addresses, description: description.to_owned() }
    }

    #[track_caller]
    fn check(machines: &[NamedMachine], seen: &[SeenName], want: Expect) {
        let zone = DnsZone::try_from("Machines.Example".to_owned()).unwrap();
        let plan = plan_names(&zone, "s1", machines, seen);
        let mut lines: Vec<String> = plan.changes.iter().map(|it| format!("{it:?}")).collect();
        lines.extend(plan.refused.iter().map(|(name, why)| format!("{}: {why}", name.as_str())));
        want.assert_eq(&lines.join("\n"));
    }

    #[test]
    fn a_zone_is_a_host_name() {
        let zone = |raw: &str| DnsZone::try_from(raw.to_owned()).ok().map(|zone| zone.0);
        assert_eq!(zone("machines.Example"), Some("machines.example.".to_owned()));
        assert_eq!(zone("rack."), Some("rack.".to_owned()));
        let long = "a".repeat(64);
        for raw in ["", ".", "a..b", "-a.b", "a-.b", "a_b", "ä.b", &long, &["a"; 128].join(".")] {
            assert_eq!(zone(raw), None, "{raw}");
        }
    }

    #[test]
    fn a_new_name_is_added_once() {
        let machines = [machine(1, "R1U7", &[20, 30]), machine(2, "b.machines.example", &[21])];
        check(
            &machines,
            &[],
            expect![[r#"
                Add { name: "b.machines.example.", addresses: [10.0.0.21], description: "baremetald s1, node 00000000-0000-0000-0000-000000000002" }
                Add { name: "r1u7.machines.example.", addresses: [10.0.0.20, 10.0.0.30], description: "baremetald s1, node 00000000-0000-0000-0000-000000000001" }"#]],
        );
        let one = format!("baremetald s1, node {}", node(1));
        let two = format!("baremetald s1, node {}", node(2));
        let there = [
            seen(&one, "r1u7.machines.example.", &["10.0.0.30", "10.0.0.20"]),
            seen(&two, "b.machines.example.", &["10.0.0.21"]),
        ];
        check(&machines, &there, expect![""]);
    }

    #[test]
    fn addresses_follow_and_names_without_a_machine_go() {
        let one = format!("baremetald s1, node {}", node(1));
        check(
            &[machine(1, "new", &[20]), machine(2, "old", &[22])],
            &[
                seen(&one, "old.machines.example.", &["10.0.0.20"]),
                seen(&one, "new.machines.example.", &["10.0.0.19"]),
                seen(&one, "gone.machines.example.", &[]),
            ],
            expect![[r#"
                Remove { id: "id of old.machines.example.", name: "old.machines.example." }
                Replace { id: "id of new.machines.example.", name: "new.machines.example.", addresses: [10.0.0.20] }
                Remove { id: "id of gone.machines.example.", name: "gone.machines.example." }"#]],
        );
    }

    #[test]
    fn recordsets_of_others_stay_and_their_names_are_refused() {
        let other = format!("baremetald s2, node {}", node(1));
        check(
            &[
                machine(1, "a", &[20]),
                machine(2, "B", &[21]),
                machine(3, "b", &[22]),
                machine(4, "c_d", &[23]),
                machine(5, "xmachines.example", &[24]),
            ],
            &[
                seen(&other, "a.machines.example.", &["10.0.0.99"]),
                seen("", "www.machines.example.", &["10.0.0.98"]),
            ],
            expect![[r#"
                Add { name: "b.machines.example.", addresses: [10.0.0.21], description: "baremetald s1, node 00000000-0000-0000-0000-000000000002" }
                Add { name: "xmachines.example.machines.example.", addresses: [10.0.0.24], description: "baremetald s1, node 00000000-0000-0000-0000-000000000005" }
                a: the zone has this name for something else
                b: another node has this name in DNS
                c_d: it is not a host name"#]],
        );
    }
}
