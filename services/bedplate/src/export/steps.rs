//! Creates a node in Ironic. Each step looks first whether its result is there already, so a repetition continues an interrupted export.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::time::sleep;

use super::mapping::{Exported, Goal};
use crate::exit::{Exit, Failure};
use crate::ironic::{Ironic, Object, is_set, word};
use crate::let_go::is_let_go;
use crate::move_report::MoveResult;

/// How long Ironic may take for one change of provision state. None of these changes waits for a machine.
const STATE_TIMEOUT: Duration = Duration::from_mins(5);
/// The time between two looks at the provision state.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// The next step of a node towards its state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Done,
    Wait,
    Request(&'static str),
    /// The last request failed, or the node is in another state than an export leads to.
    Stuck,
}

/// Creates the node with everything that belongs to it, and brings it to its state.
pub(super) async fn create(ironic: &Ironic, it: &Exported) -> anyhow::Result<MoveResult> {
    let path = format!("/v1/nodes/{}", word(&it.node, "uuid"));
    let mut is_changed = false;
    if ironic.find::<Object>(&path).await?.is_none() {
        ironic.post("/v1/nodes", &it.node).await?;
        is_changed = true;
    }
    for (list, parts) in [("/v1/portgroups", &it.groups), ("/v1/ports", &it.ports)] {
        for part in parts {
            if ironic.find::<Object>(&format!("{list}/{}", word(part, "uuid"))).await?.is_none() {
                ironic.post(list, part).await?;
                is_changed = true;
            }
        }
    }
    let node: Object = ironic.get(&path).await?;
    if words(node.get("traits")) != words(Some(&it.traits)) {
        ironic.put(&format!("{path}/traits"), &json!({"traits": it.traits})).await?;
        is_changed = true;
    }
    is_changed |= reach(ironic, &path, it.goal).await?;
    is_changed |= mark(ironic, &path, it).await?;
    Ok(if is_changed { MoveResult::Taken } else { MoveResult::Present })
}

/// The words of a list, whose order means nothing.
fn words(list: Option<&Value>) -> BTreeSet<&str> {
    list.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Brings the node to its state. Returns whether a request was needed.
async fn reach(ironic: &Ironic, path: &str, goal: Goal) -> anyhow::Result<bool> {
    let (mut requested, mut end) = (None, Instant::now() + STATE_TIMEOUT);
    loop {
        let node: Object = ironic.get(path).await?;
        let state = word(&node, "provision_state");
        match next(goal, state, requested) {
            Step::Done => return Ok(requested.is_some()),
            Step::Request(verb) => {
                ironic.put(&format!("{path}/states/provision"), &json!({"target": verb})).await?;
                (requested, end) = (Some(verb), Instant::now() + STATE_TIMEOUT);
            }
            Step::Wait if Instant::now() < end => sleep(LOOK_EVERY).await,
            Step::Wait | Step::Stuck => {
                let why = word(&node, "last_error");
                let sentence = format!(
                    "provision_state: the node is {state:?} in Ironic instead of {:?}. {why}",
                    goal.state()
                );
                return Err(Failure::new(Exit::Failed, sentence.trim_end()).into());
            }
        }
    }
}

/// The next step of a node in `state`, after the request `last`.
fn next(goal: Goal, state: &str, last: Option<&str>) -> Step {
    let verb = match (goal, state) {
        (_, "verifying" | "cleaning" | "adopting") => return Step::Wait,
        (goal, state) if goal.state() == state => return Step::Done,
        (_, "enroll") => "manage",
        (Goal::Available, "manageable") => "provide",
        (Goal::Active, "manageable" | "adopt failed") => "adopt",
        (Goal::Enroll | Goal::Manageable | Goal::Available | Goal::Active, _) => {
            return Step::Stuck;
        }
    };
    if last == Some(verb) { Step::Stuck } else { Step::Request(verb) }
}

/// Sets the marks and the maintenance of the node. Returns whether a request was needed.
async fn mark(ironic: &Ironic, path: &str, it: &Exported) -> anyhow::Result<bool> {
    let node: Object = ironic.get(path).await?;
    let patch: Vec<Value> = patch(&node, &it.marks);
    let mut is_changed = !patch.is_empty();
    if is_changed {
        ironic.patch(path, &patch).await?;
    }
    let maintenance = format!("{path}/maintenance");
    match &it.maintenance {
        Some(reason) if !is_set(&node, "maintenance") => {
            ironic.put(&maintenance, &json!({"reason": reason})).await?;
            is_changed = true;
        }
        // The node returns to the Ironic from which it was imported.
        None if is_let_go(&node) => {
            ironic.delete(&maintenance).await?;
            is_changed = true;
        }
        Some(_) | None => {}
    }
    Ok(is_changed)
}

/// The operations that give `node` these marks. Ironic 39 answers 500 if `automated_clean` is removed, so null replaces a value.
fn patch(node: &Object, marks: &Object) -> Vec<Value> {
    let differs =
        |(field, value): &(&String, &Value)| node.get(*field).unwrap_or(&Value::Null) != *value;
    let operation = |(field, value): (&String, &Value)| json!({"op": "replace", "path": format!("/{field}"), "value": value});
    marks.iter().filter(differs).map(operation).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_reaches_its_state_by_verbs_that_power_nothing() {
        for (goal, state, last, want) in [
            (Goal::Enroll, "enroll", None, Step::Done),
            (Goal::Manageable, "enroll", None, Step::Request("manage")),
            (Goal::Manageable, "verifying", Some("manage"), Step::Wait),
            (Goal::Manageable, "enroll", Some("manage"), Step::Stuck),
            (Goal::Manageable, "manageable", Some("manage"), Step::Done),
            (Goal::Available, "manageable", Some("manage"), Step::Request("provide")),
            (Goal::Available, "cleaning", Some("provide"), Step::Wait),
            (Goal::Available, "clean failed", Some("provide"), Step::Stuck),
            (Goal::Active, "manageable", None, Step::Request("adopt")),
            (Goal::Active, "adopt failed", Some("adopt"), Step::Stuck),
            (Goal::Active, "adopt failed", None, Step::Request("adopt")),
            (Goal::Active, "available", None, Step::Stuck),
            (Goal::Enroll, "active", None, Step::Stuck),
        ] {
            assert_eq!(next(goal, state, last), want, "{goal:?} {state} {last:?}");
        }
    }

    #[test]
    fn only_marks_that_differ_are_set() {
        let object = |value: Value| value.as_object().unwrap().clone();
        let node = object(json!({"automated_clean": false, "protected": false, "retired": true}));
        let marks = object(json!({"automated_clean": null, "protected": true, "retired": true}));
        let want = [
            json!({"op": "replace", "path": "/automated_clean", "value": null}),
            json!({"op": "replace", "path": "/protected", "value": true}),
        ];
        assert_eq!(patch(&node, &marks), want);
    }
}
