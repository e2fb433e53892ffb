//! Decides how far a cluster is when a turn has no more calls, and whether the next turn may use the same observation.

use super::call_result::CallResults;
use super::ledger::LedgerMatch;
use super::next_turn::CloudProgress;
use crate::{ClusterObservation, ClusterSpec, DesiredState, Key, MemberName, RebootPhase};

/// Returns how far a cluster is: as far as its cloud objects, but not settled while members join, while a CA rotation or a restoration is in
/// progress, while a roll is in progress that is not paused, or while a member waits for its reboot. Each needs an observation soon.
pub fn cluster_progress(
    spec: &ClusterSpec<'_>,
    results: &CallResults,
    ledger: LedgerMatch,
    seen: &ClusterObservation,
) -> CloudProgress {
    let objects = CloudProgress::of(&results.failures, ledger, results.is_gone_soon, seen);
    let joins = |member: &MemberName| {
        seen.objects.contains_key(&Key::Server(member.clone()))
            && !spec.cluster.nodes.contains(member)
    };
    let cluster = spec.cluster;
    let waits = cluster.reboot.as_ref().is_some_and(|it| it.phase != RebootPhase::Permitted);
    let is_changing =
        !cluster.authorities.is_settled() || cluster.restore.is_some() || cluster.is_rolling();
    let is_under_way = seen.machines.keys().any(joins) || is_changing || waits;
    match objects {
        CloudProgress::Settled if is_under_way => CloudProgress::InProgress,
        CloudProgress::Settled => CloudProgress::Settled,
        CloudProgress::Failed | CloudProgress::Changed | CloudProgress::InProgress => objects,
    }
}

/// Whether the next turn need not observe the ready objects again: while the cluster is being created, and nothing was changed or deleted.
pub fn may_reuse_observation(
    spec: &ClusterSpec<'_>,
    results: &CallResults,
    progress: CloudProgress,
) -> bool {
    progress == CloudProgress::InProgress
        && spec.cluster.desire == DesiredState::Exist
        && results.problem.is_none()
        && !results.has_changed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Sample;
    use crate::{
        CallFailure, CloudObject, CloudObjectDetails, CloudObjectState, MemberObservation, Problem,
    };

    fn problem() -> Problem {
        Problem {
            reason: "CloudBusy".to_owned(),
            message: "cannot create server/default-worker-0".to_owned(),
            next_action: String::new(),
            is_final: false,
        }
    }

    fn failed() -> CallResults {
        let failure = CallFailure {
            problem: problem(),
            is_transient: true,
            retry_after: None,
            create_failure: None,
        };
        CallResults { failures: vec![failure], ..CallResults::default() }
    }

    /// Changes the situation of a settled cluster.
    type Change = fn(&mut Sample, &mut ClusterObservation);

    fn server_exists(_: &mut Sample, seen: &mut ClusterObservation) {
        let server = CloudObject {
            id: "server".to_owned(),
            state: CloudObjectState::Ready,
            address: None,
            facts: CloudObjectDetails::None,
        };
        seen.objects.insert("server/default-worker-0".parse().unwrap(), server);
    }

    fn member_is_observed(_: &mut Sample, seen: &mut ClusterObservation) {
        seen.machines.insert("default-worker-0".parse().unwrap(), MemberObservation::default());
    }

    fn member_joined(sample: &mut Sample, _: &mut ClusterObservation) {
        sample.cluster.nodes.insert("default-worker-0".parse().unwrap());
    }

    fn rotation_begins(sample: &mut Sample, _: &mut ClusterObservation) {
        sample.cluster.authorities.revision = 1;
    }

    #[test]
    fn a_cluster_is_in_progress_while_members_join_or_its_cas_rotate() {
        let table: [(&[Change], CallResults, CloudProgress); 7] = [
            (&[], CallResults::default(), CloudProgress::Settled),
            (&[server_exists], CallResults::default(), CloudProgress::Settled),
            (&[member_is_observed], CallResults::default(), CloudProgress::Settled),
            (
                &[server_exists, member_is_observed],
                CallResults::default(),
                CloudProgress::InProgress,
            ),
            (
                &[server_exists, member_is_observed, member_joined],
                CallResults::default(),
                CloudProgress::Settled,
            ),
            (&[rotation_begins], CallResults::default(), CloudProgress::InProgress),
            (&[rotation_begins], failed(), CloudProgress::Failed),
        ];
        for (number, (changes, results, want)) in table.into_iter().enumerate() {
            let (mut sample, mut seen) =
                (Sample::highly_available(), ClusterObservation::default());
            for change in changes {
                change(&mut sample, &mut seen);
            }
            let progress = cluster_progress(&sample.spec(), &results, LedgerMatch::Complete, &seen);
            assert_eq!(progress, want, "row {number}");
        }
    }

    #[test]
    fn an_observation_is_reused_only_while_the_cluster_is_being_created() {
        let nothing = CallResults::default;
        let gone = DesiredState::Gone;
        let exists = DesiredState::Exist;
        let table = [
            (CloudProgress::InProgress, exists, nothing(), true),
            (CloudProgress::Settled, exists, nothing(), false),
            (CloudProgress::Changed, exists, nothing(), false),
            (CloudProgress::Failed, exists, failed(), false),
            (CloudProgress::InProgress, gone, nothing(), false),
            (
                CloudProgress::InProgress,
                exists,
                CallResults { problem: Some(problem()), ..nothing() },
                false,
            ),
            (
                CloudProgress::InProgress,
                exists,
                CallResults { has_changed: true, ..nothing() },
                false,
            ),
        ];
        for (number, (progress, desire, results, want)) in table.into_iter().enumerate() {
            let mut sample = Sample::highly_available();
            sample.cluster.desire = desire;
            let may = may_reuse_observation(&sample.spec(), &results, progress);
            assert_eq!(may, want, "row {number}");
        }
    }
}
