//! Waits for tasks of a BMC (DSP0266 §12).

use std::time::Duration;

use bmc::{BmcError, Result};
use reqwest::StatusCode;
use serde_json::Value;
use tokio::time::{Instant, sleep};
use url::Url;

use crate::answer::Answer;
use crate::document::Document;
use crate::message;
use crate::service::Service;

/// The default interval of polling a task; the BMC may set another with `Retry-After`.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// The limits of the polling interval, whatever the BMC asks for.
const SHORTEST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// A task may take this many times as long as one request.
const TASK_TIMEOUTS: u32 = 4;

/// The state of a task when watching it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TaskEnd {
    /// The task has ended without an error.
    Done,
    /// The task still runs.
    Running,
}

impl Service {
    /// Waits until the operation that `answer` accepted has ended.
    pub(crate) async fn finish(&self, answer: Answer) -> Result<()> {
        let limit = self.target.timeout * TASK_TIMEOUTS;
        let request = answer.request.clone();
        match self.watch(answer, limit).await? {
            TaskEnd::Done => Ok(()),
            TaskEnd::Running => Err(BmcError::Busy {
                host: self.origin.host(),
                reason: format!("its task for {request} still runs after {} s", limit.as_secs()),
            }),
        }
    }

    /// Watches the task that `answer` announces, if there is one, for at most `limit`.
    pub(crate) async fn watch(&self, answer: Answer, limit: Duration) -> Result<TaskEnd> {
        if answer.status != StatusCode::ACCEPTED {
            return Ok(TaskEnd::Done);
        }
        // A 202 without a monitor: the operation was accepted, and nothing more can be known.
        let Some(monitor) = self.monitor(&answer) else { return Ok(TaskEnd::Done) };
        let deadline = Instant::now() + limit;
        let mut pause = pause(&answer);
        loop {
            if Instant::now() + pause > deadline {
                return Ok(TaskEnd::Running);
            }
            sleep(pause).await;
            let look = self.fetch(&monitor).await?;
            // DSP0266 §12.2: a monitor disappears once its result was fetched or has expired.
            if matches!(look.status, StatusCode::NOT_FOUND | StatusCode::GONE) {
                return Ok(TaskEnd::Done);
            }
            pause = self::pause(&look);
            let look = look.accepted(&self.origin.host())?;
            if self.judge(&look)? == TaskEnd::Done {
                return Ok(TaskEnd::Done);
            }
        }
    }

    /// Returns the monitor of the task: the header's location, otherwise the link in the body.
    fn monitor(&self, answer: &Answer) -> Option<Url> {
        let body = answer.document().unwrap_or_default();
        let reported = [answer.location.as_deref(), body.at("TaskMonitor").as_str(), body.id()];
        reported.into_iter().flatten().find_map(|link| self.origin.follow(link).ok())
    }

    /// Classifies an answer of the monitor. Some services show the Task there, with 200 even while the task runs.
    fn judge(&self, look: &Answer) -> Result<TaskEnd> {
        let body = look.document().unwrap_or(Value::Null);
        match (body.word("TaskState"), look.status) {
            ("Exception" | "Killed" | "Cancelled" | "Interrupted", _) => Err(BmcError::Refused {
                request: look.request.clone(),
                answer: format!(
                    "the task ended as {}: {}",
                    body.word("TaskState"),
                    message::sentence(&look.messages())
                ),
                transient: false,
            }),
            ("Completed", _) => Ok(TaskEnd::Done),
            (_, StatusCode::ACCEPTED) => Ok(TaskEnd::Running),
            ("", _) => Ok(TaskEnd::Done),
            (_, _) => Ok(TaskEnd::Running),
        }
    }
}

fn pause(answer: &Answer) -> Duration {
    answer.retry_after.unwrap_or(LOOK_EVERY).clamp(SHORTEST_PAUSE, LONGEST_PAUSE)
}
