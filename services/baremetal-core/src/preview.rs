//! The plan of a request before it runs.

use jiff::Timestamp;

use crate::{
    AgentCommand, IllegalEvent, ListedSteps, Node, OfferedStep, RequestRefused, StepKind,
    StepPriorities, StepRefused, Task, Verb, VerbRequest, Work, WorkUuid, finish_work,
    request_verb, start_next_task,
};

/// The tasks that a request leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preview {
    /// The tasks in their order, also those of the cleaning that follows undeployment.
    pub tasks: Vec<Task>,
    /// The steps that the node offers for this work, or `None` if the work runs no steps.
    pub offered: Option<Vec<OfferedStep>>,
    /// Whether the steps of the agent are unknown, because it has not listed them.
    pub lacks_list: bool,
    /// Why the steps cannot run. The tasks end where the work would fail.
    pub problem: Option<StepRefused>,
}

/// Why there is no plan of a request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PreviewRefused {
    #[error(transparent)]
    Request(#[from] RequestRefused),
    /// The table of provision states does not allow the work, which is a bug.
    #[error(transparent)]
    Illegal(#[from] IllegalEvent),
}

/// Returns the tasks that `request` would lead `node` through.
///
/// `listed` contains the steps that the agent listed last. Without a list of the right kind the tasks contain no steps, because nobody knows
/// yet which steps the agent offers.
///
/// # Errors
///
/// Fails if the node refuses the request.
pub fn preview(
    node: &Node,
    request: VerbRequest,
    listed: Option<&ListedSteps>,
    priorities: &StepPriorities,
    now: Timestamp,
) -> Result<Preview, PreviewRefused> {
    let (mut node, _) = request_verb(node, request, WorkUuid::nil(), now)?;
    let mut preview =
        Preview { tasks: Vec::new(), offered: None, lacks_list: false, problem: None };
    while let Some(work) = &node.work {
        let Some(task) = work.task().cloned() else {
            (node, _) = finish_work(&node, WorkUuid::nil(), now)?;
            continue;
        };
        if let Some(kind) = planned_steps(work, &task) {
            let has_no_agent = task == Task::PlanSteps;
            let listed = listed.filter(|list| list.kind == kind).map(|list| &*list.steps);
            let of_agent = if has_no_agent { Some(&[][..]) } else { listed };
            let offered = node.offered_steps(kind, of_agent.unwrap_or_default(), priorities);
            match of_agent.map(|_| node.with_steps(&offered)) {
                Some(Ok(planned)) => node = planned,
                Some(Err(refused)) => preview.problem = Some(refused),
                None => {}
            }
            preview.lacks_list = of_agent.is_none();
            preview.offered = Some(offered);
        }
        if task == Task::Hold {
            (node, _) = request_verb(&node, Verb::Unhold, WorkUuid::nil(), now)?;
        }
        preview.tasks.push(task);
        if preview.problem.is_some() {
            break;
        }
        (node, _) = start_next_task(&node, now)?;
    }
    Ok(preview)
}

fn planned_steps(work: &Work, task: &Task) -> Option<StepKind> {
    match task {
        Task::Agent(AgentCommand::ListSteps(kind)) => Some(*kind),
        Task::PlanSteps => Some(work.steps.kind()),
        Task::TryBmc
        | Task::AskBmcForInventory
        | Task::Power(_)
        | Task::SetBoot(_)
        | Task::ConfirmBoot(_)
        | Task::BootRamdisk
        | Task::BootDisk
        | Task::BootOwnImage
        | Task::AwaitInventory
        | Task::AwaitAgent
        | Task::Agent(
            AgentCommand::WriteImage
            | AgentCommand::ListPartitions
            | AgentCommand::SetNextBoot
            | AgentCommand::Sync
            | AgentCommand::FinalizeRescue
            | AgentCommand::PowerOff,
        )
        | Task::Step(_)
        | Task::Wait { .. }
        | Task::ReadBios
        | Task::BindVifs
        | Task::DetachVifs
        | Task::ReleaseVifs
        | Task::Connect(_)
        | Task::Disconnect
        | Task::ConfirmBios { .. }
        | Task::UpdateFirmware(_)
        | Task::ReadFirmware { .. }
        | Task::ChangeRaid(_)
        | Task::ReadRaid { .. }
        | Task::StepOnChildren(_)
        | Task::Hold => None,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::Map;

    use super::*;
    use crate::{
        ChildNodes, DeployStep, Driver, Interface, NodeUuid, RequestedStep, State, StepName,
        StepRunner, WantedSteps,
    };

    fn node(driver: Driver, state: State) -> Node {
        let mut node = Node::new(NodeUuid::nil(), driver, Timestamp::UNIX_EPOCH);
        node.provision_state = state;
        node
    }

    const VERBS: [Verb; 11] = [
        Verb::Manage,
        Verb::Inspect,
        Verb::Provide,
        Verb::Clean,
        Verb::Deploy,
        Verb::Rebuild,
        Verb::Undeploy,
        Verb::Adopt,
        Verb::Service,
        Verb::Rescue,
        Verb::Unrescue,
    ];

    fn name(step: &str) -> StepName {
        StepName { interface: Interface::Deploy, step: step.to_owned() }
    }

    fn listed() -> Vec<OfferedStep> {
        let step = |step, priority, reboots| OfferedStep {
            runner: StepRunner::Agent,
            name: name(step),
            priority,
            args: BTreeMap::new(),
            reboots,
            needs_ramdisk: true,
        };
        vec![
            step("erase_devices_metadata", 99, false),
            step("erase_devices", 0, false),
            step("update", 0, true),
        ]
    }

    fn plan(
        node: &Node,
        request: impl Into<VerbRequest>,
        listed: Option<&ListedSteps>,
    ) -> Result<Preview, PreviewRefused> {
        let (priorities, now) = (StepPriorities::default(), Timestamp::UNIX_EPOCH);
        preview(node, request.into(), listed, &priorities, now)
    }

    fn list(kind: StepKind) -> ListedSteps {
        ListedSteps { kind, listed_at: Timestamp::UNIX_EPOCH, steps: listed() }
    }

    /// The words of all tasks.
    fn words(node: &Node, request: impl Into<VerbRequest>) -> Vec<String> {
        let preview = plan(node, request, Some(&list(StepKind::Clean))).unwrap();
        preview.tasks.iter().map(|task| task.describe().into_owned()).collect()
    }

    #[test]
    fn the_plan_of_an_undeployment_includes_the_cleaning() {
        let mut used = node(Driver::Redfish, State::Active);
        used.lessee = Some("lab".to_owned());
        let want = [
            "switching the machine off",
            "switching the machine off",
            "making the ramdisk the next boot",
            "switching the machine on",
            "waiting for the agent",
            "listing the clean steps",
            "running the clean step deploy.erase_devices_metadata",
            "running the clean step deploy.erase_devices",
            "flushing caches to disk",
            "switching the machine off",
            "making the disk the next boot",
        ];
        assert_eq!(words(&used, Verb::Undeploy), want);
    }

    #[test]
    fn a_requested_step_that_restarts_the_machine_boots_the_ramdisk_again() {
        let step = RequestedStep { name: name("update"), args: Map::new(), children: None };
        let hold = RequestedStep { name: name("hold"), args: Map::new(), children: None };
        let request = VerbRequest {
            verb: Verb::Clean,
            steps: Some(WantedSteps::Requested(vec![step, hold])),
            disables_ramdisk: false,
        };
        let words = words(&node(Driver::Redfish, State::Manageable), request);
        let want = [
            "running the clean step deploy.update",
            "switching the machine off",
            "making the ramdisk the next boot",
            "switching the machine on",
            "waiting for the agent",
            "holding",
            "flushing caches to disk",
        ];
        assert_eq!(words[5..12], want);
    }

    #[test]
    fn the_plan_tells_which_steps_run_on_child_nodes() {
        let request = |step: &str| {
            let name = StepName { interface: Interface::Power, step: step.to_owned() };
            let children = Some(ChildNodes::All);
            let steps = vec![RequestedStep { name, args: Map::new(), children }];
            let steps = Some(WantedSteps::Service(steps));
            VerbRequest { verb: Verb::Service, steps, disables_ramdisk: true }
        };
        let stays_on = Node { disable_power_off: true, ..node(Driver::Redfish, State::Active) };
        let want =
            ["planning the steps", "running the service step power.power_off on child nodes"];
        assert_eq!(words(&stays_on, request("power_off")), want);
        let refused = plan(&stays_on, request("hold"), None).unwrap();
        let name = StepName { interface: Interface::Power, step: "hold".to_owned() };
        assert_eq!(refused.problem, Some(StepRefused::NotOnChildren { name }));
        assert_eq!(refused.tasks, [Task::PlanSteps]);
    }

    #[test]
    fn a_plan_ends_at_the_step_that_is_not_offered() {
        let step = RequestedStep { name: name("burn"), args: Map::new(), children: None };
        let wanted = DeployStep { step, priority: 90 };
        let request = VerbRequest {
            verb: Verb::Deploy,
            steps: Some(WantedSteps::Deployment(vec![wanted])),
            disables_ramdisk: false,
        };
        let node = node(Driver::Ipmi, State::Available);
        let refused = plan(&node, request.clone(), Some(&list(StepKind::Deploy))).unwrap();
        assert_eq!(refused.problem, Some(StepRefused::Unknown { name: name("burn") }));
        let listing = Task::Agent(AgentCommand::ListSteps(StepKind::Deploy));
        assert_eq!(refused.tasks.last(), Some(&listing));
        assert_eq!((refused.offered, refused.lacks_list), (Some(listed()), false));
        // Nobody knows yet whether the agent offers the step.
        for unknown in [None, Some(&list(StepKind::Clean))] {
            let unknown = plan(&node, request.clone(), unknown).unwrap();
            assert_eq!((unknown.problem, unknown.offered), (None, Some(Vec::new())));
            assert!(unknown.lacks_list);
            assert_eq!(unknown.tasks.last(), Some(&Task::Power(hardware::PowerState::On)));
        }
    }

    #[test]
    fn a_step_that_powers_off_a_node_that_must_stay_on_is_the_problem_of_its_plan() {
        let name = StepName { interface: Interface::Power, step: "power_off".to_owned() };
        let step = RequestedStep { name, args: Map::new(), children: None };
        let request = VerbRequest {
            verb: Verb::Clean,
            steps: Some(WantedSteps::Requested(vec![step])),
            disables_ramdisk: true,
        };
        let node = node(Driver::FakeHardware, State::Manageable);
        let node = Node { disable_power_off: true, ..node };
        let want = StepRefused::PowerOffDisabled { node: node.label() };
        assert_eq!(plan(&node, request, None).unwrap().problem, Some(want));
    }

    #[test]
    fn a_node_refuses_the_plan_of_a_request_that_it_refuses() {
        let enrolled = node(Driver::Redfish, State::Enroll);
        let refused = plan(&enrolled, Verb::Deploy, None);
        assert!(matches!(refused, Err(PreviewRefused::Request(RequestRefused::State { .. }))));
    }

    #[test]
    fn every_verb_has_a_plan_in_every_state_that_accepts_it() {
        let mut plans = 0;
        for driver in Driver::ALL {
            for state in State::ALL.into_iter().filter(|state| !state.is_busy()) {
                for verb in VERBS {
                    let node = node(driver, state);
                    let list = verb.step_kind().map(list);
                    match plan(&node, verb, list.as_ref()) {
                        Ok(plan) => {
                            let leads_on = state.on(verb.event()).unwrap().is_busy();
                            assert!(plan.problem.is_none() && (leads_on || plan.tasks.is_empty()));
                            plans += 1;
                        }
                        Err(why) => assert!(matches!(why, PreviewRefused::Request(_)), "{why:?}"),
                    }
                }
            }
        }
        assert!(plans > 60, "{plans}");
    }

    #[test]
    fn an_administrator_changes_the_priorities_of_steps() {
        let priorities = StepPriorities {
            clean: [(name("erase_devices_metadata"), 0), (name("update"), 20)].into(),
            deploy: [(name("update"), 7)].into(),
        };
        let node = node(Driver::Ipmi, State::Manageable);
        let priorities = |kind| {
            let offered = node.offered_steps(kind, &listed(), &priorities);
            offered.iter().map(|step| step.priority).collect::<Vec<_>>()
        };
        assert_eq!(priorities(StepKind::Clean), [0, 0, 20]);
        assert_eq!(priorities(StepKind::Deploy), [99, 0, 7]);
        assert_eq!(priorities(StepKind::Service), [99, 0, 0]);
    }
}
