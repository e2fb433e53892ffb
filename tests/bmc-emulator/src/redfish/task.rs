//! Tasks, which a service that answers 202 is still working on (DSP0266 §13.2).

use std::collections::VecDeque;
use std::time::Duration;

use http::StatusCode;
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::redfish::RedfishFace;
use crate::redfish::answer::Answer;
use crate::redfish::resource::Resource;

/// How many tasks a service keeps.
const KEPT: usize = 16;

/// The tasks of one service, oldest first.
#[derive(Default)]
pub(crate) struct Tasks {
    tasks: VecDeque<Task>,
    last_id: u32,
}

struct Task {
    id: u32,
    started_at: Timestamp,
    ends_at: Instant,
}

impl Tasks {
    pub(crate) fn ids(&self) -> impl Iterator<Item = u32> {
        self.tasks.iter().map(|task| task.id)
    }

    fn start(&mut self, lasting: Duration) -> u32 {
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

impl RedfishFace {
    /// Starts a task. The answer is 202 with the task and the address of its monitor.
    pub(crate) fn start_task(&self, lasting: Duration) -> Answer {
        let id = self.tasks().start(lasting);
        let body = self.task(id).unwrap_or_default();
        Answer::json(StatusCode::ACCEPTED, body)
            .with("location", Resource::TaskMonitor(id).path(self.profile))
            .with("retry-after", "1".to_owned())
    }

    /// The document of a task. `None` if the service has forgotten the task.
    pub(crate) fn task(&self, id: u32) -> Option<Value> {
        let tasks = self.tasks();
        let task = tasks.tasks.iter().find(|task| task.id == id)?;
        let done = task.ends_at <= Instant::now();
        Some(json!({
            "@odata.id": Resource::Task(id).path(self.profile),
            "@odata.type": "#Task.v1_4_3.Task",
            "Id": id.to_string(),
            "Name": "Reset",
            "StartTime": task.started_at.to_string(),
            "TaskState": if done { "Completed" } else { "Running" },
            "TaskStatus": "OK",
            "PercentComplete": if done { 100 } else { 0 },
            "TaskMonitor": Resource::TaskMonitor(id).path(self.profile),
            "Messages": [],
        }))
    }

    /// Status 202 while the task runs, afterwards the answer to the request.
    pub(crate) fn task_monitor(&self, id: u32) -> Option<Answer> {
        let done = {
            let tasks = self.tasks();
            tasks.tasks.iter().find(|task| task.id == id)?.ends_at <= Instant::now()
        };
        if done {
            return Some(Answer::empty(StatusCode::NO_CONTENT));
        }
        let answer = Answer::json(StatusCode::ACCEPTED, self.task(id)?);
        Some(answer.with("location", Resource::TaskMonitor(id).path(self.profile)))
    }
}
