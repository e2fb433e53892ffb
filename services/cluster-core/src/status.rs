//! Magnum's status and health of a cluster, computed from its conditions.

use jiff::{SignedDuration, Timestamp};

use crate::{
    Cluster, Condition, ConditionKind, ConditionStatus, DesiredState, Health, NodeGroup,
    ReportedHealth,
};

words::words! {
    /// Magnum's status of a cluster, in Magnum's words.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Status {
        CreateInProgress = "CREATE_IN_PROGRESS",
        CreateComplete = "CREATE_COMPLETE",
        CreateFailed = "CREATE_FAILED",
        UpdateInProgress = "UPDATE_IN_PROGRESS",
        UpdateComplete = "UPDATE_COMPLETE",
        UpdateFailed = "UPDATE_FAILED",
        DeleteInProgress = "DELETE_IN_PROGRESS",
        DeleteFailed = "DELETE_FAILED",
    }
}

/// Computes Magnum's status from the conditions of `cluster`.
pub fn status(cluster: &Cluster, now: Timestamp) -> Status {
    let is_final = cluster.conditions.iter().any(|it| it.is_final);
    let all = !cluster.conditions.is_empty()
        && cluster.conditions.iter().all(|it| it.status == ConditionStatus::True);
    match (cluster.desire, cluster.completed_at) {
        (DesiredState::Gone, _) if is_final => Status::DeleteFailed,
        (DesiredState::Gone, _) => Status::DeleteInProgress,
        // The conditions do not cover a request that came after the last observation.
        (DesiredState::Exist, None) if is_final || is_late(cluster, now) => Status::CreateFailed,
        (DesiredState::Exist, None) => Status::CreateInProgress,
        (DesiredState::Exist, Some(_)) if cluster.roll.is_some() && !is_final => {
            Status::UpdateInProgress
        }
        (DesiredState::Exist, Some(done))
            if done >= cluster.asked_at
                && cluster.asked_at == cluster.created_at
                && cluster.roll.is_none() =>
        {
            Status::CreateComplete
        }
        (DesiredState::Exist, Some(_)) if is_final => Status::UpdateFailed,
        (DesiredState::Exist, Some(done)) if all && done >= cluster.asked_at => {
            Status::UpdateComplete
        }
        (DesiredState::Exist, Some(_)) => Status::UpdateInProgress,
    }
}

/// Computes Magnum's status of a node group. A group that was added later is created while its cluster is updated, and a group that no request
/// changed stays complete.
pub fn group_status(cluster: &Cluster, group: &NodeGroup, now: Timestamp) -> Status {
    let of_cluster = status(cluster, now);
    let is_done = |since: Timestamp| cluster.completed_at.is_some_and(|at| at >= since);
    let waits = cluster.roll.as_ref().is_some_and(|roll| roll.waiting.contains_key(&group.id));
    let is_rolled = waits || group.is_rolling();
    match (of_cluster, group.updated_at) {
        (
            Status::CreateInProgress
            | Status::CreateComplete
            | Status::CreateFailed
            | Status::DeleteInProgress
            | Status::DeleteFailed,
            _,
        ) => of_cluster,
        (Status::UpdateInProgress, _) if is_rolled => Status::UpdateInProgress,
        (_, None) if is_done(group.created_at) => Status::CreateComplete,
        (Status::UpdateInProgress, None) => Status::CreateInProgress,
        (Status::UpdateComplete, None) => Status::CreateComplete,
        (Status::UpdateFailed, None) => Status::CreateFailed,
        (_, Some(changed)) if is_done(changed) => Status::UpdateComplete,
        (Status::UpdateInProgress | Status::UpdateComplete | Status::UpdateFailed, Some(_)) => {
            of_cluster
        }
    }
}

/// Returns the reason for the status of a node group; `None` when the group is complete.
pub fn group_status_reason(cluster: &Cluster, group: &NodeGroup, now: Timestamp) -> Option<String> {
    match group_status(cluster, group, now) {
        Status::CreateComplete | Status::UpdateComplete => None,
        Status::CreateInProgress
        | Status::CreateFailed
        | Status::UpdateInProgress
        | Status::UpdateFailed
        | Status::DeleteInProgress
        | Status::DeleteFailed => status_reason(cluster),
    }
}

/// Whether the creation has taken longer than `create_timeout`.
fn is_late(cluster: &Cluster, now: Timestamp) -> bool {
    let Some(minutes) = cluster.create_timeout else { return false };
    now.duration_since(cluster.asked_at) > SignedDuration::from_mins(minutes.into())
}

/// Returns the reason for the status: the first final condition, or else what an upgrade waits for, or the first condition that is not true,
/// with its next action.
pub fn status_reason(cluster: &Cluster) -> Option<String> {
    let hinders = |it: &&Condition| it.is_final;
    let first = cluster.conditions.iter().find(hinders);
    if let (None, Some(why)) = (first, cluster.roll.as_ref().and_then(|it| it.waits_for.as_ref())) {
        return Some(format!("upgrade: {why}"));
    }
    let first = first
        .or_else(|| cluster.conditions.iter().find(|it| it.status != ConditionStatus::True))?;
    let mut said = format!("{}: {}", first.kind.as_str(), first.message);
    if !first.next_action.is_empty() {
        said = format!("{said}; {}", first.next_action);
    }
    Some(said)
}

/// Returns Magnum's health of `cluster`: what clusterd observes, or what a client reported while clusterd cannot reach the cluster's API.
pub fn health(cluster: &Cluster) -> Health {
    reported_health(cluster).map_or_else(|| observed_health(cluster), |reported| reported.status)
}

/// Returns the report of a client that counts: an observation of clusterd takes precedence.
pub fn reported_health(cluster: &Cluster) -> Option<&ReportedHealth> {
    let is_unknown = observed_health(cluster) == Health::Unknown;
    cluster.reported_health.as_ref().filter(|_| is_unknown)
}

/// Computes the health from the conditions.
fn observed_health(cluster: &Cluster) -> Health {
    let of = |kind| cluster.conditions.iter().find(|it| it.kind == kind).map(|it| it.status);
    let (plane, nodes) =
        (of(ConditionKind::ControlPlaneAvailable), of(ConditionKind::NodesHealthy));
    match (cluster.completed_at, plane, nodes) {
        (None, _, _)
        | (_, None | Some(ConditionStatus::Unknown), _)
        | (_, _, None | Some(ConditionStatus::Unknown)) => Health::Unknown,
        (Some(_), Some(ConditionStatus::True), Some(ConditionStatus::True)) => Health::Healthy,
        (Some(_), Some(_), Some(_)) => Health::Unhealthy,
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;
    use crate::sample::{Sample, at};
    use crate::{CloudObjectState, ClusterObservation, Key, Problem, conditions};

    #[track_caller]
    fn check(sample: &mut Sample, seen: &ClusterObservation, want: Expect) {
        sample.cluster.conditions = conditions(&sample.spec(), seen, at(10));
        let cluster = &sample.cluster;
        let reason = status_reason(cluster).unwrap_or_default();
        let said = format!("{} {} {reason}", status(cluster, at(10)), health(cluster).as_str());
        want.assert_eq(said.trim_end());
    }

    #[test]
    fn a_cluster_without_an_observation_is_in_progress_and_says_so() {
        let mut sample = Sample::highly_available();
        check(
            &mut sample,
            &ClusterObservation::default(),
            expect![
                "CREATE_IN_PROGRESS UNKNOWN NetworkReady: the cloud has not been observed for this cluster yet"
            ],
        );
    }

    #[test]
    fn a_cluster_is_complete_once_all_of_it_is_there() {
        let mut sample = Sample::highly_available();
        let seen = sample.complete();
        check(&mut sample, &seen, expect!["CREATE_COMPLETE HEALTHY"]);
    }

    #[test]
    fn a_resize_is_an_update_until_it_is_done() {
        let mut sample = Sample::highly_available();
        let mut seen = sample.complete();
        sample.cluster.asked_at = at(5);
        sample.groups[1].add_machine();
        check(
            &mut sample,
            &seen,
            expect![
                "UPDATE_IN_PROGRESS UNHEALTHY InfrastructureReady: not created yet: port/default-worker-2, server/default-worker-2"
            ],
        );
        sample.settle(&mut seen);
        sample.cluster.completed_at = Some(at(9));
        check(&mut sample, &seen, expect!["UPDATE_COMPLETE HEALTHY"]);
    }

    #[test]
    fn a_reported_health_counts_while_clusterd_cannot_tell() {
        let mut sample = Sample::highly_available();
        let seen = sample.complete();
        let report = ReportedHealth { status: Health::Unhealthy, ..ReportedHealth::default() };
        sample.cluster.reported_health = Some(report.clone());
        assert_eq!(health(&sample.cluster), Health::Unhealthy);
        assert_eq!(reported_health(&sample.cluster), Some(&report));
        sample.cluster.conditions = conditions(&sample.spec(), &seen, at(10));
        assert_eq!(
            (health(&sample.cluster), reported_health(&sample.cluster)),
            (Health::Healthy, None)
        );
    }

    #[test]
    fn a_node_group_has_a_status_of_its_own() {
        let mut sample = Sample::highly_available();
        let seen = sample.complete();
        let check = |sample: &mut Sample, want: [&str; 3]| {
            sample.cluster.conditions = conditions(&sample.spec(), &seen, at(10));
            let of = |group| {
                let reason = group_status_reason(&sample.cluster, group, at(10));
                let status = group_status(&sample.cluster, group, at(10));
                assert_eq!(reason.is_none(), status.as_str().ends_with("COMPLETE"), "{reason:?}");
                status.as_str()
            };
            assert_eq!(Vec::from_iter(sample.groups.iter().map(of)), want);
        };
        // The third group is added later.
        let added = NodeGroup {
            name: "gpu".parse().unwrap(),
            is_default: false,
            created_at: at(5),
            machines: [0].into(),
            ..sample.groups[1].clone()
        };
        sample.groups.push(added);
        sample.cluster.asked_at = at(5);
        sample.cluster.completed_at = Some(at(1));
        check(&mut sample, ["CREATE_COMPLETE", "CREATE_COMPLETE", "CREATE_IN_PROGRESS"]);
        sample.groups[1].updated_at = Some(at(6));
        check(&mut sample, ["CREATE_COMPLETE", "UPDATE_IN_PROGRESS", "CREATE_IN_PROGRESS"]);
        sample.cluster.completed_at = Some(at(9));
        check(&mut sample, ["CREATE_COMPLETE", "UPDATE_COMPLETE", "CREATE_COMPLETE"]);
        // An upgrade replaces the members of the first group.
        sample.cluster.roll = Some(sample.roll());
        sample.groups[0].outdated = [0].into();
        check(&mut sample, ["UPDATE_IN_PROGRESS", "UPDATE_COMPLETE", "CREATE_COMPLETE"]);
        sample.cluster.roll = None;
        sample.groups[0].outdated.clear();
        sample.cluster.completed_at = None;
        check(&mut sample, ["CREATE_IN_PROGRESS"; 3]);
        sample.cluster.desire = DesiredState::Gone;
        check(&mut sample, ["DELETE_IN_PROGRESS"; 3]);
    }

    #[test]
    fn a_final_problem_is_a_failure() {
        let mut sample = Sample::highly_available();
        let mut seen = ClusterObservation { at: Some(at(1)), ..ClusterObservation::default() };
        seen.problem = Some(Problem {
            reason: "QuotaExceeded".to_owned(),
            message: "5 instances are needed and 4 are free".to_owned(),
            next_action: "raise the project's quota, or resize the cluster".to_owned(),
            is_final: true,
        });
        check(
            &mut sample,
            &seen,
            expect![
                "CREATE_FAILED UNKNOWN NetworkReady: 5 instances are needed and 4 are free; raise the project's quota, \
                 or resize the cluster"
            ],
        );
    }

    #[test]
    fn a_creation_may_take_too_long() {
        let mut sample = Sample::highly_available();
        sample.cluster.create_timeout = Some(0);
        check(
            &mut sample,
            &ClusterObservation { at: Some(at(1)), ..ClusterObservation::default() },
            expect![
                "CREATE_FAILED UNKNOWN NetworkReady: not created yet: network, subnet, router and 3 more"
            ],
        );
    }

    #[test]
    fn a_status_follows_from_the_request_the_time_and_the_conditions() {
        use ConditionStatus::{False, True};
        use DesiredState::{Exist, Gone};

        let condition = |(status, is_final)| Condition {
            kind: ConditionKind::NodesHealthy,
            status,
            reason: String::new(),
            message: String::new(),
            next_action: String::new(),
            is_final,
            since: at(0),
        };
        let (good, bad, hopeless) =
            (Some((True, false)), Some((False, false)), Some((False, true)));
        // Whether the cluster should exist, when it was completed, when it was last changed by request, its condition, and the time.
        let rows = [
            (Exist, None, 0, bad, 3600, Status::CreateInProgress),
            (Exist, None, 0, bad, 3601, Status::CreateFailed),
            (Exist, None, 0, hopeless, 1, Status::CreateFailed),
            (Exist, Some(9), 0, bad, 10, Status::CreateComplete),
            (Exist, Some(9), 5, good, 10, Status::UpdateComplete),
            (Exist, Some(5), 5, good, 10, Status::UpdateComplete),
            (Exist, Some(4), 5, good, 10, Status::UpdateInProgress),
            (Exist, Some(9), 5, bad, 10, Status::UpdateInProgress),
            (Exist, Some(9), 5, None, 10, Status::UpdateInProgress),
            (Exist, Some(9), 5, hopeless, 10, Status::UpdateFailed),
            (Gone, Some(9), 5, bad, 10, Status::DeleteInProgress),
            (Gone, Some(9), 5, hopeless, 10, Status::DeleteFailed),
        ];
        for (desire, completed_at, asked_at, of, now, want) in rows {
            let cluster = Cluster {
                desire,
                completed_at: completed_at.map(at),
                asked_at: at(asked_at),
                conditions: of.map(condition).into_iter().collect(),
                ..Sample::highly_available().cluster
            };
            let row = (desire, completed_at, asked_at, of, now);
            assert_eq!(status(&cluster, at(now)), want, "{row:?}");
        }
    }

    #[test]
    fn an_object_that_the_cloud_failed_to_make_is_named() {
        let mut sample = Sample::highly_available();
        let mut seen = sample.complete();
        let key: Key = "load-balancer/api".parse().unwrap();
        seen.objects.get_mut(&key).unwrap().state =
            CloudObjectState::Failed("no amphora".to_owned());
        check(
            &mut sample,
            &seen,
            expect![
                "CREATE_COMPLETE HEALTHY LoadBalancerReady: failed in the cloud: load-balancer/api (no amphora); \
                 clusterd deletes and creates them again; if they keep failing, look at the cloud's own logs"
            ],
        );
    }

    #[test]
    fn a_cluster_being_deleted_names_the_objects_that_are_left() {
        let mut sample = Sample::highly_available();
        let seen = sample.complete();
        sample.cluster.desire = DesiredState::Gone;
        check(
            &mut sample,
            &seen,
            expect![
                "DELETE_IN_PROGRESS HEALTHY NetworkReady: not deleted yet: network, subnet, router and 3 more"
            ],
        );
    }

    #[test]
    fn a_status_that_stays_keeps_its_time() {
        let mut sample = Sample::highly_available();
        check(
            &mut sample,
            &ClusterObservation::default(),
            expect![
                "CREATE_IN_PROGRESS UNKNOWN NetworkReady: the cloud has not been observed for this cluster yet"
            ],
        );
        let later = conditions(&sample.spec(), &ClusterObservation::default(), at(99));
        assert!(later.iter().all(|it| it.since == at(10)));
    }
}
