//! Answers members that ask which CA revision they should hold.

use std::collections::BTreeMap;

use cluster_bootstrap::{CaRotationStep, MemberRole, rotation_archive};
use cluster_core::{
    ClaimUuid, ClusterUuid, GroupRole, MemberName, RotationStep, may_take_revision,
};
use sealing::Purpose;
use tracing::info;

use super::Result;
use super::redeem::of;
use crate::cluster_secrets::ClusterSecrets;

/// The answer to a member that asks which CA revision it should hold.
#[derive(PartialEq, Eq)]
pub enum CaHandout {
    /// Refused, without a reason.
    Nothing,
    /// The member holds the right revision, and no rotation is in progress.
    Held,
    /// The member has to ask again soon.
    Soon,
    /// The member has to install this tar archive, which contains keys for the control plane.
    Take(Vec<u8>),
}

/// The answer, and the member's cluster when the reported revision is new.
pub(crate) type RevisionAnswer = (CaHandout, Option<ClusterUuid>);

/// Verifies the member's report token, records the revision it holds, and returns the answer.
pub(crate) async fn ask(
    secrets: &ClusterSecrets,
    id: ClaimUuid,
    token: &str,
    holds: u32,
) -> Result<RevisionAnswer> {
    let nothing = Ok((CaHandout::Nothing, None));
    if !secrets.keyring.verify(Purpose::Report, &id.to_string(), token) {
        return nothing;
    }
    let Some(claim) = secrets.store.find_claim(id).await? else { return nothing };
    let Some((cluster, groups)) = of(&secrets.store, &claim).await? else { return nothing };
    let reports = secrets.store.machines_of(cluster.id).await?;
    // A member that got a newer claim no longer uses this one.
    if !reports.iter().any(|report| report.claim == id) {
        return nothing;
    }
    let news = secrets.store.note_authorities(id, holds).await?;
    let now = cluster.authorities;
    if holds == now.revision {
        let handout = if now.is_settled() { CaHandout::Held } else { CaHandout::Soon };
        return Ok((handout, news));
    }
    let held: BTreeMap<MemberName, u32> =
        reports.into_iter().filter_map(|it| Some((it.machine, it.authorities?))).collect();
    if !may_take_revision(&cluster, &groups, &claim.machine, &held) {
        return Ok((CaHandout::Soon, news));
    }
    let is_master = |group: &&cluster_core::NodeGroup| {
        group.name == claim.machine.group && group.role == GroupRole::Master
    };
    let holder = match groups.iter().find(is_master) {
        Some(_) => MemberRole::ControlPlane,
        None => MemberRole::Worker,
    };
    let step = match now.step() {
        RotationStep::TrustBoth => CaRotationStep::TrustBoth,
        RotationStep::NewSigns => CaRotationStep::SignWithNew,
        RotationStep::KubeletsAsk => CaRotationStep::RenewKubelets,
        RotationStep::TrustNew => CaRotationStep::TrustNew,
    };
    let (signs, also) = secrets.authorities(&cluster).await?;
    info!(cluster.id = %cluster.id, "sending {} revision {} of the certificate authorities", claim.machine, now.revision);
    let archive = rotation_archive(now.revision, step, &signs, also.as_ref(), holder);
    Ok((CaHandout::Take(archive), news))
}
