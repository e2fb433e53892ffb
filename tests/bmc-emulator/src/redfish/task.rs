//! Tasks, which a service that answers 202 is still working on (DSP0266 §13.2).

use std::collections::VecDeque;

use jiff::Timestamp;
use tokio::time::Instant;

/// How many tasks a service keeps.
const KEPT: usize = 16;

/// The tasks of one service, oldest first.
#[derive(Default)]
pub(crate) struct Tasks {
    tasks: VecDeque<Task>,
    last_id: u32,
}

pub(crate) struct Task {
    pub(crate) id: u32,
    pub(crate) started_at: Timestamp,
    pub(crate) kind: TaskKind,
}

pub(crate) enum TaskKind {
    /// A change of power, which ends at a known time.
    Reset { ends_at: Instant },
    /// An import of a configuration, which ends at a known time.
    Import { ends_at: Instant },
    /// An update of the machine's firmware, requested at the path `target`.
    Update { id: u32, target: String },
    /// A change of a RAID volume, requested by this method at the path `target`.
    Volume { id: u32, target: String, method: &'static str },
}

impl Tasks {
    pub(crate) fn all(&self) -> impl Iterator<Item = &Task> {
        self.tasks.iter()
    }

    /// Starts a task and returns its id. The oldest task is forgotten if there are too many.
    pub(crate) fn start(&mut self, kind: TaskKind) -> u32 {
        if self.tasks.len() == KEPT {
            self.tasks.pop_front();
        }
        self.last_id += 1;
        self.tasks.push_back(Task { id: self.last_id, started_at: Timestamp::now(), kind });
        self.last_id
    }
}
