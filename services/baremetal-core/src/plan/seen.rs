//! Observations of a machine, its BMC and its agent.

use agent_protocol::Progress;
use hardware::{BmcTask, BootSettings, PowerState, RaidVolume};
use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::{AccountPassword, Node, OfferedStep, Problem, WorkUuid};

/// The conductor's latest observation of a machine. The conductor observes only what the current task needs.
#[derive(Clone, Debug, PartialEq)]
pub struct Observed {
    pub power: PowerSeen,
    pub boot_settings: BootSettingsSeen,
    pub password: PasswordSeen,
    pub firmware: FirmwareSeen,
    pub raid: RaidSeen,
    pub agent: AgentSeen,
    /// The work whose boot of the ramdisk still runs and whose agent is idle, if the current task would boot the ramdisk again.
    pub idle_ramdisk: Option<WorkUuid>,
    /// Whether the inventory of the current work has arrived.
    pub inventory: bool,
    /// The child nodes of a node whose step runs on child nodes: all, or those that the step began on.
    pub children: Vec<Node>,
    /// How far the machine's boot came, in words for people.
    pub boot_trail: String,
    /// When the conductor began to watch. Timeouts count from here at the earliest, because the conductor may have missed events before.
    pub watching_since: Timestamp,
}

/// An observation of the machine's power.
#[derive(Clone, Debug, PartialEq)]
pub enum PowerSeen {
    /// The conductor did not ask, because the current task does not need the power state.
    NotAsked,
    Is(PowerState),
    /// The BMC did not report a state.
    Failed(Problem),
}

/// An observation of the machine's boot settings.
#[derive(Clone, Debug, PartialEq)]
pub enum BootSettingsSeen {
    /// The conductor did not ask, or the BMC could not report the settings at this time.
    NotSeen,
    Are(BootSettings),
    Failed(Problem),
}

/// An observation of the password of the BMC account, by logins.
#[derive(Clone, Debug, PartialEq)]
pub enum PasswordSeen {
    /// The conductor did not try a password.
    NotSeen,
    /// The BMC accepts this password.
    Is(AccountPassword),
    Neither,
    /// The BMC did not answer.
    Failed(Problem),
}

/// An observation of the component whose firmware is updated.
#[derive(Clone, Debug, PartialEq)]
pub enum FirmwareSeen {
    /// The conductor did not ask, because the current task updates no firmware.
    NotSeen,
    /// The BMC did not answer.
    Failed(Problem),
    Is(UpdateSeen),
}

/// An update of firmware as its BMC shows it. Parts that the stage of the update does not need are `None`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UpdateSeen {
    pub version: Option<String>,
    /// All tasks of the BMC, before it is asked for an update; `None` if it lists no tasks.
    pub tasks: Option<Vec<String>>,
    /// A task that the BMC did not have before it was asked.
    pub new: Option<String>,
    /// The state of the update's task; `None` if the update has none.
    pub task: Option<BmcTask>,
}

/// An observation of the storage controller whose volumes are changed.
#[derive(Clone, Debug, PartialEq)]
pub enum RaidSeen {
    /// The conductor did not ask, because the current task changes no volume.
    NotSeen,
    /// The BMC did not answer.
    Failed(Problem),
    Is(RaidChangeSeen),
}

/// A change of volumes as its BMC shows it. Parts that the stage of the change does not need are `None`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RaidChangeSeen {
    /// The volumes of the storage controller.
    pub volumes: Vec<RaidVolume>,
    /// All tasks of the BMC, before it is asked for a change; `None` if it lists no tasks.
    pub tasks: Option<Vec<String>>,
    /// A task that the BMC did not have before it was asked.
    pub new: Option<String>,
    /// The state of the change's task; `None` if the change has none.
    pub task: Option<BmcTask>,
}

/// An observation of the agent in the ramdisk.
#[derive(Clone, Debug, PartialEq)]
pub enum AgentSeen {
    /// The agent has not reported since the machine was booted for the current work.
    Absent,
    /// The agent has reported, or answers although the BMC says that its machine is off. The current task does not need its commands.
    Present,
    /// The commands that the agent has received so far.
    Commands(Vec<CommandSeen>),
    /// The agent has reported before and does not answer now.
    Silent {
        /// The last time that the agent reported or answered.
        since: Timestamp,
        /// The network's error for the last call.
        problem: Problem,
    },
    /// The agent still reports, but refuses or does not answer calls.
    Refuses {
        /// The number of failed calls in a row.
        calls: u32,
        /// When the first of these calls failed.
        since: Timestamp,
        /// The error of the last call.
        problem: Problem,
        /// Whether the node's history tells about these calls already.
        is_recorded: bool,
    },
}

/// A command and its result, as the agent reports them.
#[derive(Clone, Debug, PartialEq)]
pub enum CommandSeen {
    Running(Option<Progress>),
    Succeeded,
    /// A step ended, and the agent reports this RAID configuration as its result.
    BuiltRaid(Map<String, Value>),
    Listed(Vec<OfferedStep>),
    /// The command failed, with the agent's message.
    Failed(String),
}
