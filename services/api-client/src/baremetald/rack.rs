//! Racks, and the progress of their machines.

use jiff::Timestamp;
use serde::Deserialize;

use crate::with_json::WithJson;

/// A rack in a list.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct RackSummary {
    pub name: String,
    pub description: Option<String>,
    pub goal: Option<RackGoal>,
}

/// The goal of a rack.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct RackGoal {
    pub reach: String,
}

/// A rack with its machines.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Rack {
    pub machines: Vec<WithJson<RackMachine>>,
}

/// A node of a rack.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct RackMachine {
    pub uuid: String,
    pub name: Option<String>,
    pub position: Option<u32>,
    pub provision_state: String,
    pub power_state: Option<String>,
    /// The time since which the node is in its state.
    pub since: Timestamp,
    pub task: Option<Task>,
    pub failure: Option<Failure>,
    pub hypervisor: Option<Hypervisor>,
    pub way: Option<GoalProgress>,
}

/// The step that a node's work is at.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Task {
    pub what: String,
    pub number: u64,
    pub of: u64,
    pub since: Timestamp,
    pub progress: Option<TaskProgress>,
}

/// The progress of a long step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct TaskProgress {
    pub done_bytes: u64,
    pub total_bytes: Option<u64>,
}

/// Why a node's last work failed.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Failure {
    pub cause: String,
    pub next_action: String,
}

/// A node that is or becomes a compute host.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Hypervisor {
    pub host: String,
    /// The id of the hypervisor in Nova.
    pub id: Option<String>,
    pub availability_zone: Option<String>,
    pub state: String,
    pub since: Timestamp,
}

/// A node's progress towards the goal of its rack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GoalProgress {
    There,
    #[serde(rename = "under_way")]
    Working,
    Next,
    Stuck,
    LeftAlone,
}

/// The number of machines of a rack that a bring-up affects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct BringUp {
    /// The number of machines that do not have the goal yet.
    pub to_do: u64,
}

/// The result of an enrolment.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Enrolment {
    pub machines: Vec<EnrolledMachine>,
}

/// The result of an enrolment for one machine.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct EnrolledMachine {
    /// `enrolled`, `updated` or `unchanged`.
    pub result: String,
}

impl RackMachine {
    /// The node's name, or its id.
    pub fn label(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.uuid)
    }
}
