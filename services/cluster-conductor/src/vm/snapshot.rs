//! The turn of a snapshot: observe, decide, record, request.

use cluster_core::{
    Ident, Snapshot, SnapshotImage, SnapshotRules, SnapshotState, SnapshotStep, SnapshotUuid, Vm,
    VmEvent, snapshot_turn,
};
use cluster_store::{SnapshotChange, StoreError, VmScope};
use jiff::Timestamp;
use newtype_uuid::GenericUuid;
use openstack::compute::actions;
use openstack::image::images::{self, Image, ImageStatus};
use openstack::{CloudError, Session};
use reconcile::{Queue, Requeue, time_left};
use tracing::{info, instrument};

use crate::context::{ConductorContext, ResourceRef};
use crate::settings::Settings;
use crate::turn_error::TurnError;

/// Runs one turn of a snapshot. Nothing else writes its state.
#[instrument(skip_all, fields(snapshot.id = %id))]
pub(crate) async fn turn(
    context: &ConductorContext,
    queue: &Queue<ResourceRef>,
    id: SnapshotUuid,
) -> Result<Requeue, TurnError> {
    let ident = Ident::Id(id.into_untyped_uuid());
    let found = context.store.find_snapshots(&ident, &VmScope::All).await?;
    let Some(snapshot) = found.into_iter().next() else { return Ok(Requeue::OnChange) };
    let look_every = context.settings.look_every;
    let (soon, later) = (Requeue::After(context.settings.soon()), Requeue::After(look_every));
    let place = snapshot.cloud_project.as_deref();
    let session = match context.session_for(&snapshot.project, place).await {
        Ok(Some((session, _))) => session,
        Ok(None) => return Ok(later),
        Err(closed) => {
            tracing::warn!("cannot observe a snapshot: {closed}");
            return Ok(later);
        }
    };
    let session = &session;
    let seen = match look(session, &snapshot).await {
        Ok(seen) => seen,
        Err(error) => {
            tracing::warn!("cannot observe a snapshot: {error}");
            return Ok(error.retry_after().map_or(later, Requeue::After));
        }
    };
    let of = Ident::Id(snapshot.vm.into_untyped_uuid());
    let vm = context.store.find_vms(&of, &VmScope::All).await?.into_iter().next();
    let now = (context.settings.clock)();
    let (next, events, step) =
        snapshot_turn(&snapshot, (&seen, vm.as_ref()), &rules(&context.settings), now);
    let Some(written) = write(context, queue, (&snapshot, next), events).await? else {
        return Ok(Requeue::Now);
    };
    match step {
        SnapshotStep::Rest(None) => Ok(later),
        SnapshotStep::Rest(Some(due)) => Ok(Requeue::After(look_every.min(time_left(due, now)))),
        SnapshotStep::Look => Ok(soon),
        SnapshotStep::Ask => {
            ask(context, queue, session, (&written, vm.as_ref()), now).await?;
            Ok(soon)
        }
        SnapshotStep::Delete(ids) => {
            for image in ids {
                match images::delete(session, &image).await {
                    Ok(()) => {}
                    Err(error) if error.is_not_found() => {}
                    Err(error) => {
                        tracing::warn!("cannot delete an image of a snapshot: {error}");
                        return Ok(error.retry_after().map_or(later, Requeue::After));
                    }
                }
            }
            Ok(soon)
        }
        SnapshotStep::Forget => match context.store.delete_snapshot(&written).await {
            Ok(()) => {
                info!("snapshot {id} is deleted, with its image");
                queue.wake(ResourceRef::Vm(written.vm));
                Ok(Requeue::OnChange)
            }
            Err(StoreError::Stale) => Ok(Requeue::Now),
            Err(error) => Err(error.into()),
        },
    }
}

/// Returns the rules of snapshots' turns.
fn rules(settings: &Settings) -> SnapshotRules {
    SnapshotRules {
        keep: settings.vms.keep_copies,
        backoff: settings.repair.backoff,
        lands_within: settings.repair.lands_within,
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

/// Writes the decision, if anything changed. `None` when another process changed the snapshot first.
async fn write(
    context: &ConductorContext,
    queue: &Queue<ResourceRef>,
    (before, snapshot): (&Snapshot, Snapshot),
    events: Vec<VmEvent>,
) -> Result<Option<Snapshot>, StoreError> {
    if *before == snapshot && events.is_empty() {
        return Ok(Some(snapshot));
    }
    match context.store.change_snapshot(&SnapshotChange { snapshot, events }).await {
        Ok(written) => {
            if before.state != written.state {
                let (from, to) = (before.state.as_str(), written.state.as_str());
                info!(state.from = from, state.to = to, "snapshot {} is now {to}", written.id);
                // The end of a lease may wait for this snapshot.
                queue.wake(ResourceRef::Vm(written.vm));
            }
            Ok(Some(written))
        }
        Err(StoreError::Stale) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Requests the image from Nova, and records its id.
async fn ask(
    context: &ConductorContext,
    queue: &Queue<ResourceRef>,
    session: &Session,
    (of, vm): (&Snapshot, Option<&Vm>),
    now: Timestamp,
) -> Result<(), StoreError> {
    let Some(server) = vm.and_then(|vm| vm.server.as_ref()) else { return Ok(()) };
    match actions::snapshot(session, &server.id, &of.image_name()).await {
        Ok(image) => {
            let made = Snapshot { image: Some(image), state: SnapshotState::Making, ..of.clone() };
            write(context, queue, (of, made), Vec::new()).await?;
        }
        // An image that was created anyway is found by its name.
        Err(error) if error.is_transient() || error.is_outcome_unknown() => {
            tracing::warn!("the request for a snapshot got no answer: {error}");
            write(context, queue, (of, of.unanswered()), Vec::new()).await?;
        }
        Err(error) => {
            let (failed, events) = of.failed(&error.to_string(), now);
            write(context, queue, (of, failed), events).await?;
        }
    }
    Ok(())
}
