//! The plan of a change of provision state.

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Map, Value};

/// The tasks of a change of provision state, before it is requested or while it runs.
#[derive(Debug, Deserialize)]
pub struct Plan {
    /// The compute host that is drained first.
    pub drains: Option<String>,
    pub tasks: Vec<PlannedTask>,
    /// Why the steps cannot run.
    pub problem: Option<String>,
    pub offered: Option<OfferedSteps>,
}

/// A task of a plan.
#[derive(Debug, Deserialize)]
pub struct PlannedTask {
    pub what: String,
    /// `done`, `current` or `planned`.
    pub state: String,
    pub step: Option<PlannedStep>,
}

/// The step that a task runs.
#[derive(Debug, Deserialize)]
pub struct PlannedStep {
    pub step: String,
    pub priority: u32,
    pub args: Map<String, Value>,
}

/// The steps that can run.
#[derive(Debug, Deserialize)]
pub struct OfferedSteps {
    /// When the agent listed its steps.
    pub listed_at: Option<Timestamp>,
    /// Whether the steps of the agent are known.
    pub complete: bool,
    pub steps: Vec<OfferedStep>,
}

/// A step that can run.
#[derive(Debug, Deserialize)]
pub struct OfferedStep {
    pub interface: String,
    pub step: String,
    pub priority: u32,
    pub args: Vec<StepArgument>,
    /// `agent` or `conductor`.
    pub runner: String,
}

/// An argument of a step.
#[derive(Debug, Deserialize)]
pub struct StepArgument {
    pub name: String,
    pub required: bool,
}
