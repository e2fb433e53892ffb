//! The work of a node: the list of tasks that the conductor carries out, and how many of them are done.

use hardware::PowerState;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::WorkUuid;

/// Work in progress on a node. The record holds everything that the conductor needs to continue after a crash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Work {
    /// The id of the work. The boot's token and the URL of the boot script derive from this id, and logs carry it.
    pub id: WorkUuid,
    /// The tasks in the order in which they are done.
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
    /// Switch the machine on or off, and wait until the BMC reports that state.
    Power(PowerState),
    /// Make the ramdisk the machine's next boot.
    BootRamdisk,
    /// Make the disk the machine's boot device, and eject the ramdisk's virtual medium.
    BootDisk,
    AwaitInventory,
    AwaitAgent,
    /// Give the agent a command, and wait until the command ends.
    Agent(AgentCommand),
}

/// A command for the agent in the ramdisk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentCommand {
    /// Wipe the partition tables and signatures of all disks.
    EraseMetadata,
    /// Erase all disks completely.
    EraseDisks,
    /// Write the image to disk, and the config drive if the node has one.
    WriteImage,
    /// Make the written disk the next boot of the firmware.
    SetNextBoot,
    Sync,
}

impl Task {
    /// Returns whether the task waits for the machine or its agent. The node's state is a `wait` state meanwhile.
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

    /// Returns what is being done, as words for people: `writing the image`.
    pub const fn describe(&self) -> &'static str {
        match self {
            Task::TryBmc => "verifying the BMC",
            Task::AskBmcForInventory => "reading the inventory of the BMC",
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
            switched_on_at: None,
            repeated_boots: 0,
        }
    }

    /// Returns the current task, or `None` when all tasks are done.
    pub fn task(&self) -> Option<&Task> {
        self.tasks.get(self.cursor)
    }

    /// Returns whether the work boots the ramdisk.
    pub fn boots_ramdisk(&self) -> bool {
        self.tasks.contains(&Task::BootRamdisk)
    }

    /// Returns whether a network boot of the machine has to get the ramdisk now: from the task that asks for this boot until the agent has
    /// reported.
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

    /// Returns whether the work is an inspection by the agent.
    pub fn inspects(&self) -> bool {
        self.tasks.contains(&Task::AwaitInventory)
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Driver, Node, NodeUuid, tasks};

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
        let erase = AgentCommand::EraseDisks;
        assert_eq!(awaiting(tasks::clean(&node, erase)), boot(Task::AwaitAgent));
        assert_eq!(awaiting(tasks::deploy(&node)), boot(Task::AwaitAgent));
        assert_eq!(awaiting(tasks::inspect(&node)), boot(Task::AwaitInventory));
        assert_eq!(awaiting(tasks::undeploy()), []);
        assert_eq!(awaiting(tasks::verify()), []);
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
        assert_eq!(kind(tasks::deploy(&machine)), (true, false));
        assert_eq!(kind(tasks::inspect(&fake)), (false, false));
        assert_eq!(kind(tasks::deploy(&fake)), (false, false));
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
}
