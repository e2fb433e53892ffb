//! Explains the state of a node to people: why the node is in its state, and what to do next.

use std::borrow::Cow;

use jiff::Timestamp;

use crate::{Failure, Hypervisor, Node, PasswordRotation, State, Work};

/// The explanation of a node's state. All texts are sentences without a full stop.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// The state and its reason.
    pub summary: String,
    /// When the node entered the state.
    pub since: Timestamp,
    /// The task in progress, if there is one.
    pub task: Option<CurrentTask>,
    /// Why the last work failed, if it did.
    pub failure: Option<Failure>,
    /// Advice for the caller.
    pub next: String,
}

/// The task in progress on a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CurrentTask {
    /// The task as words for people: `writing the image`.
    pub what: Cow<'static, str>,
    /// The position of the task in its list, counted from 1.
    pub number: usize,
    /// The number of tasks in the list.
    pub of: usize,
    pub since: Timestamp,
}

/// Explains why `node` is in its state and what to do next.
pub fn explain(node: &Node) -> Explanation {
    Explanation {
        summary: summary(node),
        since: node.provision_updated_at.unwrap_or(node.created_at),
        task: current_task(node),
        failure: node.failure.clone(),
        next: next(node),
    }
}

/// Returns the task in progress on `node`: a task of its work or, without work, a step of joining a cloud.
pub fn current_task(node: &Node) -> Option<CurrentTask> {
    let Some(work) = &node.work else { return joining(node) };
    let task = work.task()?;
    Some(CurrentTask {
        what: task.describe(),
        number: work.cursor + 1,
        of: work.tasks.len(),
        since: work.task_started_at,
    })
}

fn joining(node: &Node) -> Option<CurrentTask> {
    let host = node.hypervisor.as_ref().filter(|_| node.is_joining())?;
    let (number, of) = host.state.number()?;
    Some(CurrentTask { what: host.state.describe()?.into(), number, of, since: host.since })
}

fn summary(node: &Node) -> String {
    let state = node.provision_state;
    let because = match (&node.failure, node.work.as_ref().and_then(Work::task)) {
        (Some(failure), _) => failure.cause.clone(),
        (None, Some(task)) => format!("in progress: {}", task.describe()),
        (None, None) => match current_task(node) {
            Some(task) => format!("the machine is in use; in progress: {}", task.what),
            None => at_rest(node),
        },
    };
    let target = match node.target_provision_state {
        Some(target) if target != state => format!(", target state \"{target}\""),
        Some(_) | None => String::new(),
    };
    let maintenance = match &node.maintenance {
        Some(maintenance) => match &maintenance.reason {
            Some(reason) => format!("; the node is in maintenance: {reason}"),
            None => "; the node is in maintenance".to_owned(),
        },
        None => String::new(),
    };
    format!("the node is \"{state}\"{target}: {because}{maintenance}")
}

fn at_rest(node: &Node) -> String {
    if let Some(request) = &node.boot_setting_request {
        return format!("in progress: a change of the {}", request.wanted);
    }
    if node.password_rotation.as_ref().is_some_and(PasswordRotation::is_in_progress) {
        return "in progress: a change of the password of the BMC account".to_owned();
    }
    if !node.network_changes.are_done() {
        return "in progress: changes of the node's ports in Neutron".to_owned();
    }
    if let Some(leaving) = node.leaving.as_ref().filter(|leaving| leaving.is_waiting()) {
        let (host, then) = (&leaving.host, leaving.then.as_str());
        return format!("\"{then}\" was requested and waits until host {host} is drained");
    }
    match node.hypervisor.as_ref().and_then(|host| Some((host, host.joined_at()?))) {
        Some((host, _)) => format!("the machine is compute host {} of the cloud", host.host),
        None => meaning(node.provision_state).to_owned(),
    }
}

/// Describes a state in which no work is in progress and nothing has failed.
const fn meaning(state: State) -> &'static str {
    match state {
        State::Enroll => "the BMC has not been verified yet",
        State::Manageable => "the BMC is verified; the node can be inspected and cleaned",
        State::Available => "the node is clean and free to be deployed",
        State::Active => "the node is in use",
        State::CleanHold | State::DeployHold | State::ServiceHold => {
            "the work holds until \"unhold\" is requested"
        }
        State::Rescued => "the machine runs a rescue system",
        State::Verifying
        | State::Inspecting
        | State::InspectWait
        | State::Cleaning
        | State::CleanWait
        | State::Deploying
        | State::DeployWait
        | State::Servicing
        | State::ServiceWait
        | State::Rescuing
        | State::RescueWait
        | State::Unrescuing
        | State::Deleting
        | State::Adopting => "the last task of its work is ending",
        State::InspectFailed => "the inspection failed",
        State::CleanFailed => "cleaning failed",
        State::DeployFailed => "the deployment failed",
        State::ServiceFailed => "the service failed",
        State::RescueFailed => "booting the rescue system failed",
        State::UnrescueFailed => "leaving the rescue system failed",
        State::Error => "undeploying failed",
        State::AdoptFailed => "adopting failed",
    }
}

fn next(node: &Node) -> String {
    if let Some(fault) = node.fault() {
        return fault.next_action().to_owned();
    }
    if let Some(failure) = &node.failure {
        return failure.next_action.clone();
    }
    if let Some(leaving) = node.leaving.as_ref().filter(|leaving| leaving.is_waiting()) {
        let host = &leaving.host;
        return format!("wait for the drain, or cancel the request with `bedplate undrain {host}`");
    }
    if node.maintenance.is_some() {
        return "end maintenance when the work on the machine is done".to_owned();
    }
    let is_joining = node.hypervisor.as_ref().is_some_and(Hypervisor::is_joining);
    let next = match node.provision_state {
        State::Active if is_joining => "wait for the host to join the cloud",
        State::Enroll => "request \"manage\" to verify the BMC",
        State::Manageable => {
            "request \"inspect\" to inspect the hardware, or \"provide\" to clean the node"
        }
        State::Available => "set instance_info and request \"active\" to install the node",
        State::Active => "nothing; request \"deleted\" when the node is no longer needed",
        State::CleanHold | State::DeployHold | State::ServiceHold => {
            "request \"unhold\" to go on, or \"abort\" to end the work"
        }
        State::Rescued => "repair the installation, then request \"unrescue\"",
        State::InspectWait
        | State::CleanWait
        | State::DeployWait
        | State::ServiceWait
        | State::RescueWait => "wait for the machine; request \"abort\" to stop waiting",
        State::Verifying
        | State::Inspecting
        | State::Cleaning
        | State::Deploying
        | State::Servicing
        | State::Rescuing
        | State::Unrescuing
        | State::Deleting
        | State::Adopting => "wait",
        State::InspectFailed => {
            "request \"inspect\" again, or \"manage\" to return the node to manageable"
        }
        State::CleanFailed => "request \"manage\", then \"provide\" again",
        State::DeployFailed => "request \"active\" again, or \"deleted\" to undeploy the node",
        State::ServiceFailed => {
            "request \"service\" again, or \"abort\" to return the node to active"
        }
        State::RescueFailed | State::UnrescueFailed => "request \"rescue\" or \"unrescue\" again",
        State::Error => "request \"deleted\" again",
        State::AdoptFailed => {
            "request \"adopt\" again, or \"manage\" to return the node to manageable"
        }
    };
    next.to_owned()
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;
    use crate::{Driver, Fault, Maintenance, NodeUuid, Reason, Verb, WorkUuid, request_verb};

    fn node(state: State) -> Node {
        let mut node = Node::new(NodeUuid::nil(), Driver::Redfish, Timestamp::UNIX_EPOCH);
        node.provision_state = state;
        node
    }

    #[track_caller]
    fn check(node: &Node, want: Expect) {
        let reported = explain(node);
        want.assert_eq(&format!("{}. {}.", reported.summary, reported.next));
    }

    #[test]
    fn an_idle_node_names_the_possible_verbs() {
        check(
            &node(State::Enroll),
            expect![[
                r#"the node is "enroll": the BMC has not been verified yet. request "manage" to verify the BMC."#
            ]],
        );
    }

    #[test]
    fn a_busy_node_names_its_current_task() {
        let (busy, _) = request_verb(
            &node(State::Manageable),
            Verb::Provide,
            WorkUuid::nil(),
            Timestamp::UNIX_EPOCH,
        )
        .expect("provide is legal");
        check(
            &busy,
            expect![[
                r#"the node is "cleaning", target state "available": in progress: switching the machine off. wait."#
            ]],
        );
        let task = explain(&busy).task.expect("a task");
        assert_eq!((task.number, task.of), (1, 8));
    }

    #[test]
    fn a_node_in_its_target_state_names_no_target() {
        let mut there = node(State::Available);
        there.target_provision_state = Some(State::Available);
        check(
            &there,
            expect![[
                r#"the node is "available": the node is clean and free to be deployed. set instance_info and request "active" to install the node."#
            ]],
        );
    }

    #[test]
    fn a_node_in_use_without_a_cloud_waits_for_nothing() {
        check(
            &node(State::Active),
            expect![[
                r#"the node is "active": the node is in use. nothing; request "deleted" when the node is no longer needed."#
            ]],
        );
    }

    #[test]
    fn a_failed_node_names_the_cause_and_the_remedy() {
        let mut failed = node(State::DeployFailed);
        failed.failure = Some(Failure::new(Reason::StepFailed, "the disk is full"));
        check(
            &failed,
            expect![[
                r#"the node is "deploy failed": the disk is full. fix the cause; then repeat the request."#
            ]],
        );
    }

    #[test]
    fn the_summary_mentions_maintenance() {
        let mut resting = node(State::Available);
        resting.maintenance = Some(Maintenance::requested(Some("new fan".to_owned())));
        check(
            &resting,
            expect![[
                r#"the node is "available": the node is clean and free to be deployed; the node is in maintenance: new fan. end maintenance when the work on the machine is done."#
            ]],
        );
    }

    #[test]
    fn each_fault_has_its_advice() {
        let advice = Fault::ALL.map(|fault| {
            let maintenance = Maintenance { reason: None, fault: Some(fault) };
            explain(&Node { maintenance: Some(maintenance), ..node(State::Active) }).next
        });
        let step = "look at the step that failed, end maintenance, then repeat the request";
        let want = [
            "check the BMC's address, cable and credentials; the maintenance ends when the BMC answers again",
            step,
            "look at the machine, then end maintenance",
            step,
        ];
        assert_eq!(advice, want);
    }
}
