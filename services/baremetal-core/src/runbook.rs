//! The record of a runbook: steps that a caller runs on a node by naming the runbook.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{Content, Node, RequestedStep};

/// Steps with a name. Callers run them on the nodes for which an administrator has approved the runbook by a trait.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Runbook {
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The steps; their arguments may contain secrets.
    pub steps: Vec<RunbookStep>,
    /// Whether the steps run without a ramdisk.
    #[serde(default)]
    pub disable_ramdisk: bool,
    /// The project whose managers change and use the runbook; only operators change and use a runbook without an owner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// Whether every project sees the runbook.
    #[serde(default)]
    pub is_public: bool,
    /// The runbook may run on nodes that have any of these traits.
    #[serde(default)]
    pub traits: BTreeSet<String>,
    /// Free-form notes of the operator, ignored by the service.
    #[serde(default)]
    pub extra: Map<String, Value>,
}

/// A step of a runbook.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunbookStep {
    #[serde(flatten)]
    pub step: RequestedStep,
    /// The place among the steps, the lowest first.
    pub order: u32,
}

/// How a runbook is approved for a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunbookApproval {
    /// The name of the runbook is a trait of the node.
    ByName,
    /// A trait of the runbook is a trait of the node.
    ByTraits,
}

/// Why a runbook may not run on a node.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunbookRefused {
    #[error("the runbook {runbook} has no traits: add a trait of the node to the runbook first")]
    NoTraits { runbook: String },
    #[error(
        "the runbook {runbook} is not approved for node {node}: an administrator has to add a trait to the node, one of {traits}"
    )]
    NotApproved { runbook: String, node: String, traits: String },
}

impl Content for Runbook {
    const KIND: &'static str = "runbook";
    const SECRETS: &'static [&'static str] = &["steps"];
    const HAS_OWNER: bool = true;

    fn name(&self) -> Option<&str> {
        Some(&self.name)
    }

    fn owner(&self) -> Option<&str> {
        self.owner.as_deref()
    }

    fn is_public(&self) -> bool {
        self.is_public
    }
}

impl Runbook {
    /// Checks that the runbook is approved for `node`.
    ///
    /// # Errors
    ///
    /// Fails if the node has none of the traits that approve the runbook.
    pub fn check_approval(
        &self,
        node: &Node,
        approval: RunbookApproval,
    ) -> Result<(), RunbookRefused> {
        let traits: Vec<&str> = match approval {
            RunbookApproval::ByName => vec![&self.name],
            RunbookApproval::ByTraits => self.traits.iter().map(String::as_str).collect(),
        };
        let runbook = self.name.clone();
        if traits.is_empty() {
            return Err(RunbookRefused::NoTraits { runbook });
        }
        if traits.iter().any(|name| node.traits.contains(*name)) {
            return Ok(());
        }
        let (node, traits) = (node.label(), traits.join(", "));
        Err(RunbookRefused::NotApproved { runbook, node, traits })
    }

    /// Returns the steps in the order in which they run. Steps with the same order run in the order of the list.
    pub fn ordered_steps(mut self) -> Vec<RequestedStep> {
        self.steps.sort_by_key(|step| step.order);
        self.steps.into_iter().map(|step| step.step).collect()
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::{Driver, Interface, NodeUuid, StepName};

    fn step(name: &str, order: u32) -> RunbookStep {
        let name = StepName { interface: Interface::Deploy, step: name.to_owned() };
        RunbookStep { step: RequestedStep { name, args: Map::new(), children: None }, order }
    }

    #[test]
    fn steps_run_by_their_order_and_then_by_their_place() {
        let steps = vec![step("c", 2), step("d", 2), step("b", 1), step("a", 0)];
        let runbook = Runbook { steps, ..Runbook::default() };
        let names = runbook.ordered_steps().into_iter().map(|step| step.name.step);
        assert_eq!(names.collect::<Vec<_>>(), ["a", "b", "c", "d"]);
    }

    #[test]
    fn the_store_finds_a_runbook_by_its_name_and_its_owner() {
        let public = Runbook { name: "CUSTOM_R".to_owned(), is_public: true, ..Runbook::default() };
        assert_eq!(
            (public.name(), public.owner(), public.is_public()),
            (Some("CUSTOM_R"), None, true)
        );
        let owned = Runbook { owner: Some("p".to_owned()), is_public: false, ..public };
        assert_eq!((owned.owner(), owned.is_public()), (Some("p"), false));
    }

    #[test]
    fn a_runbook_runs_on_nodes_with_its_name_or_one_of_its_traits() {
        use RunbookApproval::{ByName, ByTraits};
        let mut node = Node::new(NodeUuid::nil(), Driver::Redfish, Timestamp::UNIX_EPOCH);
        let mut runbook = Runbook { name: "CUSTOM_R".to_owned(), ..Runbook::default() };
        let refused = |runbook: &Runbook, node: &Node, approval| {
            runbook.check_approval(node, approval).unwrap_err().to_string()
        };
        let id = node.id;
        let why = format!(
            "the runbook CUSTOM_R is not approved for node {id}: an administrator has to add a trait to the node, one of CUSTOM_R"
        );
        assert_eq!(refused(&runbook, &node, ByName), why);
        let why =
            "the runbook CUSTOM_R has no traits: add a trait of the node to the runbook first";
        assert_eq!(refused(&runbook, &node, ByTraits), why);
        runbook.traits = ["CUSTOM_A", "CUSTOM_B"].map(str::to_owned).into();
        assert!(refused(&runbook, &node, ByTraits).ends_with("one of CUSTOM_A, CUSTOM_B"));
        node.traits = ["CUSTOM_B".to_owned()].into();
        assert_eq!(runbook.check_approval(&node, ByTraits), Ok(()));
        assert!(runbook.check_approval(&node, ByName).is_err());
        node.traits = ["CUSTOM_R".to_owned()].into();
        assert_eq!(runbook.check_approval(&node, ByName), Ok(()));
        assert!(runbook.check_approval(&node, ByTraits).is_err());
    }
}
