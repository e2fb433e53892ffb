//! The state of a rack's nodes for people.

use api_client::baremetald::{GoalProgress, RackMachine, Task, TaskProgress};
use indicatif::HumanBytes;
use jiff::{SignedDuration, Timestamp};

/// Whether nothing more happens to the node without a request.
pub(crate) fn is_settled(machine: &RackMachine) -> bool {
    match machine.way {
        Some(GoalProgress::Working | GoalProgress::Next) => false,
        Some(GoalProgress::There | GoalProgress::Stuck | GoalProgress::LeftAlone) | None => true,
    }
}

/// The present step, or the last failure.
pub(crate) fn doing(machine: &RackMachine) -> String {
    match (&machine.task, &machine.failure) {
        (Some(task), _) => describe(task),
        (None, Some(failure)) => failure.cause.clone(),
        (None, None) => String::new(),
    }
}

/// The estimated remaining time of the present step, from the bytes written so far.
pub(crate) fn eta(machine: &RackMachine, now: Timestamp) -> Option<SignedDuration> {
    let task = machine.task.as_ref()?;
    let TaskProgress { done_bytes, total_bytes } = task.progress?;
    let elapsed = now.duration_since(task.since).as_secs_f64();
    let left = total_bytes?.checked_sub(done_bytes)?;
    (done_bytes > 0).then(|| {
        SignedDuration::from_secs((left as f64 * elapsed / done_bytes as f64).ceil() as i64)
    })
}

fn describe(task: &Task) -> String {
    let bytes = match task.progress {
        Some(TaskProgress { done_bytes, total_bytes: Some(total) }) => {
            format!(" {} of {}", HumanBytes(done_bytes), HumanBytes(total))
        }
        Some(TaskProgress { done_bytes, total_bytes: None }) => {
            format!(" {}", HumanBytes(done_bytes))
        }
        None => String::new(),
    };
    format!("{}/{} {}{bytes}", task.number, task.of, task.what)
}
