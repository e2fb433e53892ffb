//! The turn of a snapshot: observes its images, and makes the calls to Glance and Nova.

use cluster_core::{
    Ident, RecordChange, Snapshot, SnapshotAction, SnapshotImage, SnapshotObservation,
    SnapshotOutcome, SnapshotRules, SnapshotUpdate, SnapshotUuid, after_snapshot_actions,
    plan_snapshot,
};
use cluster_store::{SnapshotChange, StoreError, VmScope};
use newtype_uuid::GenericUuid;
use openstack::compute::actions;
use openstack::image::images::{self, Image, ImageStatus};
use openstack::{CloudError, Session};
use reconcile::{Decided, Requeue, Turn, begin_span, end_span, execute};
use tracing::{info, instrument};

use crate::context::{ConductorContext, ResourceRef};
use crate::tenancy::TenancyError;
use crate::turn_error::TurnError;

/// Runs one turn of a snapshot. Nothing else writes its state.
#[instrument(skip_all, fields(snapshot.id = %id))]
pub(crate) async fn turn(
    context: &ConductorContext,
    id: SnapshotUuid,
) -> Result<Requeue, TurnError> {
    let ident = Ident::Id(id.into_untyped_uuid());
    let found = context.store.find_snapshots(&ident, &VmScope::All).await?;
    let Some(snapshot) = found.into_iter().next() else { return Ok(Requeue::OnChange) };
    let place = snapshot.cloud_project.as_deref();
    let session = context.session_for(&snapshot.project, place).await;
    let session = session.map(|sessions| sessions.map(|(session, _)| session));
    let (tracer, subject) = (&context.settings.tracer, ("bedplate.snapshot.id", id));
    let span = begin_span(tracer, None, "snapshot turn", subject);
    let ended = span.run(execute(&SnapshotTurn { context, session }, snapshot)).await;
    end_span(span, &ended);
    Ok(ended?.1)
}

struct SnapshotTurn<'a> {
    context: &'a ConductorContext,
    /// The session in the snapshot's project; `None` without a cloud.
    session: Result<Option<Session>, TenancyError>,
}

impl Turn for SnapshotTurn<'_> {
    type Record = Snapshot;
    type Seen = SnapshotObservation;
    type Change = RecordChange<SnapshotUpdate>;
    type Action = SnapshotAction;
    type Outcome = SnapshotOutcome;
    type Error = TurnError;

    async fn observe(&self, snapshot: &Snapshot) -> Result<SnapshotObservation, TurnError> {
        let session = match &self.session {
            Ok(Some(session)) => session,
            Ok(None) => return Ok(SnapshotObservation::NoCloud),
            Err(closed) => {
                let why = closed.to_string();
                return Ok(SnapshotObservation::Unknown { why, retry_after: None });
            }
        };
        let images = match look(session, snapshot).await {
            Ok(images) => images,
            Err(error) => {
                let (why, retry_after) = (error.to_string(), error.retry_after());
                return Ok(SnapshotObservation::Unknown { why, retry_after });
            }
        };
        let of = Ident::Id(snapshot.vm.into_untyped_uuid());
        let vms = self.context.store.find_vms(&of, &VmScope::All).await?;
        Ok(SnapshotObservation::Seen { images, vm: vms.into_iter().next().map(Box::new) })
    }

    fn decide(&self, snapshot: &Snapshot, seen: &SnapshotObservation) -> Decided<Self> {
        Ok(plan_snapshot(snapshot, seen, &self.rules(), (self.context.settings.clock)()))
    }

    async fn write(
        &self,
        snapshot: Snapshot,
        change: RecordChange<SnapshotUpdate>,
    ) -> Result<Snapshot, TurnError> {
        let written = match change {
            RecordChange::Write(update) => self.update(&snapshot, update).await?,
            RecordChange::Delete => {
                self.context.store.delete_snapshot(&snapshot).await?;
                info!("snapshot {} is deleted, with its image", snapshot.id);
                self.context.wake(ResourceRef::Vm(snapshot.vm));
                snapshot
            }
        };
        Ok(written)
    }

    async fn perform(
        &self,
        snapshot: &Snapshot,
        action: SnapshotAction,
    ) -> Result<SnapshotOutcome, TurnError> {
        let unanswered = || SnapshotOutcome::Unanswered("the cloud is not accessible".to_owned());
        let Ok(Some(session)) = &self.session else { return Ok(unanswered()) };
        let fence = self.context.membership.fence();
        Ok(match action {
            SnapshotAction::Request { server } => {
                fence.hold(request(session, snapshot, &server)).await
            }
            SnapshotAction::DeleteImage(image) => fence.hold(delete(session, &image)).await,
        })
    }

    fn skips_rest(&self, outcome: &SnapshotOutcome) -> bool {
        outcome.skips_rest()
    }

    fn conclude(&self, snapshot: &Snapshot, outcomes: Vec<SnapshotOutcome>) -> Decided<Self> {
        let now = (self.context.settings.clock)();
        Ok(after_snapshot_actions(snapshot, &outcomes, &self.rules(), now))
    }
}

impl SnapshotTurn<'_> {
    fn rules(&self) -> SnapshotRules {
        let settings = &self.context.settings;
        SnapshotRules {
            keep: settings.vms.keep_copies,
            backoff: settings.repair.backoff,
            lands_within: settings.repair.lands_within,
            pauses: settings.pauses(),
        }
    }

    /// Writes the snapshot, and wakes its VM when the state has changed.
    async fn update(
        &self,
        before: &Snapshot,
        update: SnapshotUpdate,
    ) -> Result<Snapshot, StoreError> {
        let SnapshotUpdate { snapshot, events } = update;
        let written =
            self.context.store.change_snapshot(&SnapshotChange { snapshot, events }).await?;
        if before.state != written.state {
            let (from, to) = (before.state.as_str(), written.state.as_str());
            info!(state.from = from, state.to = to, "snapshot {} is now {to}", written.id);
            // The end of a lease may wait for this snapshot.
            self.context.wake(ResourceRef::Vm(written.vm));
        }
        Ok(written)
    }
}

/// Requests the image from Nova.
async fn request(session: &Session, of: &Snapshot, server: &str) -> SnapshotOutcome {
    match actions::snapshot(session, server, &of.image_name()).await {
        Ok(image) => SnapshotOutcome::Requested(image),
        Err(error) if error.is_transient() || error.is_outcome_unknown() => {
            SnapshotOutcome::Unanswered(error.to_string())
        }
        Err(error) => SnapshotOutcome::Refused(error.to_string()),
    }
}

async fn delete(session: &Session, image: &str) -> SnapshotOutcome {
    match images::delete(session, image).await {
        Ok(()) => SnapshotOutcome::Deleted,
        Err(error) if error.is_not_found() => SnapshotOutcome::Deleted,
        Err(error) => SnapshotOutcome::DeleteFailed {
            why: error.to_string(),
            retry_after: error.retry_after(),
        },
    }
}

/// Returns all images with the snapshot's name, and the one with its recorded id.
async fn look(session: &Session, of: &Snapshot) -> Result<Vec<SnapshotImage>, CloudError> {
    let mut listed = images::find(session, &of.image_name()).await?;
    if let Some(id) = &of.image
        && !listed.iter().any(|image| image.id == *id)
    {
        // The list may lag behind.
        listed.extend(images::show(session, id).await?);
    }
    Ok(listed.iter().filter_map(seen).collect())
}

fn seen(image: &Image) -> Option<SnapshotImage> {
    let usable = match &image.status {
        ImageStatus::Active => Some(Ok(())),
        ImageStatus::Killed | ImageStatus::Deactivated => {
            Some(Err(format!("Glance reports {}", image.status.as_str())))
        }
        ImageStatus::Deleted => return None,
        ImageStatus::Queued
        | ImageStatus::Saving
        | ImageStatus::Uploading
        | ImageStatus::Importing
        | ImageStatus::Other(_) => None,
    };
    Some(SnapshotImage { id: image.id.clone(), usable })
}
