//! The part of a turn for a node with a lease.

use std::time::Duration;

use baremetal_core::{
    LendingStep, Node, Verb, WorkUuid, end_held, request_power, request_verb, returned,
    with_stage_taken,
};
use jiff::{SignedDuration, Timestamp};
use notices::{Notice, NoticeSubject};
use reconcile::{Requeue, time_left};
use tracing::{info, warn};
use uuid::Uuid;

use crate::context::TurnContext;
use crate::record::TurnError;
use crate::take_out::TakeOutRefused;

/// The pause before the next attempt on a node that still carries servers.
const AFTER_HOLDING: Duration = Duration::from_secs(15);

/// The pause before the next attempt on a node whose machine failed.
const AFTER_FAILURE: SignedDuration = SignedDuration::from_secs(60);

impl TurnContext {
    /// Records the step that the lease requires of an idle node. The following turns carry it out.
    pub(crate) async fn apply_lending_step(
        &self,
        node: &Node,
        step: LendingStep,
        now: Timestamp,
    ) -> Result<Requeue, TurnError> {
        if let Some(rest) = rest_after_failure(node, &step, now) {
            return Ok(Requeue::After(rest.unsigned_abs()));
        }
        if matches!(step, LendingStep::Power(_) | LendingStep::Undeploy) {
            match self.drain_and_check(node).await {
                Ok(None) => {}
                Ok(Some(noted)) => return self.record(node, noted, &[]).await,
                Err(why) => return self.postpone_lease_end(node, &why, now).await,
            }
        }
        let asked = match step {
            LendingStep::Take(step) => return self.take(node, step, now).await,
            LendingStep::Release => {
                let (free, entry) = returned(node, now);
                info!("node {} was returned by its lessee", node.label());
                return self.record(node, free, &[entry]).await;
            }
            LendingStep::Wait { until, .. } => {
                let left = until.map(|until| time_left(until, now));
                return Ok(left.map_or(Requeue::OnChange, Requeue::After));
            }
            LendingStep::Power(change) => {
                let deadline = now + self.settings.timeouts.power;
                request_power(node, change, deadline).map(|off| (off, Vec::new()))
            }
            LendingStep::Undeploy => request_verb(node, Verb::Undeploy, WorkUuid::new_v4(), now)
                .map(|(to, it)| (to, vec![it])),
            LendingStep::Clean => request_verb(node, Verb::Provide, WorkUuid::new_v4(), now)
                .map(|(to, it)| (to, vec![it])),
        };
        match asked {
            Ok((asked, history)) => self.record(node, asked, &history).await,
            Err(refusal) => {
                warn!(%refusal, "cannot end the lease of node {} now", node.label());
                Ok(Requeue::OnChange)
            }
        }
    }

    /// Postpones the end of a lease while the node's compute host carries servers. The history gets one entry about the reason, except when
    /// the only reason is that the drain is still moving servers.
    async fn postpone_lease_end(
        &self,
        node: &Node,
        why: &TakeOutRefused,
        now: Timestamp,
    ) -> Result<Requeue, TurnError> {
        let is_emptied = matches!(why, TakeOutRefused::Occupied { .. });
        let why = why.to_string();
        if !is_emptied && !self.sightings.has_obstacle(node.id, &why) {
            warn!(
                "the lease of node {} has ended, but the node cannot be taken out yet: {why}",
                node.label()
            );
            self.record(node, node.clone(), &[end_held(node, &why, now)]).await?;
            self.sightings.note_obstacle(node.id, why);
        }
        Ok(Requeue::After(AFTER_HOLDING))
    }

    /// Records a stage of the lease's end, with its event and its notices.
    pub(crate) async fn take(
        &self,
        node: &Node,
        step: lease::LeaseStage,
        now: Timestamp,
    ) -> Result<Requeue, TurnError> {
        let (mut taken, entry) = with_stage_taken(node, step, now);
        taken.updated_at = Some(now);
        let told = entry.event.clone();
        let contact = node.lending.as_ref().and_then(|lending| lending.notify.as_ref());
        let notice = notice(node, step, &told, now);
        let letters = self.settings.lending.addressees.letters(&notice, contact);
        let written = self.store.update_node_and_notify(&taken, &[entry], &letters, now).await;
        let (_, lost) = written?;
        if lost > 0 {
            warn!("too many notices are waiting: {lost} notices of node {} are not sent", node.id);
        }
        info!("node {}: {told}", node.label());
        Ok(Requeue::Now)
    }
}

/// Returns the notice about a stage for people outside of the API.
fn notice(node: &Node, step: lease::LeaseStage, told: &str, now: Timestamp) -> Notice {
    let (event, happens_at) = match step {
        lease::LeaseStage::Warn { ends_at } => ("lease.ends", Some(ends_at)),
        lease::LeaseStage::SwitchOff { deleted_at } => ("lease.ended", Some(deleted_at)),
        lease::LeaseStage::Snapshot => ("lease.copy_kept", None),
        lease::LeaseStage::WarnOfDeletion { deleted_at } => {
            ("lease.deletion_near", Some(deleted_at))
        }
        lease::LeaseStage::Delete => ("lease.deleted", None),
    };
    let until = node.lending.as_ref().map(|lending| lending.lease.until);
    let details = [("happens_at", happens_at), ("lease_until", until)];
    let details =
        details.into_iter().filter_map(|(key, at)| Some((key.to_owned(), at?.to_string().into())));
    let label = node.label();
    Notice {
        id: Uuid::new_v4(),
        at: now,
        event: event.to_owned(),
        subject: format!("Node {label}: {told}"),
        text: format!(
            "Node {label} ({}): {told}.\n\nTo extend the lease, use `bedplate node extend`; to undo its end, `bedplate node undo`; or PUT /bedplate/v1/nodes/ID/lease.",
            node.id
        ),
        project_id: node.lessee.clone(),
        about: NoticeSubject { kind: "node".to_owned(), id: node.id.to_string(), name: label },
        details: details.collect(),
    }
}

/// Returns the rest of the pause before a machine that failed is asked for anything again.
fn rest_after_failure(node: &Node, step: &LendingStep, now: Timestamp) -> Option<SignedDuration> {
    let asks = match step {
        LendingStep::Power(_) | LendingStep::Undeploy | LendingStep::Clean => true,
        LendingStep::Take(_) | LendingStep::Release | LendingStep::Wait { .. } => false,
    };
    let failed_at = node.updated_at.filter(|_| asks && node.failure.is_some())?;
    // A failure with a time in the future says that the clock was set back: the pause must not last until the clock reaches that time.
    let rest = AFTER_FAILURE - now.duration_since(failed_at).abs();
    rest.is_positive().then_some(rest)
}
