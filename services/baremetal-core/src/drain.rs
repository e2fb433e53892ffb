//! Nodes whose compute host is drained: a request that waits for the drain, its refusal, and the end of the drain.

use hardware::PowerState;
use jiff::Timestamp;

use crate::{
    AfterDrain, DrainFate, DrainRequest, DrainStage, Failure, HistoryEntry, Node, PowerRequest,
    Reason, State, WantedSteps,
};

/// A new request that needs the node's host drained first.
#[derive(Clone, Debug)]
pub struct NewDrainRequest {
    /// The name of the compute host in the cloud.
    pub host: String,
    /// The action that follows when the host is drained.
    pub then: AfterDrain,
    /// The steps of the request, for a verb.
    pub steps: Option<WantedSteps>,
    /// Whether the steps run without a boot of the ramdisk.
    pub disables_ramdisk: bool,
    /// Clusters that may lose their quorum by the drain.
    pub forced: Vec<String>,
    /// The user who makes the request.
    pub by: Option<String>,
    /// The id of the project of the user's token.
    pub project: Option<String>,
}

impl Node {
    /// Returns the power state after a change of power that waits for the drain.
    pub(crate) fn power_after_drain(&self) -> Option<PowerState> {
        let leaving = self.leaving.as_ref().filter(|leaving| leaving.is_waiting())?;
        match leaving.then {
            AfterDrain::Power { change, .. } => {
                PowerRequest::new(change, leaving.asked_at).leads_to()
            }
            AfterDrain::Maintenance
            | AfterDrain::Rebuild
            | AfterDrain::Undeploy
            | AfterDrain::Service
            | AfterDrain::Rescue => None,
        }
    }

    /// Returns the provision state in which the current work ends, or a request that waits for a drain.
    pub fn leads_to(&self) -> Option<State> {
        let waiting = self.leaving.as_ref().filter(|leaving| leaving.is_waiting());
        let after_drain = waiting.and_then(|leaving| match leaving.then {
            AfterDrain::Rebuild | AfterDrain::Service => Some(State::Active),
            AfterDrain::Rescue => Some(State::Rescued),
            AfterDrain::Undeploy => Some(State::Available),
            AfterDrain::Maintenance | AfterDrain::Power { .. } => None,
        });
        self.target_provision_state.or(after_drain)
    }
}

/// Returns the node with a request that waits for the drain of its host. The new request replaces an earlier one and continues the earlier
/// one's drain.
pub fn wait_for_drain(
    node: &Node,
    request: NewDrainRequest,
    now: Timestamp,
) -> (Node, HistoryEntry) {
    let stage = match node.leaving.as_ref().map(|before| before.stage) {
        Some(DrainStage::Asking(owner) | DrainStage::Waiting(owner)) => DrainStage::Asking(owner),
        Some(DrainStage::Wanted | DrainStage::Ending) | None => DrainStage::Wanted,
    };
    let NewDrainRequest { host, then, steps, disables_ramdisk, forced, by, project } = request;
    let event = format!("{:?} requested; draining host {host} first", then.as_str());
    let leaving = DrainRequest {
        host,
        then,
        steps,
        disables_ramdisk,
        forced,
        asked_by: by,
        project,
        asked_at: now,
        stage,
    };
    let mut asked = Node { leaving: Some(leaving), failure: None, ..node.clone() };
    if then != AfterDrain::Rescue {
        asked.forget_rescue_password();
    }
    let entry = HistoryEntry::changed(node, &asked, event, now);
    (asked, entry)
}

/// Returns the node when its maintenance ends: the conductor will end the drain of `host`, unless another request waits for the drain.
pub fn end_maintenance_drain(node: &Node, host: &str, by: Option<String>, now: Timestamp) -> Node {
    if node.leaving.as_ref().is_some_and(DrainRequest::is_waiting) {
        return node.clone();
    }
    let leaving = DrainRequest {
        host: host.to_owned(),
        then: AfterDrain::Maintenance,
        steps: None,
        disables_ramdisk: false,
        forced: Vec::new(),
        asked_by: by,
        project: None,
        asked_at: now,
        stage: DrainStage::Ending,
    };
    Node { leaving: Some(leaving), ..node.clone() }
}

/// Returns the node after its request was refused, with the entry for its history.
pub fn drain_refused(
    node: &Node,
    why: &str,
    end: DrainFate,
    now: Timestamp,
) -> (Node, HistoryEntry) {
    let leaving = node.leaving.as_ref().and_then(|leaving| leaving.withdrawn(end));
    let (host, then) = names(node);
    let why = shown_reason(node, why);
    let cause = format!("\"{then}\" was not carried out on host {host}: {why}");
    let failure = Failure::new(Reason::DrainRefused, cause);
    let entry = HistoryEntry::failed(node, node, failure.to_string(), now);
    let mut stayed = Node { leaving, failure: Some(failure), ..node.clone() };
    stayed.forget_rescue_password();
    (stayed, entry)
}

/// Returns the node with the reason why its drain makes no progress and the entry for its history, or `None` if that was recorded before.
pub fn drain_stuck(node: &Node, why: &str, now: Timestamp) -> Option<(Node, HistoryEntry)> {
    let is_told = |failure: &Failure| failure.reason == Reason::DrainWaits;
    if node.failure.as_ref().is_some_and(is_told) {
        return None;
    }
    let is_ending =
        node.leaving.as_ref().is_some_and(|leaving| leaving.stage == DrainStage::Ending);
    let (host, then) = names(node);
    let why = shown_reason(node, why);
    let cause = match is_ending {
        true => format!("host {host} takes no servers because its drain has not ended: {why}"),
        false => format!("\"{then}\" waits for the drain of host {host}: {why}"),
    };
    let failure = Failure::new(Reason::DrainWaits, cause);
    let entry = HistoryEntry::failed(node, node, failure.to_string(), now);
    Some((Node { failure: Some(failure), ..node.clone() }, entry))
}

/// Returns the host and the request that the node waits for.
fn names(node: &Node) -> (&str, &'static str) {
    node.leaving.as_ref().map_or(("", ""), |leaving| (&leaving.host, leaving.then.as_str()))
}

/// Returns the reason to show on the node. The reason names other projects' servers, which the lessee of a node must not see.
pub(crate) fn shown_reason<'a>(node: &Node, why: &'a str) -> &'a str {
    if node.lessee.is_some() { "the host carries servers of other projects" } else { why }
}

#[cfg(test)]
mod tests;
