//! Waits for a VM until it reaches its goal or cannot reach it.

use anyhow::bail;
use api_client::clusterd::{Event, Events, Snapshot, Vm};
use api_client::{WithJson, element_path};
use jiff::Timestamp;

use crate::api::Api;
use crate::output::{Format, plain};
use crate::progress::{Display, Row};
use crate::wait_options::Deadline;

use super::route::{SNAPSHOTS, path};

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

fn judge(vm: &Vm, goal: Goal) -> Progress {
    let (status, next) = (vm.status.as_str(), vm.next_action.as_str());
    let reason = vm.status_reason.as_deref().unwrap_or_default();
    let why = || match (reason, next) {
        ("", _) => format!("status {status}"),
        (reason, "") => format!("status {status}: {reason}"),
        (reason, next) => format!("status {status}: {reason}. Hint: {next}"),
    };
    // The end of the lease was undone, so clusterd will switch the VM on again soon.
    let starts = status == "STOPPED" && vm.off_by_lease;
    match goal {
        // clusterd repeats a failed call by itself, and so waiting goes on; a VM that waits for a person does not change.
        _ if (starts || UNDERWAY.contains(&status)) && next.is_empty() => Progress::Underway,
        Goal::Is(wanted) if wanted == status => Progress::Reached,
        Goal::Settled if !UNDERWAY.contains(&status) && next.is_empty() => Progress::Reached,
        Goal::Is(_) | Goal::Settled => Progress::Failed(why()),
    }
}

/// Why the action that was requested at that time failed, if an event tells.
fn failure_since<'a>(
    events: impl DoubleEndedIterator<Item = &'a Event>,
    since: Option<Timestamp>,
) -> Option<String> {
    let since = since?;
    let is_failed_action = |event: &&Event| {
        ["ActionFailed", "ActionRefused"].contains(&event.reason.as_str()) && since <= event.at
    };
    Some(events.rev().find(is_failed_action)?.message.clone())
}

/// Shows the VM's progress until the goal is reached. Returns an error if the goal cannot be reached without a person.
pub(super) async fn for_goal(
    api: &Api,
    asked: &Vm,
    goal: Goal,
    deadline: Deadline,
    format: Format,
) -> anyhow::Result<WithJson<Vm>> {
    let id = &asked.uuid;
    let begun = Timestamp::now();
    let mut display = progress(format);
    loop {
        let vm: WithJson<Vm> = api.get(&path(id, "")?).await?;
        if let Some(display) = &mut display {
            display.show(vec![vm_row(&vm)], begun)?;
        }
        let verdict = judge(&vm, goal);
        if verdict == Progress::Underway {
            deadline.pause(&plain(&format!("the change of {}", vm.name))).await?;
            continue;
        }
        if let Some(display) = display.take() {
            display.finish();
        }
        let Events { events } = api.get(&path(id, "/events")?).await?;
        let events = events.iter().map(|event| &event.read);
        let why = match (failure_since(events, asked.updated_at), verdict) {
            (Some(why), _) | (None, Progress::Failed(why)) => why,
            (None, Progress::Reached | Progress::Underway) => return Ok(vm),
        };
        bail!("{}", plain(&format!("{}: {why}", vm.name)));
    }
}

/// The progress display for people; programs get only the final answer.
fn progress(format: Format) -> Option<Display> {
    format.is_for_people().then(Display::fitting)
}

/// Waits until a snapshot is ready. Returns an error if it failed.
pub(super) async fn for_snapshot(
    api: &Api,
    id: &str,
    deadline: Deadline,
    format: Format,
) -> anyhow::Result<WithJson<Snapshot>> {
    let begun = Timestamp::now();
    let mut display = progress(format);
    loop {
        let snapshot: WithJson<Snapshot> = api.get(&element_path(SNAPSHOTS, id, "")?).await?;
        if let Some(display) = &mut display {
            let Snapshot { name, status, status_reason, .. } = &snapshot.read;
            display.show(vec![row(name, status, status_reason.as_deref())], begun)?;
        }
        match snapshot.status.as_str() {
            "wanted" | "making" => {
                deadline.pause(&plain(&format!("snapshot {}", snapshot.name))).await?;
            }
            "active" => return Ok(snapshot),
            status => {
                let why = snapshot.status_reason.as_deref().unwrap_or_default();
                bail!("{}", plain(&format!("snapshot {}: status {status}: {why}", snapshot.name)));
            }
        }
    }
}

/// Waits until a VM and all its cloud objects are gone.
pub(super) async fn for_deletion(api: &Api, id: &str, deadline: Deadline) -> anyhow::Result<()> {
    let begun = Timestamp::now();
    let mut display = Display::fitting();
    while let Some(vm) = api.find::<Vm>(&path(id, "")?).await? {
        display.show(vec![vm_row(&vm)], begun)?;
        deadline.pause(&plain(&format!("the deletion of {}", vm.name))).await?;
    }
    display.finish();
    Ok(())
}

fn vm_row(vm: &Vm) -> Row {
    row(&vm.name, &vm.status, vm.status_reason.as_deref())
}

fn row(name: &str, status: &str, reason: Option<&str>) -> Row {
    let reason = reason.unwrap_or_default();
    let live = if reason.is_empty() { status.to_owned() } else { format!("{status}, {reason}") };
    Row {
        key: name.to_owned(),
        label: name.to_owned(),
        log: Some(format!("{name}: {status}")),
        live,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vm(status: &str, next: &str) -> Vm {
        Vm {
            uuid: "u1".to_owned(),
            name: "lab-1".to_owned(),
            user_id: "mia".to_owned(),
            status: status.to_owned(),
            status_reason: Some("no host has room".to_owned()),
            next_action: next.to_owned(),
            image: "debian-12".to_owned(),
            flavor: "m1.small".to_owned(),
            ram_mib: 2048,
            has_user_data: false,
            address: None,
            floating_ip: None,
            dns_name: None,
            lease: None,
            off_by_lease: false,
            updated_at: None,
        }
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
        let starts = Vm { off_by_lease: true, ..vm("STOPPED", "") };
        assert_eq!(judge(&starts, Goal::Settled), Progress::Underway);
    }

    #[test]
    fn a_failure_is_found_in_the_events_after_the_request() {
        let event = |reason: &str, at: &str| Event {
            id: None,
            at: at.parse().unwrap(),
            severity: "warning".to_owned(),
            reason: reason.to_owned(),
            message: reason.to_owned(),
        };
        let events =
            [event("ActionFailed", "2026-01-01T00:00:00Z"), event("Built", "2026-01-02T00:00:00Z")];
        let since = |at: &str| failure_since(events.iter(), Some(at.parse().unwrap()));
        assert_eq!(since("2026-01-01T12:00:00Z"), None);
        assert_eq!(since("2026-01-01T00:00:00Z").as_deref(), Some("ActionFailed"));
        assert_eq!(failure_since(events.iter(), None), None);
    }
}
