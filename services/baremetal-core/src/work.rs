//! The work of a node: the list of tasks that the conductor carries out, and how many of them are done.

use std::borrow::Cow;

use hardware::{BootSetting, PowerState};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    ChildStep, RaidChange, RaidStage, ServiceNetwork, Step, StepKind, StepRunner, UpdateInProgress,
    UpdateStage, VolumeChange, WantedSteps, WorkUuid,
};

/// Work in progress on a node. The record holds everything that the conductor needs to continue after a crash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Work {
    /// The id of the work. The boot's token and the URL of the boot script derive from this id, and logs carry it.
    pub id: WorkUuid,
    /// The tasks in the order in which they are done. The agent's steps are added once the agent has listed them.
    pub tasks: Vec<Task>,
    /// The number of tasks that are done, which is also the index of the current task.
    pub cursor: usize,
    pub started_at: Timestamp,
    /// When the current task began. The task's deadline counts from here.
    pub task_started_at: Timestamp,
    /// The intent of an agent's command: how many commands the agent had received when the intent was recorded.
    ///
    /// If the agent lists one more command after a crash, the command was sent and must not be sent again.
    pub intent: Option<usize>,
    /// When the BMC was last asked for the change of power of the current task; recorded before the BMC is asked.
    pub asked_at: Option<Timestamp>,
    /// Whether the verb `clean` started this cleaning, so that it leads back to `manageable`.
    pub by_hand: bool,
    /// The steps that the work runs, among those that the agent will offer. Work without steps ignores them.
    #[serde(default)]
    pub steps: WantedSteps,
    /// Whether the steps run without a boot of the ramdisk.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub disables_ramdisk: bool,
    /// When the BMC was last asked to switch the machine on, once the machine is on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub switched_on_at: Option<Timestamp>,
    /// How many times the machine booted the ramdisk again, because the service or its database was away during the boot.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub repeated_boots: u32,
}

/// One task of a node's work. Every task may be done twice without harm.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Task {
    /// Check that the BMC answers and accepts the credentials.
    TryBmc,
    /// Read the inventory that the BMC knows.
    AskBmcForInventory,
    /// Read the settings and the versions of the firmware and store them. A BMC that cannot show them fails nothing.
    ReadBios,
    /// Switch the machine on or off, and wait until the BMC reports that state.
    Power(PowerState),
    /// Bind the ports of the node's VIFs in Neutron to the machine.
    BindVifs,
    /// Release the ports of the node's VIFs in Neutron, and detach the VIFs.
    DetachVifs,
    /// Release the ports of the node's VIFs in Neutron. The VIFs stay attached.
    ReleaseVifs,
    /// Connect the machine to a network of the service by ports in Neutron.
    Connect(ServiceNetwork),
    /// Delete the ports in Neutron that connect the machine to networks of the service.
    Disconnect,
    /// Ask the BMC for a boot setting that it does not report already. The firmware applies the setting when the machine starts, at the
    /// latest.
    SetBoot(BootSetting),
    /// Wait until the BMC reports the boot setting, after the machine was started.
    ConfirmBoot(BootSetting),
    /// Make the ramdisk the machine's next boot.
    BootRamdisk,
    /// Make the disk the machine's boot device, and eject the ramdisk's virtual medium.
    BootDisk,
    /// Make the ISO image or the kernel of the machine's user the boot of all its starts.
    BootOwnImage,
    AwaitInventory,
    AwaitAgent,
    /// Give the agent a command, and wait until the command ends.
    Agent(AgentCommand),
    /// Plan the steps of a machine that boots no ramdisk, so that no agent offers any.
    PlanSteps,
    /// Run a step. If the agent runs it, wait until the step ends.
    Step(Step),
    /// Run a step on child nodes, and wait until it has ended on each of them.
    StepOnChildren(Box<ChildStep>),
    /// Wait until the firmware has the BIOS settings that `step` requested at `started_at`, before the machine was restarted.
    ConfirmBios {
        step: Step,
        started_at: Timestamp,
    },
    /// Update the firmware of one component.
    UpdateFirmware(Box<UpdateInProgress>),
    /// Read the versions of the firmware once `step`, begun at `started_at`, has updated them.
    ReadFirmware {
        step: Step,
        started_at: Timestamp,
    },
    /// Make or delete a RAID volume by the BMC.
    ChangeRaid(Box<RaidChange>),
    /// Read the RAID volumes once `step`, begun at `started_at`, has changed them.
    ReadRaid {
        step: Step,
        started_at: Timestamp,
        /// The path of the volume on which the operating system is to be installed, if the step made one.
        root: Option<String>,
    },
    Wait {
        seconds: u32,
    },
    /// Stand still until the verb `unhold`.
    Hold,
}

/// A command for the agent in the ramdisk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentCommand {
    /// List the steps of the machine.
    ListSteps(StepKind),
    /// Write the image to disk, and the config drive if the node has one.
    WriteImage,
    /// Ask for the ids of the partitions that were made for a partition image.
    ListPartitions,
    /// Make the written disk the next boot of the firmware.
    SetNextBoot,
    Sync,
    /// Set the password of the rescue system, after which the agent ends and the machine stays on.
    FinalizeRescue,
    /// Shut the machine down. The BMC switches it off if it is still on after a while.
    PowerOff,
}

#[derive(PartialEq, Eq)]
enum WaitsFor {
    Agent,
    MachineOrTime,
}

impl Task {
    /// The tasks that boot the ramdisk and then wait with the task `waiting`.
    pub(crate) const fn boot_and(waiting: Task) -> [Task; 4] {
        [Task::Power(PowerState::Off), Task::BootRamdisk, Task::Power(PowerState::On), waiting]
    }

    /// Returns whether the task waits for the machine, its agent or a time. The node's state is a `wait` state meanwhile.
    pub fn is_waiting(&self) -> bool {
        self.waits_for().is_some()
    }

    fn waits_for(&self) -> Option<WaitsFor> {
        match self {
            Task::AwaitInventory | Task::AwaitAgent | Task::Agent(_) => Some(WaitsFor::Agent),
            Task::Step(step) => (step.runner == StepRunner::Agent).then_some(WaitsFor::Agent),
            Task::ConfirmBios { .. }
            | Task::UpdateFirmware(_)
            | Task::ChangeRaid(_)
            | Task::Wait { .. } => Some(WaitsFor::MachineOrTime),
            Task::TryBmc
            | Task::ReadBios
            | Task::BindVifs
            | Task::DetachVifs
            | Task::ReleaseVifs
            | Task::Connect(_)
            | Task::Disconnect
            | Task::AskBmcForInventory
            | Task::Power(_)
            | Task::SetBoot(_)
            | Task::ConfirmBoot(_)
            | Task::BootRamdisk
            | Task::BootDisk
            | Task::BootOwnImage
            | Task::PlanSteps
            | Task::ReadFirmware { .. }
            | Task::ReadRaid { .. }
            | Task::StepOnChildren(_)
            | Task::Hold => None,
        }
    }

    /// Returns the step that the task runs or confirms.
    pub fn step(&self) -> Option<&Step> {
        match self {
            Task::Step(step)
            | Task::ConfirmBios { step, .. }
            | Task::ReadFirmware { step, .. }
            | Task::ReadRaid { step, .. } => Some(step),
            Task::UpdateFirmware(update) => Some(&update.step),
            Task::ChangeRaid(change) => Some(&change.step),
            Task::StepOnChildren(run) => Some(&run.step),
            Task::TryBmc
            | Task::ReadBios
            | Task::BindVifs
            | Task::DetachVifs
            | Task::ReleaseVifs
            | Task::Connect(_)
            | Task::Disconnect
            | Task::AskBmcForInventory
            | Task::Power(_)
            | Task::SetBoot(_)
            | Task::ConfirmBoot(_)
            | Task::BootRamdisk
            | Task::BootDisk
            | Task::BootOwnImage
            | Task::AwaitInventory
            | Task::AwaitAgent
            | Task::Agent(_)
            | Task::PlanSteps
            | Task::Wait { .. }
            | Task::Hold => None,
        }
    }

    /// Returns what is being done, as words for people: `writing the image`.
    pub fn describe(&self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Task::TryBmc => "verifying the BMC",
            Task::AskBmcForInventory => "reading the inventory of the BMC",
            Task::BindVifs => "binding the VIFs",
            Task::DetachVifs => "detaching the VIFs",
            Task::ReleaseVifs => "releasing the VIFs",
            Task::Connect(network) => {
                return format!("connecting the machine to the {} network", network.as_str())
                    .into();
            }
            Task::Disconnect => "disconnecting the machine from the service's network",
            Task::ReadBios => "reading the BIOS settings",
            Task::ConfirmBios { .. } => "waiting for the BIOS settings to take effect",
            Task::Power(PowerState::On) => "switching the machine on",
            Task::Power(PowerState::Off) => "switching the machine off",
            Task::SetBoot(wanted) => return format!("changing the {wanted}").into(),
            Task::ConfirmBoot(wanted) => {
                return format!("waiting for the change of the {wanted}").into();
            }
            Task::BootRamdisk => "making the ramdisk the next boot",
            Task::BootDisk => "making the disk the next boot",
            Task::BootOwnImage => "making the user's image the next boot",
            Task::AwaitInventory => "waiting for the inventory",
            Task::AwaitAgent => "waiting for the agent",
            Task::Agent(AgentCommand::ListSteps(StepKind::Clean)) => "listing the clean steps",
            Task::Agent(AgentCommand::ListSteps(StepKind::Deploy)) => "listing the deploy steps",
            Task::Agent(AgentCommand::ListSteps(StepKind::Service)) => "listing the service steps",
            Task::Agent(AgentCommand::WriteImage) => "writing the image",
            Task::Agent(AgentCommand::ListPartitions) => "asking for the ids of the partitions",
            Task::Agent(AgentCommand::SetNextBoot) => "setting the firmware's next boot",
            Task::Agent(AgentCommand::Sync) => "flushing caches to disk",
            Task::Agent(AgentCommand::FinalizeRescue) => "setting the rescue password",
            Task::Agent(AgentCommand::PowerOff) => "shutting the machine down",
            Task::PlanSteps => "planning the steps",
            Task::UpdateFirmware(update) => {
                let component = update.wanted().map(|wanted| wanted.component);
                let component = component.unwrap_or_else(|why| why.field);
                return format!("updating the firmware of {component}").into();
            }
            Task::ReadFirmware { .. } => "reading the versions of the firmware",
            Task::ChangeRaid(change) => return change.change.describe().into(),
            Task::ReadRaid { .. } => "reading the RAID volumes",
            Task::Wait { seconds } => return format!("waiting for {seconds} s").into(),
            Task::Hold => "holding",
            Task::Step(step) => {
                return format!("running the {} step {}", step.kind.as_str(), step.name).into();
            }
            Task::StepOnChildren(run) => {
                let (kind, name) = (run.step.kind.as_str(), &run.step.name);
                return format!("running the {kind} step {name} on child nodes").into();
            }
        })
    }
}

impl Step {
    /// Returns whether the step runs before `task`. The image is written at priority 80 and made bootable at 60, as in Ironic.
    fn precedes(&self, task: &Task) -> bool {
        match (self.kind, task) {
            (StepKind::Deploy, Task::Agent(AgentCommand::WriteImage)) => self.priority > 80,
            (
                StepKind::Deploy,
                Task::Agent(AgentCommand::ListPartitions | AgentCommand::SetNextBoot),
            ) => self.priority > 60,
            (StepKind::Deploy | StepKind::Clean | StepKind::Service, _) => true,
        }
    }
}

impl Work {
    /// Makes work that begins at `now` with the first of `tasks`.
    pub fn new(id: WorkUuid, tasks: Vec<Task>, now: Timestamp) -> Self {
        Work {
            id,
            tasks,
            cursor: 0,
            started_at: now,
            task_started_at: now,
            intent: None,
            asked_at: None,
            by_hand: false,
            steps: WantedSteps::default(),
            disables_ramdisk: false,
            switched_on_at: None,
            repeated_boots: 0,
        }
    }

    /// Returns the current task, or `None` when all tasks are done.
    pub fn task(&self) -> Option<&Task> {
        self.tasks.get(self.cursor)
    }

    /// Like [`Work::task`], to change it.
    pub(crate) fn task_mut(&mut self) -> Option<&mut Task> {
        self.tasks.get_mut(self.cursor)
    }

    /// Returns whether the work boots the ramdisk.
    pub fn boots_ramdisk(&self) -> bool {
        self.tasks.contains(&Task::BootRamdisk)
    }

    /// Returns whether the current task or a later one needs the agent.
    pub fn needs_agent(&self) -> bool {
        let rest = self.tasks.get(self.cursor..).unwrap_or_default();
        rest.iter().any(|task| task.waits_for() == Some(WaitsFor::Agent))
    }

    /// Returns whether a network boot of the machine has to get the ramdisk now: from the task that asks for this boot until the agent has
    /// reported.
    pub fn awaits_boot(&self) -> bool {
        let Some(asked) = self.last_boot() else { return false };
        let awaits = |task: &Task| matches!(task, Task::AwaitAgent | Task::AwaitInventory);
        let between = self.tasks.get(asked..self.cursor).unwrap_or_default();
        self.task().is_some() && !between.iter().any(awaits)
    }

    /// Returns whether the latest task that set a boot, the current task included, chose the image of the machine's user; `None` if no task
    /// has set a boot yet.
    pub(crate) fn chose_own_image(&self) -> Option<bool> {
        let end = (self.cursor + 1).min(self.tasks.len());
        let sets =
            |task: &&Task| matches!(task, Task::BootRamdisk | Task::BootDisk | Task::BootOwnImage);
        let last = self.tasks.get(..end)?.iter().rfind(sets)?;
        Some(*last == Task::BootOwnImage)
    }

    /// Returns the index of the latest task that made the ramdisk the next boot, the current task included.
    pub(crate) fn last_boot(&self) -> Option<usize> {
        let end = (self.cursor + 1).min(self.tasks.len());
        self.tasks.get(..end)?.iter().rposition(|task| *task == Task::BootRamdisk)
    }

    /// Returns whether the current task begins another boot of the ramdisk.
    pub(crate) fn boots_once_more(&self) -> bool {
        self.last_boot().is_some() && self.tasks.get(self.cursor + 1) == Some(&Task::BootRamdisk)
    }

    /// Returns the arguments of all steps, which may contain secrets: those of the wanted steps and those of the planned ones.
    pub fn step_args(&self) -> impl Iterator<Item = &Map<String, Value>> {
        let planned = self.tasks.iter().filter_map(Task::step).map(|step| &step.args);
        self.steps.args().chain(planned)
    }

    /// Like [`Work::step_args`], to seal and to open the secrets.
    pub fn step_args_mut(&mut self) -> impl Iterator<Item = &mut Map<String, Value>> {
        let planned = self.tasks.iter_mut().filter_map(|task| match task {
            Task::Step(step)
            | Task::ConfirmBios { step, .. }
            | Task::ReadFirmware { step, .. }
            | Task::ReadRaid { step, .. } => Some(&mut step.args),
            Task::UpdateFirmware(update) => Some(&mut update.step.args),
            Task::ChangeRaid(change) => Some(&mut change.step.args),
            Task::StepOnChildren(run) => Some(&mut run.step.args),
            Task::TryBmc
            | Task::ReadBios
            | Task::BindVifs
            | Task::DetachVifs
            | Task::ReleaseVifs
            | Task::Connect(_)
            | Task::Disconnect
            | Task::AskBmcForInventory
            | Task::Power(_)
            | Task::SetBoot(_)
            | Task::ConfirmBoot(_)
            | Task::BootRamdisk
            | Task::BootDisk
            | Task::BootOwnImage
            | Task::AwaitInventory
            | Task::AwaitAgent
            | Task::Agent(_)
            | Task::PlanSteps
            | Task::Wait { .. }
            | Task::Hold => None,
        });
        self.steps.args_mut().chain(planned)
    }

    /// Adds `steps` after the current task. Deploy steps take their places among the tasks of the deployment, by their priorities.
    pub(crate) fn add_steps(&mut self, steps: Vec<Step>) {
        let after = (self.cursor + 1).min(self.tasks.len());
        let rest = self.tasks.split_off(after);
        let mut steps = steps.into_iter().peekable();
        for task in rest {
            while let Some(step) = steps.next_if(|step| step.precedes(&task)) {
                self.add_step(step);
            }
            self.tasks.push(task);
        }
        steps.for_each(|step| self.add_step(step));
    }

    /// Adds a step at the end. The machine boots the ramdisk again after a step that asks for it.
    fn add_step(&mut self, step: Step) {
        let boot = step.reboots.then(|| Task::boot_and(Task::AwaitAgent));
        match step.runner {
            StepRunner::Agent => self.tasks.push(Task::Step(step)),
            StepRunner::Conductor => self.tasks.extend(tasks_of(step, self.boots_ramdisk())),
        }
        self.tasks.extend(boot.into_iter().flatten());
    }

    /// Adds the restart of the machine after the current step, which has requested BIOS settings, and the task that confirms them. With the
    /// ramdisk, the restart boots the ramdisk again.
    pub(crate) fn restart_and_confirm(&mut self) {
        let Some(Task::Step(step)) = self.task() else { return };
        let confirm = Task::ConfirmBios { step: step.clone(), started_at: self.task_started_at };
        self.restart_and(confirm);
    }

    /// Adds the updates that the current step requests, and the look at the versions after them.
    pub(crate) fn update_firmware(&mut self, updates: usize) {
        let Some(Task::Step(step)) = self.task() else { return };
        let (step, started_at) = (step.clone(), self.task_started_at);
        let update = |number| {
            let stage = UpdateStage::Ready;
            Task::UpdateFirmware(Box::new(UpdateInProgress { step: step.clone(), number, stage }))
        };
        let updates: Vec<Task> = (0..updates).map(update).collect();
        self.do_next(updates.into_iter().chain([Task::ReadFirmware { step, started_at }]));
    }

    /// Adds the changes of RAID volumes that the current step requests, and the look at the volumes after them.
    pub(crate) fn change_raid(&mut self, changes: &[VolumeChange]) {
        let Some(Task::Step(step)) = self.task() else { return };
        let (step, started_at) = (step.clone(), self.task_started_at);
        let task = |change: &VolumeChange| {
            let (step, change, stage) = (step.clone(), change.clone(), RaidStage::Ready);
            Task::ChangeRaid(Box::new(RaidChange { step, change, stage }))
        };
        let changes: Vec<Task> = changes.iter().map(task).collect();
        self.do_next(changes.into_iter().chain([Task::ReadRaid { step, started_at, root: None }]));
    }

    /// Notes the volume on which the operating system is to be installed, for the task that reads the volumes after the current step.
    pub(crate) fn note_root_volume(&mut self, path: &str) {
        let later = self.tasks.get_mut(self.cursor..).unwrap_or_default();
        let found = later.iter_mut().find(|task| matches!(task, Task::ReadRaid { .. }));
        if let Some(Task::ReadRaid { root, .. }) = found {
            *root = Some(path.to_owned());
        }
    }

    /// Adds the restart of the machine after the current task, and then `task`. With the ramdisk, the restart boots the ramdisk again.
    pub(crate) fn restart_and(&mut self, task: Task) {
        let restart = match self.boots_ramdisk() {
            true => Vec::from(Task::boot_and(Task::AwaitAgent)),
            false => vec![Task::Power(PowerState::Off), Task::Power(PowerState::On)],
        };
        self.do_next(restart.into_iter().chain([task]));
    }

    /// Adds tasks after the current one.
    pub(crate) fn do_next(&mut self, tasks: impl IntoIterator<Item = Task>) {
        let after = (self.cursor + 1).min(self.tasks.len());
        self.tasks.splice(after..after, tasks);
    }

    /// Returns whether a later task confirms the current step.
    pub(crate) fn confirms_step(&self) -> bool {
        let later = self.tasks.get(self.cursor + 1..).unwrap_or_default();
        let next = later.iter().find(|task| task.step().is_some());
        matches!(
            next,
            Some(
                Task::ConfirmBios { .. }
                    | Task::UpdateFirmware(_)
                    | Task::ReadFirmware { .. }
                    | Task::ChangeRaid(_)
                    | Task::ReadRaid { .. }
            )
        )
    }

    /// Returns whether the work is an inspection by the agent.
    pub fn inspects(&self) -> bool {
        self.tasks.contains(&Task::AwaitInventory)
    }
}

/// Returns the tasks that carry out a step of the conductor. With the ramdisk, a restart boots the ramdisk again.
fn tasks_of(step: Step, has_ramdisk: bool) -> Vec<Task> {
    if step.children.is_some() {
        return vec![Task::StepOnChildren(Box::new(ChildStep { step, asked: None }))];
    }
    let (on, off) = (Task::Power(PowerState::On), Task::Power(PowerState::Off));
    match step.name.step.as_str() {
        "hold" => vec![Task::Hold],
        "power_on" => vec![on],
        "power_off" => vec![off],
        "reboot" if has_ramdisk => Vec::from(Task::boot_and(Task::AwaitAgent)),
        "reboot" => vec![off, on],
        "wait" => match step.wait_seconds() {
            Some(seconds) => vec![Task::Wait { seconds }],
            None => vec![Task::AwaitAgent],
        },
        // The interface asks the conductor to wait for the agent.
        "trigger_servicewait" => vec![Task::Step(step), Task::AwaitAgent],
        _ => vec![Task::Step(step)],
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{DeployStep, Driver, Interface, Node, NodeUuid, RequestedStep, StepName, tasks};

    const T0: Timestamp = Timestamp::UNIX_EPOCH;

    /// The tasks during which a network boot of the machine gets the ramdisk.
    fn awaiting(tasks: Vec<Task>) -> Vec<Task> {
        let mut work = Work::new(WorkUuid::nil(), tasks, T0);
        let mut awaiting = Vec::new();
        // The work also waits for no boot once all of its tasks are done.
        for cursor in 0..=work.tasks.len() {
            work.cursor = cursor;
            if work.awaits_boot() {
                awaiting.push(work.task().unwrap().clone());
            }
        }
        awaiting
    }

    #[test]
    fn a_network_boot_gets_the_ramdisk_until_the_agent_has_reported() {
        let node = Node::new(NodeUuid::nil(), Driver::Redfish, T0);
        let boot = |waiting| [Task::BootRamdisk, Task::Power(PowerState::On), waiting];
        assert_eq!(awaiting(tasks::clean(&node, &WantedSteps::default())), boot(Task::AwaitAgent));
        assert_eq!(awaiting(tasks::deploy(&node, &WantedSteps::default())), boot(Task::AwaitAgent));
        assert_eq!(awaiting(tasks::inspect(&node)), boot(Task::AwaitInventory));
        assert_eq!(awaiting(tasks::undeploy(&node)), []);
        assert_eq!(awaiting(tasks::verify(&node)), []);
    }

    #[test]
    fn an_agent_is_needed_until_its_last_task_is_done() {
        let node = Node::new(NodeUuid::nil(), Driver::Redfish, T0);
        let last = |tasks: Vec<Task>| {
            let mut work = Work::new(WorkUuid::nil(), tasks, T0);
            let mut last = None;
            for cursor in 0..=work.tasks.len() {
                work.cursor = cursor;
                if work.needs_agent() {
                    last = work.task().cloned();
                }
            }
            last
        };
        let sync = Some(Task::Agent(AgentCommand::Sync));
        let shutdown = Some(Task::Agent(AgentCommand::PowerOff));
        assert_eq!(last(tasks::deploy(&node, &WantedSteps::default())), shutdown);
        assert_eq!(last(tasks::clean(&node, &WantedSteps::default())), sync);
        assert_eq!(last(tasks::inspect(&node)), Some(Task::AwaitInventory));
        assert_eq!(last(tasks::undeploy(&node)), None);
        assert_eq!(last(tasks::verify(&node)), None);
        let step = general("apply", json!({}));
        assert_eq!(last(vec![Task::Step(step.clone())]), None);
        let step = Task::Step(Step { runner: StepRunner::Agent, ..step });
        assert_eq!(last(vec![step.clone()]), Some(step));
    }

    #[test]
    fn the_arguments_of_every_step_can_be_sealed() {
        let step = |argument: &str| general("apply", json!({"secret": argument}));
        let delete = VolumeChange::Delete {
            storage: String::new(),
            volume: String::new(),
            label: String::new(),
            applies: hardware::ApplyTime::Immediate,
        };
        let (started_at, stage) = (T0, UpdateStage::Ready);
        let update = UpdateInProgress { step: step("d"), number: 0, stage };
        let change = RaidChange { step: step("e"), change: delete, stage: RaidStage::Ready };
        let tasks = vec![
            Task::PlanSteps,
            Task::Step(step("a")),
            Task::ConfirmBios { step: step("b"), started_at },
            Task::ReadFirmware { step: step("c"), started_at },
            Task::UpdateFirmware(Box::new(update)),
            Task::ChangeRaid(Box::new(change)),
            Task::ReadRaid { step: step("f"), started_at, root: None },
            Task::StepOnChildren(Box::new(ChildStep { step: step("g"), asked: None })),
        ];
        let Step { name, args, .. } = step("wanted");
        let wanted = RequestedStep { name, args, children: None };
        for steps in [
            WantedSteps::Requested(vec![wanted.clone()]),
            WantedSteps::Service(vec![wanted.clone()]),
            WantedSteps::Deployment(vec![DeployStep { step: wanted.clone(), priority: 1 }]),
        ] {
            let mut work = Work { steps, ..Work::new(WorkUuid::nil(), tasks.clone(), T0) };
            let secrets = |work: &Work| -> Vec<String> {
                work.step_args().map(|args| args["secret"].as_str().unwrap().to_owned()).collect()
            };
            assert_eq!(secrets(&work), ["wanted", "a", "b", "c", "d", "e", "f", "g"]);
            work.step_args_mut().for_each(|args| args["secret"] = "sealed".into());
            assert_eq!(secrets(&work), ["sealed"; 8]);
        }
    }

    #[test]
    fn the_machine_boots_the_ramdisk_again_after_a_step_that_asks_for_it() {
        let step = |step: &str, reboots| Step {
            kind: StepKind::Clean,
            runner: StepRunner::Agent,
            name: StepName { interface: Interface::Bios, step: step.to_owned() },
            args: Map::new(),
            priority: 0,
            reboots,
            children: None,
        };
        let node = Node::new(NodeUuid::nil(), Driver::Redfish, T0);
        let mut work = Work::new(WorkUuid::nil(), tasks::clean(&node, &WantedSteps::default()), T0);
        work.cursor = 4;
        assert_eq!(work.task(), Some(&Task::Agent(AgentCommand::ListSteps(StepKind::Clean))));
        work.add_steps(vec![step("reset", true), step("apply", false)]);
        let boot = Task::boot_and(Task::AwaitAgent);
        let between = [
            &[Task::Step(step("reset", true))][..],
            &boot,
            &[Task::Step(step("apply", false)), Task::Agent(AgentCommand::Sync)],
        ];
        assert_eq!(work.tasks[5..12], between.concat());

        let at = |cursor| Work { cursor, ..work.clone() };
        let awaited: Vec<usize> =
            (0..=work.tasks.len()).filter(|it| at(*it).awaits_boot()).collect();
        assert_eq!(awaited, [1, 2, 3, 7, 8, 9]);
        let again: Vec<usize> =
            (0..=work.tasks.len()).filter(|it| at(*it).boots_once_more()).collect();
        assert_eq!(again, [6]);
        assert_eq!((at(3).last_boot(), at(9).last_boot()), (Some(1), Some(7)));
    }

    #[test]
    fn deploy_steps_run_between_the_tasks_of_a_deployment() {
        let step = |priority: u32| Step {
            kind: StepKind::Deploy,
            runner: StepRunner::Agent,
            name: StepName { interface: Interface::Raid, step: priority.to_string() },
            args: Map::new(),
            priority,
            reboots: false,
            children: None,
        };
        let node = Node::new(NodeUuid::nil(), Driver::Redfish, T0);
        let mut work =
            Work::new(WorkUuid::nil(), tasks::deploy(&node, &WantedSteps::default()), T0);
        work.cursor = 4;
        assert_eq!(work.task(), Some(&Task::Agent(AgentCommand::ListSteps(StepKind::Deploy))));
        work.add_steps([90, 81, 80, 61, 60, 1].map(step).to_vec());
        let order = work.tasks[5..].iter().map(|task| {
            if let Task::Step(step) = task {
                step.priority.to_string()
            } else {
                task.describe().into_owned()
            }
        });
        let want = [
            "90",
            "81",
            "writing the image",
            "80",
            "61",
            "setting the firmware's next boot",
            "60",
            "1",
            "flushing caches to disk",
            "shutting the machine down",
            "switching the machine off",
            "making the disk the next boot",
            "switching the machine on",
        ];
        assert_eq!(order.collect::<Vec<_>>(), want);
    }

    #[test]
    fn the_tasks_tell_whether_the_ramdisk_boots_and_why() {
        let node = |driver| Node::new(NodeUuid::nil(), driver, T0);
        let (machine, fake) = (node(Driver::Redfish), node(Driver::FakeHardware));
        let kind = |tasks| {
            let work = Work::new(WorkUuid::nil(), tasks, T0);
            (work.boots_ramdisk(), work.inspects())
        };
        assert_eq!(kind(tasks::inspect(&machine)), (true, true));
        assert_eq!(kind(tasks::deploy(&machine, &WantedSteps::default())), (true, false));
        assert_eq!(kind(tasks::inspect(&fake)), (false, false));
        assert_eq!(kind(tasks::deploy(&fake, &WantedSteps::default())), (false, false));
    }

    #[test]
    fn a_record_names_repeated_boots_only_if_there_were_any() {
        for boots in [0, 1, 5] {
            let work = Work { repeated_boots: boots, ..Work::new(WorkUuid::nil(), Vec::new(), T0) };
            let record = serde_json::to_value(&work).unwrap();
            let written = record.get("repeated_boots").and_then(serde_json::Value::as_u64);
            assert_eq!(written, (boots > 0).then_some(u64::from(boots)));
            assert_eq!(serde_json::from_value::<Work>(record).unwrap(), work);
        }
    }

    fn general(name: &str, args: Value) -> Step {
        let Value::Object(args) = args else { panic!("{args}") };
        let name = StepName { interface: Interface::Power, step: name.to_owned() };
        let (kind, runner) = (StepKind::Clean, StepRunner::Conductor);
        Step { kind, runner, name, args, priority: 0, reboots: false, children: None }
    }

    #[test]
    fn general_steps_become_tasks() {
        let (on, off) = (Task::Power(PowerState::On), Task::Power(PowerState::Off));
        let wait = |args| tasks_of(general("wait", args), true);
        assert_eq!(tasks_of(general("hold", json!({})), true), [Task::Hold]);
        let power = |name| tasks_of(general(name, json!({})), true);
        assert_eq!([power("power_on"), power("power_off")].concat(), [on.clone(), off.clone()]);
        assert_eq!(tasks_of(general("reboot", json!({})), false), [off, on]);
        assert_eq!(tasks_of(general("reboot", json!({})), true), Task::boot_and(Task::AwaitAgent));
        assert_eq!(wait(json!({})), [Task::AwaitAgent]);
        assert_eq!(wait(json!({"seconds": 7})), [Task::Wait { seconds: 7 }]);
        assert_eq!(wait(json!({"seconds": "8"})), [Task::Wait { seconds: 8 }]);
        let trigger = general("trigger_servicewait", json!({}));
        assert_eq!(tasks_of(trigger.clone(), true), [Task::Step(trigger), Task::AwaitAgent]);
        let other = general("apply", json!({}));
        assert_eq!(tasks_of(other.clone(), true), [Task::Step(other)]);
    }
}
