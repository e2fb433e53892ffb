//! How rules read and change the fields of nodes and ports. A rule sets no field that a request of an administrator cannot set.

use serde::Serialize;
use serde_json::{Map, Value};

use super::problem::RuleProblem;
use super::{limits, path};
use crate::{Attribute, Attributes, Node, Port};

/// A record whose fields rules read and change.
pub(super) trait RuleRecord: Attributes {
    /// Refuses a change of a field that only a request can make.
    fn check(&self, field: &str) -> Result<(), RuleProblem>;

    /// Returns the value of the field of this name.
    fn read(&self, name: &str) -> Option<Value> {
        let found = Self::ATTRIBUTES.iter().find(|field| field.name == name);
        found.map(|field| field.read(self))
    }

    /// Changes the field that `path` names, in whole or in part.
    fn change(
        &mut self,
        path: &str,
        edit: impl FnOnce(&mut Map<String, Value>, &[&str]) -> Result<(), RuleProblem>,
    ) -> Result<(), RuleProblem> {
        let parts = path::attribute_path(path)?;
        let is_named = |field: &&Attribute<Self>| parts.first() == Some(&field.name);
        let found = Self::ATTRIBUTES.iter().find(is_named).filter(|field| field.is_settable());
        let Some(field) = found else {
            let name: String = parts.first().unwrap_or(&"").chars().take(64).collect();
            return Err(RuleProblem::new(format!("{name}: a rule cannot set this field")));
        };
        let mut document = Map::from_iter([(field.name.to_owned(), field.read(self))]);
        edit(&mut document, &parts)?;
        let after = document.remove(field.name).unwrap_or_default();
        check_size(field.name, &after, limits::FIELD)?;
        self.check(field.name)?;
        let stored = field.store(self, after);
        stored.map_err(|why| RuleProblem::new(format!("{}: {why}", field.name)))
    }
}

impl RuleRecord for Node {
    fn check(&self, _: &str) -> Result<(), RuleProblem> {
        Ok(())
    }
}

impl RuleRecord for Port {
    /// Refuses a change that the group of the port would have to follow.
    fn check(&self, field: &str) -> Result<(), RuleProblem> {
        match self.portgroup {
            Some(group) if ["pxe_enabled", "physical_network"].contains(&field) => {
                let problem = format!("{field}: the port is in the port group {group}");
                Err(RuleProblem::new(problem))
            }
            Some(_) | None => Ok(()),
        }
    }
}

/// Refuses a field that has become larger than `most` bytes.
pub(super) fn check_size(
    field: &str,
    value: &impl Serialize,
    most: usize,
) -> Result<(), RuleProblem> {
    match json_size(value) <= most {
        true => Ok(()),
        false => Err(RuleProblem::new(format!("{field}: is larger than {most} bytes"))),
    }
}

pub(super) fn json_size(value: &impl Serialize) -> usize {
    serde_json::to_vec(value).map_or(usize::MAX, |text| text.len())
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use uuid::Uuid;

    use super::*;
    use crate::{NodeUuid, PortUuid};

    #[test]
    fn a_port_of_a_group_keeps_only_what_the_group_shares() {
        let address = "52:54:00:00:00:01".parse().unwrap();
        let mut port = Port::new(PortUuid::nil(), NodeUuid::nil(), address, Timestamp::UNIX_EPOCH);
        port.check("pxe_enabled").unwrap();
        port.portgroup = Some(Uuid::nil());
        port.check("extra").unwrap();
        for field in ["pxe_enabled", "physical_network"] {
            port.check(field).unwrap_err();
        }
    }
}
