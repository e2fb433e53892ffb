//! Plans the next step of a task that runs on child nodes.
//!
//! The node records a change of power on each child node, in one write. Each child node's own turn carries the change out, and the node waits.

use decision::{Decision, Requeue};
use hardware::PowerChange;

use super::seen::Observed;
use super::turn::{MachineTurn, Planned};
use crate::{
    ChildNodes, ChildStep, Failure, HistoryEntry, Node, NodeUpdate, NodeUuid, Reason, StepRefused,
    Task, Work, compute_host_name, power_change_stops_servers, request_power,
};

/// How a step went on one child node.
enum Outcome {
    Pending,
    Done,
    Failed(Failure),
}

/// Decides the next step of a step that runs on child nodes.
pub(super) fn plan_child_step(turn: &MachineTurn<'_>, run: &ChildStep, seen: &Observed) -> Planned {
    let Some(change) = run.step.name.power_change() else {
        let refused = StepRefused::NotOnChildren { name: run.step.name.clone() };
        return turn.give_up(Failure::new(Reason::StepFailed, refused.to_string()));
    };
    match &run.asked {
        Some(asked) => await_children(turn, asked, change, seen),
        None => ask_children(turn, run, change, seen),
    }
}

/// Requests `change` from all child nodes of the step, or from none of them if one refuses.
fn ask_children(
    turn: &MachineTurn<'_>,
    run: &ChildStep,
    change: PowerChange,
    seen: &Observed,
) -> Planned {
    if let Some(missing) = missing(run, seen) {
        let cause = format!("node {missing} is not a child node any more");
        return turn.give_up(Failure::new(Reason::StepFailed, cause));
    }
    let is_wanted =
        |child: &&Node| run.step.children.as_ref().is_some_and(|it| it.contain(child.id));
    let wanted: Vec<&Node> = seen.children.iter().filter(is_wanted).collect();
    if wanted.is_empty() {
        return turn.next_task(seen);
    }
    // An earlier change of power ends by its own timeout.
    if wanted.iter().any(|child| child.power_request.is_some()) {
        return turn.look_again();
    }
    let asked: Result<Vec<_>, String> =
        wanted.iter().map(|child| ask_child(turn, run, child, change)).collect();
    let asked = match asked {
        Ok(asked) => asked,
        Err(cause) => return turn.give_up(Failure::new(Reason::StepFailed, cause)),
    };
    let mut node = turn.node.clone();
    if let Some(Task::StepOnChildren(run)) = node.work.as_mut().and_then(Work::task_mut) {
        run.asked = Some(asked.iter().map(|(child, _)| child.id).collect());
    }
    let update = NodeUpdate { children: asked, ..NodeUpdate::new(node, []) };
    let next_turn = Requeue::After(turn.rules.timeouts.poll_every);
    Ok(Decision { change: Some(update), ..Decision::rest(next_turn) })
}

/// Returns a named node that is not among the child nodes.
fn missing(run: &ChildStep, seen: &Observed) -> Option<NodeUuid> {
    let Some(ChildNodes::Named(named)) = &run.step.children else { return None };
    let is_child = |id: &NodeUuid| seen.children.iter().any(|child| child.id == *id);
    named.iter().copied().find(|id| !is_child(id))
}

/// Returns the child node with the change requested and the entry for its history, or why the child node refuses the change.
fn ask_child(
    turn: &MachineTurn<'_>,
    run: &ChildStep,
    child: &Node,
    change: PowerChange,
) -> Result<(Node, HistoryEntry), String> {
    if let Some(host) = compute_host_name(child).filter(|_| power_change_stops_servers(change)) {
        // The turn of a step asks nobody to drain a host.
        return Err(format!(
            "child node \"{}\" is the compute host {host}, whose servers would stop; power it off by a request of its own",
            child.label()
        ));
    }
    let deadline = turn.now + turn.rules.timeouts.power;
    let mut asked = request_power(child, change, deadline).map_err(|why| why.to_string())?;
    // As in Ironic, a change of power forgets the last failure. A failure that is there later is of this change.
    asked.failure = None;
    let (kind, name) = (run.step.kind.as_str(), &run.step.name);
    let event = format!("the {kind} step {name} of node {} begins here", turn.node.label());
    let entry = HistoryEntry::changed(child, &asked, event, turn.now);
    Ok((asked, entry))
}

/// Waits until no child node has the change of power in progress, and fails with the first failure of a child node.
fn await_children(
    turn: &MachineTurn<'_>,
    asked: &[NodeUuid],
    change: PowerChange,
    seen: &Observed,
) -> Planned {
    let mut failure = None;
    for id in asked {
        match outcome(*id, change, seen) {
            Outcome::Pending => return turn.look_again(),
            Outcome::Done => {}
            Outcome::Failed(why) => {
                failure.get_or_insert(why);
            }
        }
    }
    match failure {
        Some(failure) => turn.give_up(failure),
        None => turn.next_task(seen),
    }
}

fn outcome(id: NodeUuid, change: PowerChange, seen: &Observed) -> Outcome {
    let failed = |cause: String| Outcome::Failed(Failure::new(Reason::StepFailed, cause));
    let Some(child) = seen.children.iter().find(|child| child.id == id) else {
        return failed(format!("child node {id} was deleted while the step ran on it"));
    };
    if child.power_request.is_some() {
        return Outcome::Pending;
    }
    let label = child.label();
    match &child.failure {
        Some(failure) => {
            let cause = format!("child node \"{label}\": {}", failure.cause);
            Outcome::Failed(Failure::new(failure.reason, cause))
        }
        None if child.power_state == Some(change.leads_to()) => Outcome::Done,
        None => failed(format!(
            "another request ended the change of power of child node \"{label}\" before \"{}\"",
            change.leads_to()
        )),
    }
}
