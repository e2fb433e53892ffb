//! The nodes of a rack in a response.

use indicatif::HumanBytes;
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;

/// The response to `GET /bedplate/v1/racks/{rack}`.
#[derive(Debug, Deserialize)]
pub(crate) struct RackStatus {
    pub(crate) machines: Vec<Machine>,
}

/// A node of the rack.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Machine {
    pub(crate) uuid: String,
    pub(crate) name: Option<String>,
    pub(crate) position: Option<u32>,
    pub(crate) provision_state: String,
    pub(crate) power_state: Option<String>,
    pub(crate) since: Timestamp,
    pub(crate) task: Option<Task>,
    pub(crate) failure: Option<Failure>,
    pub(crate) way: Option<GoalProgress>,
}

/// The step that the node's work is at.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Task {
    pub(crate) what: String,
    pub(crate) number: usize,
    pub(crate) of: usize,
    pub(crate) since: Timestamp,
    pub(crate) progress: Option<Bytes>,
}

/// The progress of a long step.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) struct Bytes {
    pub(crate) done_bytes: u64,
    pub(crate) total_bytes: Option<u64>,
}

/// Why the node's last work failed.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Failure {
    pub(crate) cause: String,
    pub(crate) next_action: String,
}

/// The node's progress towards the rack's goal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum GoalProgress {
    There,
    #[serde(rename = "under_way")]
    Working,
    Next,
    Stuck,
    LeftAlone,
}

impl Machine {
    /// The node's name, or its id.
    pub(crate) fn label(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.uuid)
    }

    /// Whether nothing more happens to the node without a request.
    pub(crate) fn is_settled(&self) -> bool {
        match self.way {
            Some(GoalProgress::Working | GoalProgress::Next) => false,
            Some(GoalProgress::There | GoalProgress::Stuck | GoalProgress::LeftAlone) | None => {
                true
            }
        }
    }

    /// The present step, or the last failure.
    pub(crate) fn doing(&self) -> String {
        match (&self.task, &self.failure) {
            (Some(task), _) => task.describe(),
            (None, Some(failure)) => failure.cause.clone(),
            (None, None) => String::new(),
        }
    }

    /// The estimated remaining time of the present step, from the bytes written so far.
    pub(crate) fn eta(&self, now: Timestamp) -> Option<SignedDuration> {
        let task = self.task.as_ref()?;
        let Bytes { done_bytes, total_bytes } = task.progress?;
        let elapsed = now.duration_since(task.since).as_secs_f64();
        let left = total_bytes?.checked_sub(done_bytes)?;
        (done_bytes > 0).then(|| {
            SignedDuration::from_secs((left as f64 * elapsed / done_bytes as f64).ceil() as i64)
        })
    }
}

impl Task {
    fn describe(&self) -> String {
        let bytes = match self.progress {
            Some(Bytes { done_bytes, total_bytes: Some(total) }) => {
                format!(" {} of {}", HumanBytes(done_bytes), HumanBytes(total))
            }
            Some(Bytes { done_bytes, total_bytes: None }) => format!(" {}", HumanBytes(done_bytes)),
            None => String::new(),
        };
        format!("{}/{} {}{bytes}", self.number, self.of, self.what)
    }
}
