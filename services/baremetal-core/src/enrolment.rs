//! Plans the enrolment of a rack: what its manifest adds and changes, and every mistake in it.

use std::collections::{HashMap, HashSet};
use std::fmt::{self, Display};

use hardware::MacAddress;
use jiff::Timestamp;
use newtype_uuid::GenericUuid;
use rack_manifest::{MachineRequest, ManifestError, RackRequest};
use uuid::Uuid;

use crate::change::check_password_settled;
use crate::{
    Driver, Interface, MOST_PARTS, Node, NodeName, NodeUuid, Port, PortUuid, RackLocation,
    settle_password,
};

/// The planned changes of an enrolment. Nothing is written yet.
#[derive(Debug, Default)]
pub struct Enrolment {
    pub new: Vec<Node>,
    pub changed: Vec<Node>,
    pub ports: Vec<Port>,
    /// The result for each machine, in the order of the manifest.
    pub results: Vec<EnrolmentResult>,
}

/// The result of an enrolment for one machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnrolmentResult {
    pub name: String,
    pub node: NodeUuid,
    pub effect: EnrolmentEffect,
}

/// The effect of an enrolment on one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EnrolmentEffect {
    Enrolled,
    Updated,
    Unchanged,
}

/// The facts that the plan of an enrolment depends on.
#[derive(Debug)]
pub struct EnrolmentFacts {
    /// The present nodes of the rack, by name.
    pub members: HashMap<String, Node>,
    /// The nodes that have the requested port addresses already.
    pub owners: HashMap<MacAddress, NodeUuid>,
    /// The number of ports of each present node that has any.
    pub ports: HashMap<NodeUuid, usize>,
    pub now: Timestamp,
}

/// The rules of an enrolment that need keys, settings or drivers of the service, and its random ids.
pub trait EnrolmentRules {
    /// Returns a new random id.
    fn new_id(&self) -> Uuid;

    /// Replaces masked and unchanged secrets in the `driver_info` of `node` by the stored ones of `known`.
    fn restore_secrets(&self, known: Option<&Node>, node: &mut Node) -> Result<(), String>;

    /// Checks whether the BMC of `node` can be reached with its `driver_info`.
    fn check_driver_info(&self, node: &Node) -> Result<(), String>;
}

/// The mistakes that refuse a rack.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct RackMistakes {
    pub rack: String,
    pub found: Vec<ManifestError>,
}

impl Display for RackMistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RackMistakes { rack, found } = self;
        let count = found.len();
        write!(f, "rack {rack} has {count} mistakes and nothing was enrolled:")?;
        found.iter().take(100).try_for_each(|mistake| write!(f, "\n{mistake}"))
    }
}

/// Compares the rack that `asked` describes with its present nodes. A single mistake refuses the whole rack.
pub fn plan_enrolment(
    asked: &RackRequest,
    facts: &EnrolmentFacts,
    rules: &dyn EnrolmentRules,
) -> Result<Enrolment, RackMistakes> {
    let (plan, mistakes) = (Enrolment::default(), Mistakes::default());
    let mut planner = Planner { rack: &asked.name, facts, rules, plan, mistakes };
    for machine in &asked.machines {
        planner.add(machine);
    }
    match planner.mistakes.found {
        found if found.is_empty() => Ok(planner.plan),
        found => Err(RackMistakes { rack: asked.name.clone(), found }),
    }
}

/// A plan that grows machine by machine.
struct Planner<'a> {
    rack: &'a str,
    facts: &'a EnrolmentFacts,
    rules: &'a dyn EnrolmentRules,
    plan: Enrolment,
    mistakes: Mistakes,
}

impl Planner<'_> {
    fn add(&mut self, asked: &MachineRequest) {
        let known = self.facts.members.get(&asked.name);
        let Some(node) = self.desired_node(asked, known) else { return };
        self.add_ports(asked, &node);
        let effect = match known {
            None => EnrolmentEffect::Enrolled,
            Some(before) if *before == node => EnrolmentEffect::Unchanged,
            Some(before) if before.provision_state.is_busy() => {
                let state = before.provision_state;
                let problem = format!("cannot be changed while the node is {state}");
                self.mistakes.note(asked.line, "name", problem);
                return;
            }
            Some(_) => EnrolmentEffect::Updated,
        };
        let result = EnrolmentResult { name: asked.name.clone(), node: node.id, effect };
        self.plan.results.push(result);
        match effect {
            EnrolmentEffect::Enrolled => self.plan.new.push(node),
            EnrolmentEffect::Updated => {
                self.plan.changed.push(Node { updated_at: Some(self.facts.now), ..node });
            }
            EnrolmentEffect::Unchanged => {}
        }
    }

    /// Plans the ports of the machine that do not exist yet.
    fn add_ports(&mut self, asked: &MachineRequest, node: &Node) {
        let mut count = self.facts.ports.get(&node.id).copied().unwrap_or(0);
        for raw in &asked.ports {
            let parsed = raw.parse::<MacAddress>();
            let Some(mac) = self.mistakes.or_note(asked.line, "mac", parsed) else { continue };
            if !self.mistakes.macs.insert(mac) {
                let problem = format!("{mac} appears twice in this rack");
                self.mistakes.note(asked.line, "mac", problem);
            }
            match self.facts.owners.get(&mac) {
                Some(owner) if *owner != node.id => {
                    let problem = format!("{mac} is already a port of node {owner}");
                    self.mistakes.note(asked.line, "mac", problem);
                }
                Some(_) => {}
                None => {
                    count += 1;
                    let id = PortUuid::from_untyped_uuid(self.rules.new_id());
                    self.plan.ports.push(Port::new(id, node.id, mac, self.facts.now));
                }
            }
        }
        if count > MOST_PARTS {
            let problem =
                format!("the node would have {count} ports; at most {MOST_PARTS} are allowed");
            self.mistakes.note(asked.line, "mac", problem);
        }
    }

    /// Returns the node that a machine of the manifest describes; `None` if its driver is unknown.
    fn desired_node(&mut self, asked: &MachineRequest, known: Option<&Node>) -> Option<Node> {
        let mistakes = &mut self.mistakes;
        let line = asked.line;
        let name = mistakes.or_note(line, "name", asked.name.parse::<NodeName>());
        let driver = mistakes.or_note(line, "bmc.type", asked.driver.parse::<Driver>())?;
        if !mistakes.names.insert(asked.name.clone()) {
            mistakes.note(line, "name", format!("{:?} appears twice in this rack", asked.name));
        }
        if !mistakes.positions.insert(asked.position) {
            mistakes.note(line, "position", format!("position {} is used twice", asked.position));
        }
        let new = || {
            let id = NodeUuid::from_untyped_uuid(self.rules.new_id());
            Node::new(id, driver, self.facts.now)
        };
        let mut node = known.cloned().unwrap_or_else(new);
        node.name = name;
        node.driver = driver;
        node.driver_info.clone_from(&asked.driver_info);
        mistakes.or_note(line, "bmc", self.rules.restore_secrets(known, &mut node));
        if let Some(known) = known.filter(|known| known.driver_info != node.driver_info) {
            mistakes.or_note(line, "bmc", check_password_settled(known));
            settle_password(known, &mut node);
        }
        node.place = Some(RackLocation {
            rack: self.rack.to_owned(),
            position: asked.position,
            group: asked.group.clone(),
            role: asked.role.clone(),
        });
        if asked.resource_class.is_some() {
            node.resource_class.clone_from(&asked.resource_class);
        }
        // Properties found by inspection are kept unless the manifest overrides them.
        node.properties.extend(asked.properties.clone());
        mistakes.or_note(line, "boot", choose_boot(&mut node, asked.boot_interface.as_deref()));
        mistakes.or_note(line, "bmc", self.rules.check_driver_info(&node));
        Some(node)
    }
}

/// Chooses how the node boots; `None` is the default of its driver.
fn choose_boot(node: &mut Node, wanted: Option<&str>) -> Result<(), String> {
    node.interfaces.boot = None;
    let Some(wanted) = wanted else { return Ok(()) };
    let supported = node.driver.supported(Interface::Boot);
    if supported.contains(&wanted) && node.interfaces.choose(Interface::Boot, wanted) {
        return Ok(());
    }
    let wanted: String = wanted.chars().take(64).collect();
    Err(format!("{wanted:?} is not one of {}", supported.join(", ")))
}

/// The mistakes found so far, and the values used by machines further up.
#[derive(Default)]
struct Mistakes {
    found: Vec<ManifestError>,
    names: HashSet<String>,
    positions: HashSet<u32>,
    macs: HashSet<MacAddress>,
}

impl Mistakes {
    fn note(&mut self, line: u64, field: &str, problem: String) {
        self.found.push(ManifestError { line, field: field.to_owned(), problem });
    }

    /// Returns the parsed value, or notes the error as a mistake.
    fn or_note<T, E: Display>(&mut self, line: u64, field: &str, read: Result<T, E>) -> Option<T> {
        read.map_err(|why| self.note(line, field, why.to_string())).ok()
    }
}

#[cfg(test)]
mod tests;
