//! The verbs that change a node's provision state.

use crate::{Event, StepKind, WantedSteps};

words::words! {
    /// A verb of `PUT /v1/nodes/{node}/states/provision`, with its name there.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Verb {
        /// Check the BMC, or take the node back from `available` or from a failed state.
        Manage = "manage",
        Inspect = "inspect",
        /// Clean the machine and make the node available.
        Provide = "provide",
        /// Run the requested clean steps, then return to `manageable`.
        Clean = "clean",
        Deploy = "active",
        Rebuild = "rebuild",
        /// Take the machine out of use, clean it, and make the node available again.
        Undeploy = "deleted",
        /// Stop the work that waits for the machine.
        Abort = "abort",
        /// Take over a machine that is already in use.
        Adopt = "adopt",
        /// Run the requested service steps on a machine in use.
        Service = "service",
        /// Boot a rescue system on a machine in use.
        Rescue = "rescue",
        /// Boot the installed system again.
        Unrescue = "unrescue",
        /// Go on after a step `hold`.
        Unhold = "unhold",
    }
}

/// A verb with its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerbRequest {
    pub verb: Verb,
    /// The steps of the request and of deploy templates. Without them, the verb runs its own.
    pub steps: Option<WantedSteps>,
    /// Whether the steps run without a boot of the ramdisk.
    pub disables_ramdisk: bool,
}

impl From<Verb> for VerbRequest {
    /// A verb without arguments.
    fn from(verb: Verb) -> Self {
        VerbRequest { verb, steps: None, disables_ramdisk: false }
    }
}

impl Verb {
    /// Returns the event of the transition table that the verb causes.
    pub const fn event(self) -> Event {
        match self {
            Verb::Manage => Event::Manage,
            Verb::Inspect => Event::Inspect,
            Verb::Provide => Event::Provide,
            Verb::Clean => Event::Clean,
            Verb::Deploy => Event::Deploy,
            Verb::Rebuild => Event::Rebuild,
            Verb::Undeploy => Event::Undeploy,
            Verb::Abort => Event::Abort,
            Verb::Adopt => Event::Adopt,
            Verb::Service => Event::Service,
            Verb::Rescue => Event::Rescue,
            Verb::Unrescue => Event::Unrescue,
            Verb::Unhold => Event::Unhold,
        }
    }

    /// Returns the kind of the steps that the verb leads to.
    pub const fn step_kind(self) -> Option<StepKind> {
        match self {
            Verb::Provide | Verb::Clean | Verb::Undeploy => Some(StepKind::Clean),
            Verb::Deploy | Verb::Rebuild => Some(StepKind::Deploy),
            Verb::Service => Some(StepKind::Service),
            Verb::Manage
            | Verb::Inspect
            | Verb::Abort
            | Verb::Adopt
            | Verb::Rescue
            | Verb::Unrescue
            | Verb::Unhold => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::{AgentCommand, Driver, Node, NodeUuid, State, Task, WorkUuid, request_verb};

    #[test]
    fn the_agent_lists_the_steps_of_the_kind_that_the_verb_leads_to() {
        for (verb, provision_state) in [
            (Verb::Inspect, State::Manageable),
            (Verb::Provide, State::Manageable),
            (Verb::Clean, State::Manageable),
            (Verb::Deploy, State::Available),
            (Verb::Rebuild, State::Active),
            (Verb::Service, State::Active),
        ] {
            let node = Node::new(NodeUuid::nil(), Driver::Redfish, Timestamp::UNIX_EPOCH);
            let node = Node { provision_state, ..node };
            let asked = request_verb(&node, verb, WorkUuid::nil(), Timestamp::UNIX_EPOCH);
            let tasks = asked.unwrap().0.work.unwrap().tasks;
            let lists =
                |kind: &StepKind| tasks.contains(&Task::Agent(AgentCommand::ListSteps(*kind)));
            let all = [StepKind::Clean, StepKind::Deploy, StepKind::Service];
            assert_eq!(verb.step_kind(), all.into_iter().find(lists), "{verb:?}");
        }
        assert_eq!(Verb::Undeploy.step_kind(), Some(StepKind::Clean), "cleaning follows");
    }
}
