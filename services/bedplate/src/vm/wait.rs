//! Waits for a VM until it reaches its goal or cannot reach it.

use anyhow::{Context, bail};
use jiff::Timestamp;
use serde_json::Value;

use crate::api::Api;
use crate::output::{Format, plain};
use crate::path::element_path;
use crate::progress::{Display, Row};
use crate::wait_options::Deadline;

use super::route::{SNAPSHOTS, path};

/// The goal of waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Goal {
    /// This status, and no action in progress.
    Is(&'static str),
    /// No action in progress.
    Settled,
}

/// The progress of a VM towards the goal.
#[derive(Debug, PartialEq, Eq)]
enum Progress {
    Reached,
    Underway,
    Failed(String),
}

/// The statuses of a VM with an action in progress.
const UNDERWAY: [&str; 7] =
    ["BUILDING", "STARTING", "STOPPING", "REBOOTING", "RESIZING", "BUSY", "DELETING"];

fn judge(vm: &Value, goal: Goal) -> Progress {
    let status = vm["status"].as_str().unwrap_or_default();
    let (reason, next) = (text(vm, "status_reason"), text(vm, "next_action"));
    let why = || match (reason, next) {
        ("", _) => format!("status {status}"),
        (reason, "") => format!("status {status}: {reason}"),
        (reason, next) => format!("status {status}: {reason}. Hint: {next}"),
    };
    // The end of the lease was undone, so clusterd will switch the VM on again soon.
    let starts = status == "STOPPED" && vm["off_by_lease"] == true;
    match goal {
        // clusterd repeats a failed call by itself, and so waiting goes on; a VM that waits for a person does not change.
        _ if (starts || UNDERWAY.contains(&status)) && next.is_empty() => Progress::Underway,
        Goal::Is(wanted) if wanted == status => Progress::Reached,
        Goal::Settled if !UNDERWAY.contains(&status) && next.is_empty() => Progress::Reached,
        Goal::Is(_) | Goal::Settled => Progress::Failed(why()),
    }
}

fn text<'v>(vm: &'v Value, key: &str) -> &'v str {
    vm[key].as_str().unwrap_or_default()
}

/// Why the action that was requested at that time failed, if an event tells.
fn failure_since(events: &Value, since: &str) -> Option<String> {
    let since: Timestamp = since.parse().ok()?;
    let is_failed_action = |event: &&Value| {
        let at = text(event, "at").parse::<Timestamp>();
        ["ErrandFailed", "ErrandRefused"].contains(&text(event, "reason"))
            && at.is_ok_and(|at| since <= at)
    };
    let last = events["events"].as_array()?.iter().rev().find(is_failed_action)?;
    Some(text(last, "message").to_owned())
}

/// Shows the VM's progress until the goal is reached. Returns an error if the goal cannot be reached without a person.
pub(super) async fn for_goal(
    api: &Api,
    asked: &Value,
    goal: Goal,
    deadline: Deadline,
    format: Format,
) -> anyhow::Result<Value> {
    let id = asked["uuid"].as_str().context("the response of the API has no id")?;
    let begun = Timestamp::now();
    let mut display = progress(format);
    loop {
        let vm = api.get(&path(id, "")?).await?;
        if let Some(display) = &mut display {
            display.show(vec![row(&vm)], begun)?;
        }
        let verdict = judge(&vm, goal);
        if verdict == Progress::Underway {
            deadline.pause(&plain(&format!("the change of {}", name(&vm)))).await?;
            continue;
        }
        if let Some(display) = display.take() {
            display.finish();
        }
        let events = api.get(&path(id, "/events")?).await?;
        let why = match (failure_since(&events, text(asked, "updated_at")), verdict) {
            (Some(why), _) | (None, Progress::Failed(why)) => why,
            (None, Progress::Reached | Progress::Underway) => return Ok(vm),
        };
        bail!("{}", plain(&format!("{}: {why}", name(&vm))));
    }
}

/// The progress display for people; programs get only the final answer.
fn progress(format: Format) -> Option<Display> {
    format.is_for_people().then(Display::fitting)
}

/// Waits until a snapshot is ready. Returns an error if it failed.
pub(super) async fn for_snapshot(
    api: &Api,
    asked: &Value,
    deadline: Deadline,
    format: Format,
) -> anyhow::Result<Value> {
    let id = asked["uuid"].as_str().context("the response of the API has no id")?;
    let begun = Timestamp::now();
    let mut display = progress(format);
    loop {
        let snapshot = api.get(&element_path(SNAPSHOTS, id, "")?).await?;
        if let Some(display) = &mut display {
            display.show(vec![row(&snapshot)], begun)?;
        }
        match text(&snapshot, "status") {
            "wanted" | "making" => {
                deadline.pause(&plain(&format!("snapshot {}", name(&snapshot)))).await?;
            }
            "active" => return Ok(snapshot),
            status => {
                let why = text(&snapshot, "status_reason");
                bail!(
                    "{}",
                    plain(&format!("snapshot {}: status {status}: {why}", name(&snapshot)))
                );
            }
        }
    }
}

/// Waits until a VM and all its cloud objects are gone.
pub(super) async fn for_deletion(api: &Api, id: &str, deadline: Deadline) -> anyhow::Result<()> {
    let begun = Timestamp::now();
    let mut display = Display::fitting();
    while let Some(vm) = api.find(&path(id, "")?).await? {
        display.show(vec![row(&vm)], begun)?;
        deadline.pause(&plain(&format!("the deletion of {}", name(&vm)))).await?;
    }
    display.finish();
    Ok(())
}

fn name(vm: &Value) -> &str {
    vm["name"].as_str().unwrap_or_default()
}

fn row(vm: &Value) -> Row {
    let status = vm["status"].as_str().unwrap_or_default();
    let reason = vm["status_reason"].as_str().unwrap_or_default();
    let live = if reason.is_empty() { status.to_owned() } else { format!("{status}, {reason}") };
    Row {
        key: name(vm).to_owned(),
        label: name(vm).to_owned(),
        log: Some(format!("{}: {status}", name(vm))),
        live,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn vm(status: &str, next: &str) -> Value {
        json!({"status": status, "status_reason": "no host has room", "next_action": next})
    }

    #[test]
    fn waiting_ends_when_the_goal_is_reached_or_out_of_reach() {
        let running = Goal::Is("ACTIVE");
        assert_eq!(judge(&vm("ACTIVE", ""), running), Progress::Reached);
        assert_eq!(judge(&vm("BUILDING", ""), running), Progress::Underway);
        let never = |why: &str| Progress::Failed(why.to_owned());
        assert_eq!(
            judge(&vm("BUILDING", "ask for a smaller one"), running),
            never("status BUILDING: no host has room. Hint: ask for a smaller one")
        );
        assert_eq!(judge(&vm("FAILED", ""), running), never("status FAILED: no host has room"));
        assert_eq!(judge(&vm("STOPPED", ""), running), never("status STOPPED: no host has room"));
        assert_eq!(judge(&vm("STOPPED", ""), Goal::Settled), Progress::Reached);
        let starts = json!({"status": "STOPPED", "off_by_lease": true});
        assert_eq!(judge(&starts, Goal::Settled), Progress::Underway);
    }

    #[test]
    fn a_failure_is_found_in_the_events_after_the_request() {
        let event = |reason: &str, at: &str| json!({"reason": reason, "at": at, "message": reason});
        let events = json!({"events": [
            event("ErrandFailed", "2026-01-01T00:00:00Z"),
            event("Built", "2026-01-02T00:00:00Z"),
        ]});
        assert_eq!(failure_since(&events, "2026-01-01T12:00:00Z"), None);
        assert_eq!(failure_since(&events, "2026-01-01T00:00:00Z").as_deref(), Some("ErrandFailed"));
        assert_eq!(failure_since(&events, ""), None);
    }
}
