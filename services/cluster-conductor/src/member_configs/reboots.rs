//! Answers members that ask whether they may reboot for an update of their operating system.

use cluster_core::{
    ClaimUuid, Cluster, ClusterSpec, ClusterUuid, Event, MemberReboot, RebootAnswer,
    RebootDecision, ask_reboot, end_reboot,
};
use cluster_store::{ClusterChange, StoreError};
use sealing::Purpose;
use tracing::info;

use super::reporter::{Reporter, find_reporter};
use super::{MemberConfigError, Result};
use crate::cluster_secrets::ClusterSecrets;

/// How often a question is decided again because its cluster changed meanwhile.
const ATTEMPTS: usize = 4;

/// A report of a member about its reboots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RebootReport {
    /// The member asks whether it may reboot.
    WantsTo,
    /// The member runs as intended.
    IsSteady,
}

/// The answer to a member, and the member's cluster if a turn has to act.
pub(crate) type RebootOutcome = (RebootAnswer, Option<ClusterUuid>);

/// Verifies the member's credential, decides about the report, and records the decision before the member learns of it. `None`: refused,
/// without a reason.
pub(crate) async fn take_report(
    secrets: &ClusterSecrets,
    id: ClaimUuid,
    token: &str,
    report: RebootReport,
) -> Result<Option<RebootOutcome>> {
    if !secrets.keyring.verify(Purpose::Reboot, &id.to_string(), token) {
        return Ok(None);
    }
    for _ in 0..ATTEMPTS {
        match decide(secrets, id, report).await {
            Err(MemberConfigError::Store(StoreError::Stale)) => {}
            decided => return decided,
        }
    }
    Ok(Some((RebootAnswer::Wait("the cluster is being changed".to_owned()), None)))
}

/// `Stale` when the cluster changed since it was read: another member may have begun to reboot.
async fn decide(
    secrets: &ClusterSecrets,
    id: ClaimUuid,
    report: RebootReport,
) -> Result<Option<RebootOutcome>> {
    let store = &secrets.store;
    let Some(Reporter { machine, cluster, groups }) = find_reporter(store, id).await? else {
        return Ok(None);
    };
    // Read after the cluster: a drain that is granted later raises the version of the cluster.
    let drained = store.drained_of(cluster.id).await?;
    let (spec, now) = (ClusterSpec { cluster: &cluster, groups: &groups }, (secrets.clock)());
    let RebootDecision { answer, change } = match report {
        RebootReport::WantsTo if !store.is_upgraded() => {
            let why = "a clusterd of version 0.1.0 is running, which does not know of reboots";
            return Ok(Some((RebootAnswer::Wait(why.to_owned()), None)));
        }
        RebootReport::WantsTo => ask_reboot(&spec, &drained, &machine, now),
        RebootReport::IsSteady => RebootDecision {
            answer: RebootAnswer::Permitted,
            change: end_reboot(&spec, &machine, now),
        },
    };
    let Some((reboot, event)) = change else { return Ok(Some((answer, None))) };
    info!(cluster.id = %cluster.id, "{}", event.message);
    record(secrets, cluster.clone(), reboot, event).await?;
    Ok(Some((answer, Some(cluster.id))))
}

async fn record(
    secrets: &ClusterSecrets,
    cluster: Cluster,
    reboot: MemberReboot,
    event: Event,
) -> Result<(), StoreError> {
    let changed = Cluster { reboot: Some(reboot), ..cluster };
    let change = ClusterChange { events: vec![event], ..ClusterChange::of(changed) };
    secrets.store.change_cluster(&change).await.map(drop)
}
