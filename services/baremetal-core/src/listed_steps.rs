//! The steps that a node offers: those that its agent listed, and those of the conductor.

use std::collections::BTreeMap;

use hardware::PowerState;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::conductor_step::conductor_steps;
use crate::{Interface, Node, OfferedStep, RaidInterface, StepKind, StepName, StepRefused, Task};

/// The steps of one kind that the agent of a node listed last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListedSteps {
    pub kind: StepKind,
    pub listed_at: Timestamp,
    pub steps: Vec<OfferedStep>,
}

/// The priorities that an administrator gives to steps, in place of those that the steps are offered with. Priority 0 takes a step out of
/// automated cleaning or deployment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StepPriorities {
    pub clean: BTreeMap<StepName, u32>,
    pub deploy: BTreeMap<StepName, u32>,
}

impl StepPriorities {
    /// Returns the priority that the administrator gives to a step.
    fn of(&self, kind: StepKind, name: &StepName) -> Option<u32> {
        match kind {
            StepKind::Clean => self.clean.get(name).copied(),
            StepKind::Deploy => self.deploy.get(name).copied(),
            StepKind::Service => None,
        }
    }
}

impl Node {
    /// Returns the steps that the node offers, given those that its agent listed.
    pub fn offered_steps(
        &self,
        kind: StepKind,
        listed: &[OfferedStep],
        priorities: &StepPriorities,
    ) -> Vec<OfferedStep> {
        // ironic-python-agent lists its RAID steps on every machine; only the interface `agent` runs them.
        let is_run = |step: &&OfferedStep| {
            step.name.interface != Interface::Raid || self.raid_interface() == RaidInterface::Agent
        };
        let listed = listed.iter().filter(is_run).cloned();
        let mut offered: Vec<OfferedStep> =
            conductor_steps(self, kind).into_iter().chain(listed).collect();
        for step in &mut offered {
            step.priority = priorities.of(kind, &step.name).unwrap_or(step.priority);
        }
        offered
    }

    /// Returns the node with the steps of its work among the tasks of the work.
    pub(crate) fn with_steps(&self, offered: &[OfferedStep]) -> Result<Node, StepRefused> {
        let mut planned = self.clone();
        if let Some(work) = &mut planned.work {
            let steps = work.steps.plan(offered, !work.disables_ramdisk)?;
            work.add_steps(steps);
            if self.disable_power_off && work.tasks.contains(&Task::Power(PowerState::Off)) {
                return Err(StepRefused::PowerOffDisabled { node: self.label() });
            }
        }
        Ok(planned)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Driver, NodeUuid, StepRunner};

    #[test]
    fn only_the_raid_interface_of_the_agent_runs_the_raid_steps_of_the_agent() {
        let name = StepName { interface: Interface::Raid, step: "create_configuration".to_owned() };
        let listed = OfferedStep {
            runner: StepRunner::Agent,
            name,
            priority: 0,
            args: BTreeMap::new(),
            reboots: false,
            needs_ramdisk: true,
        };
        let mut node = Node::new(NodeUuid::nil(), Driver::Ipmi, Timestamp::UNIX_EPOCH);
        let steps = std::slice::from_ref(&listed);
        let is_offered = |node: &Node| {
            let priorities = StepPriorities::default();
            node.offered_steps(StepKind::Clean, steps, &priorities).contains(&listed)
        };
        assert!(!is_offered(&node));
        node.interfaces.raid = Some(RaidInterface::Agent);
        assert!(is_offered(&node));
    }
}
