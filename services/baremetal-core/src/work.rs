//! What the conductor has set out to do with a node: a list of tasks and how far it is.

use hardware::PowerState;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{BootInterface, InspectInterface, Node, WorkUuid};

/// Work under way. Everything needed to go on with it after a crash is in here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Work {
    /// Its id: the boot's token, the boot script and the log derive from it.
    pub id: WorkUuid,
    /// What is to be done, in order.
    pub tasks: Vec<Task>,
    /// How many tasks are done.
    pub cursor: usize,
    /// When the work began.
    pub started_at: Timestamp,
    /// When the current task began: its deadline counts from here.
    pub task_started_at: Timestamp,
    /// For an agent's command: how many commands the agent had been given when this one's intent was recorded.
    /// The command is the agent's next, if it has one more.
    pub intent: Option<usize>,
    /// For a change of power: when the BMC was last asked for it, written down before it is asked.
    pub asked_at: Option<Timestamp>,
    /// Whether the operator asked for this cleaning, so that it leads back to `manageable`.
    pub by_hand: bool,
}

/// One thing to do. Doing it twice is harmless.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Task {
    /// See that the BMC answers and accepts our credentials.
    TryBmc,
    /// Ask the BMC for the inventory it knows.
    AskBmcForInventory,
    /// Switch the machine on or off, and see that it is.
    Power(PowerState),
    /// Make the machine's next boot be the ramdisk.
    BootRamdisk,
    /// Make the machine's boots be its disk; takes the ramdisk's medium out.
    BootDisk,
    /// Await the agent's inventory.
    AwaitInventory,
    /// Await the agent's first heartbeat.
    AwaitAgent,
    /// Have the agent do something, and await its end.
    Agent(AgentCommand),
}

/// What an agent can be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentCommand {
    /// Wipe partition tables and signatures from all disks.
    EraseMetadata,
    /// Erase all disks wholly.
    EraseDisks,
    /// Write the image, and the config drive if there is one.
    WriteImage,
    /// Make the written disk the firmware's next boot.
    SetNextBoot,
    /// Flush caches to disk.
    Sync,
}

impl Task {
    /// Whether the machine, not we, has the next word while this is done.
    pub const fn is_waiting(&self) -> bool {
        match self {
            Task::AwaitInventory | Task::AwaitAgent | Task::Agent(_) => true,
            Task::TryBmc
            | Task::AskBmcForInventory
            | Task::Power(_)
            | Task::BootRamdisk
            | Task::BootDisk => false,
        }
    }

    /// What is being done, for people: `writing the image`.
    pub const fn describe(&self) -> &'static str {
        match self {
            Task::TryBmc => "trying the BMC",
            Task::AskBmcForInventory => "asking the BMC for its inventory",
            Task::Power(PowerState::On) => "switching the machine on",
            Task::Power(PowerState::Off) => "switching the machine off",
            Task::BootRamdisk => "making the ramdisk the next boot",
            Task::BootDisk => "making the disk the next boot",
            Task::AwaitInventory => "waiting for the inventory",
            Task::AwaitAgent => "waiting for the agent",
            Task::Agent(AgentCommand::EraseMetadata) => "erasing partition tables and signatures",
            Task::Agent(AgentCommand::EraseDisks) => "erasing the disks",
            Task::Agent(AgentCommand::WriteImage) => "writing the image",
            Task::Agent(AgentCommand::SetNextBoot) => "setting the firmware's next boot",
            Task::Agent(AgentCommand::Sync) => "flushing caches to disk",
        }
    }
}

impl Work {
    /// Work that begins now.
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
        }
    }

    /// The task at hand; `None` when all are done.
    pub fn task(&self) -> Option<&Task> {
        self.tasks.get(self.cursor)
    }

    /// Whether a ramdisk is part of this work.
    pub fn boots_ramdisk(&self) -> bool {
        self.tasks.contains(&Task::BootRamdisk)
    }

    /// Whether the machine's next boot from the network is to be the ramdisk: from the moment it is asked for
    /// until the agent has reported.
    pub fn awaits_boot(&self) -> bool {
        let asked = self.tasks.iter().position(|task| *task == Task::BootRamdisk);
        let awaited = self
            .tasks
            .iter()
            .position(|task| matches!(task, Task::AwaitAgent | Task::AwaitInventory));
        match (asked, awaited) {
            (Some(asked), Some(awaited)) => (asked..=awaited).contains(&self.cursor),
            _ => false,
        }
    }

    /// Whether this is an inspection.
    pub fn inspects(&self) -> bool {
        self.tasks.contains(&Task::AwaitInventory)
    }
}

/// Boots the ramdisk and awaits `waiting`.
fn ramdisk(waiting: Task) -> [Task; 4] {
    [Task::Power(PowerState::Off), Task::BootRamdisk, Task::Power(PowerState::On), waiting]
}

/// What it takes to see that the BMC is there.
pub(crate) fn verify() -> Vec<Task> {
    vec![Task::TryBmc]
}

/// What it takes to inspect `node`.
pub(crate) fn inspect(node: &Node) -> Vec<Task> {
    let mut tasks = Vec::new();
    if node.driver == crate::Driver::Redfish && node.inspect_interface() != InspectInterface::None {
        tasks.push(Task::AskBmcForInventory);
    }
    if node.inspect_interface() == InspectInterface::Agent {
        tasks.extend(ramdisk(Task::AwaitInventory));
        tasks.extend([Task::Power(PowerState::Off), Task::BootDisk]);
    }
    tasks
}

/// What it takes to make `node` clean; nothing where nothing is to be cleaned.
pub(crate) fn clean(node: &Node, command: AgentCommand) -> Vec<Task> {
    if node.boot_interface() == BootInterface::Fake {
        return vec![Task::Power(PowerState::Off)];
    }
    let mut tasks = Vec::from(ramdisk(Task::AwaitAgent));
    tasks.extend([Task::Agent(command), Task::Agent(AgentCommand::Sync)]);
    tasks.extend([Task::Power(PowerState::Off), Task::BootDisk]);
    tasks
}

/// What it takes to install `node`.
pub(crate) fn deploy(node: &Node) -> Vec<Task> {
    if node.boot_interface() == BootInterface::Fake {
        return vec![Task::Power(PowerState::Off), Task::Power(PowerState::On)];
    }
    let mut tasks = Vec::from(ramdisk(Task::AwaitAgent));
    tasks.extend(
        [AgentCommand::WriteImage, AgentCommand::SetNextBoot, AgentCommand::Sync].map(Task::Agent),
    );
    tasks.extend([Task::Power(PowerState::Off), Task::BootDisk, Task::Power(PowerState::On)]);
    tasks
}

/// What it takes to take `node` out of use.
pub(crate) fn undeploy() -> Vec<Task> {
    vec![Task::Power(PowerState::Off)]
}
