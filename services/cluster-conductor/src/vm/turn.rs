//! The turn of a VM: reconciles its cloud objects, and makes the calls to Nova.

use cluster_core::{
    Ident, ProjectObservation, RecordChange, Snapshot, SnapshotUuid, Vm, VmCall, VmCallResult,
    VmRecords, VmRules, VmUpdate, VmUuid, after_vm_calls, plan_vm,
};
use cluster_store::{StoreError, VmChange, VmScope};
use newtype_uuid::GenericUuid;
use reconcile::{Decided, Requeue, Turn, begin_span, end_span, execute};
use tracing::{info, instrument};

use super::{calls, cloud_work, notice};
use crate::context::{ConductorContext, ResourceRef};
use crate::turn_error::TurnError;

/// Runs one turn of a VM. Nothing else writes the conclusions in its record.
#[instrument(skip_all, fields(vm.id = %id))]
pub(crate) async fn turn(context: &ConductorContext, id: VmUuid) -> Result<Requeue, TurnError> {
    let ident = Ident::Id(id.into_untyped_uuid());
    let found = context.store.find_vms(&ident, &VmScope::All).await?;
    let Some(vm) = found.into_iter().next() else { return Ok(Requeue::OnChange) };
    let ledger = context.store.ledger_of(id).await?;
    let copy = copy_of(context, &vm).await?;
    let (tracer, subject) = (&context.settings.tracer, ("bedplate.vm.id", id));
    let span = begin_span(tracer, vm.trace_in_progress(), "VM turn", subject);
    let records = VmRecords { vm, ledger, copy };
    let ended = span.run(execute(&VmTurn { context }, records)).await;
    end_span(span, &ended);
    Ok(ended?.1)
}

/// Returns the snapshot that is kept of the VM.
async fn copy_of(context: &ConductorContext, vm: &Vm) -> Result<Option<Snapshot>, StoreError> {
    let Some(id) = vm.copy else { return Ok(None) };
    let ident = Ident::Id(id.into_untyped_uuid());
    Ok(context.store.find_snapshots(&ident, &VmScope::All).await?.into_iter().next())
}

struct VmTurn<'a> {
    context: &'a ConductorContext,
}

impl Turn for VmTurn<'_> {
    type Record = VmRecords;
    type Seen = ProjectObservation;
    type Change = RecordChange<VmUpdate>;
    type Action = VmCall;
    type Outcome = VmCallResult;
    type Error = TurnError;

    async fn observe(&self, records: &VmRecords) -> Result<ProjectObservation, TurnError> {
        let VmRecords { vm, .. } = records;
        let Some(cloud_access) = &self.context.cloud else {
            return Ok(ProjectObservation::NoCloud);
        };
        if vm.cloud_project.is_some() || records.is_over() {
            return Ok(ProjectObservation::Recorded);
        }
        Ok(match cloud_access.place_of(&vm.project).await {
            Ok(place) => ProjectObservation::New(place),
            Err(closed) => ProjectObservation::Unknown(closed.to_string()),
        })
    }

    fn decide(&self, records: &VmRecords, project: &ProjectObservation) -> Decided<Self> {
        Ok(plan_vm(records, project, &self.rules()))
    }

    async fn write(
        &self,
        records: VmRecords,
        change: RecordChange<VmUpdate>,
    ) -> Result<VmRecords, TurnError> {
        match change {
            RecordChange::Write(update) => {
                let vm = self.update(&records.vm, update).await?;
                Ok(VmRecords { vm, ..records })
            }
            RecordChange::Delete => {
                self.delete(&records.vm).await?;
                Ok(records)
            }
        }
    }

    async fn perform(&self, records: &VmRecords, call: VmCall) -> Result<VmCallResult, TurnError> {
        let VmRecords { vm, ledger, .. } = records;
        if call == VmCall::ReconcileObjects {
            let work = cloud_work::work(self.context, vm, ledger.clone()).await?;
            return Ok(VmCallResult::Reconciled(Box::new(work)));
        }
        let place = vm.cloud_project.as_deref();
        let session = self.context.session_for(&vm.project, place).await;
        Ok(match session {
            Ok(Some((session, _))) => {
                self.context.membership.fence().hold(calls::perform(&session, call)).await
            }
            Ok(None) => calls::failed(&call, "clusterd has no cloud"),
            Err(closed) => calls::failed(&call, &closed.to_string()),
        })
    }

    fn conclude(&self, records: &VmRecords, results: Vec<VmCallResult>) -> Decided<Self> {
        let now = (self.context.settings.clock)();
        Ok(after_vm_calls(records, &results, &self.rules(), now))
    }
}

impl VmTurn<'_> {
    fn rules(&self) -> VmRules {
        let settings = &self.context.settings;
        VmRules {
            schedule: settings.vms.schedule.clone(),
            lands_within: settings.repair.lands_within,
            ends_again_after: settings.vms.ends_again_after,
            idle_every: settings.vms.idle_every,
            pauses: settings.pauses(),
            new_copy: SnapshotUuid::new_v4(),
        }
    }

    /// Writes the VM, and wakes the snapshots that depend on it: a new one, or the one that is kept because of the lease.
    async fn update(&self, before: &Vm, update: VmUpdate) -> Result<Vm, StoreError> {
        let VmUpdate { vm, events, notices, copy } = update;
        let (phase_before, phase) = (before.phase(), vm.phase());
        let addressees = self.context.settings.lending.addressees;
        let now = (self.context.settings.clock)();
        let letters = notice::letters(addressees, (&vm, &notices), now);
        let new_copy = copy.as_ref().map(|copy| copy.id);
        let change = VmChange { vm, copy, events, letters };
        let written = self.context.store.change_vm(&change).await?;
        if phase_before != phase {
            info!(state.from = %phase_before, state.to = %phase, "VM {} is now {phase}", before.id);
        }
        for copy in new_copy.into_iter().chain(before.copy) {
            self.context.wake(ResourceRef::Snapshot(copy));
        }
        Ok(written)
    }

    /// Deletes the record of a VM that owns nothing in the cloud any more.
    async fn delete(&self, vm: &Vm) -> Result<(), StoreError> {
        let snapshots = self.context.store.snapshots_of(vm.id).await?;
        match self.context.store.delete_vm(vm).await {
            // The ledger has an entry by now.
            Err(StoreError::InUse { .. }) => return Err(StoreError::Stale),
            deleted => deleted?,
        }
        info!("VM {} is deleted, with everything it owned in the cloud", vm.id);
        // The time for which a snapshot is kept begins now.
        snapshots.into_iter().for_each(|id| self.context.wake(ResourceRef::Snapshot(id)));
        Ok(())
    }
}
