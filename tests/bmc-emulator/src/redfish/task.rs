//! Tasks, which a service that answers 202 is still working on (DSP0266 §13.2).

use std::collections::VecDeque;
use std::time::Duration;

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

/// A task, which has ended or ends at a known time.
pub(crate) struct Task {
    pub(crate) id: u32,
    pub(crate) started_at: Timestamp,
    pub(crate) ends_at: Instant,
}

impl Tasks {
    pub(crate) fn all(&self) -> impl Iterator<Item = &Task> {
        self.tasks.iter()
    }

    /// Starts a task and returns its id. The oldest task is forgotten if there are too many.
    pub(crate) fn start(&mut self, lasting: Duration) -> u32 {
        if self.tasks.len() == KEPT {
            self.tasks.pop_front();
        }
        self.last_id += 1;
        let task = Task {
            id: self.last_id,
            started_at: Timestamp::now(),
            ends_at: Instant::now() + lasting,
        };
        self.tasks.push_back(task);
        self.last_id
    }
}
