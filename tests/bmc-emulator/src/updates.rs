//! The updates of a machine's firmware that its BMC remembers.

use serde::Deserialize;

/// How many updates a BMC remembers.
const KEPT: usize = 16;

/// An update that a BMC accepted.
#[derive(Clone, Debug)]
pub(crate) struct Update {
    pub(crate) id: u32,
    /// `bios`, `bmc`, or `nic:` with a serial number.
    pub(crate) component: String,
    pub(crate) version: String,
    pub(crate) state: UpdateState,
}

/// The state of an update, as its task shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum UpdateState {
    Running,
    /// The new version waits for the next start of the machine, and so does the task.
    Starting,
    Completed,
    Failed(String),
}

/// When firmware that needs a start of the machine is in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Applies {
    /// The task ends with the start that applies the firmware.
    DuringTask,
    /// The task ends once the BMC has the image, and the next start applies the firmware.
    AfterTask,
}

/// The updates of one machine, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Updates {
    updates: Vec<Update>,
    last_id: u32,
}

impl Updates {
    pub(crate) fn find(&self, id: u32) -> Option<&Update> {
        self.updates.iter().find(|update| update.id == id)
    }

    pub(crate) fn are_running(&self) -> bool {
        self.updates.iter().any(|update| update.state == UpdateState::Running)
    }

    /// Adds an update that begins, and returns its id. The oldest is forgotten.
    pub(crate) fn add(&mut self, component: &str, version: &str) -> u32 {
        self.last_id += 1;
        if self.updates.len() == KEPT {
            self.updates.remove(0);
        }
        self.updates.push(Update {
            id: self.last_id,
            component: component.to_owned(),
            version: version.to_owned(),
            state: UpdateState::Running,
        });
        self.last_id
    }

    pub(crate) fn change(&mut self, id: u32, state: UpdateState) {
        self.updates.iter_mut().filter(|it| it.id == id).for_each(|it| it.state = state.clone());
    }

    /// The machine starts, which ends the tasks that wait for a start.
    pub(crate) fn start(&mut self) {
        let waiting = self.updates.iter_mut().filter(|it| it.state == UpdateState::Starting);
        waiting.for_each(|update| update.state = UpdateState::Completed);
    }
}

impl UpdateState {
    /// `TaskState` of the Task schema.
    pub(crate) fn word(&self) -> &'static str {
        match self {
            UpdateState::Running => "Running",
            UpdateState::Starting => "Starting",
            UpdateState::Completed => "Completed",
            UpdateState::Failed(_) => "Exception",
        }
    }
}
