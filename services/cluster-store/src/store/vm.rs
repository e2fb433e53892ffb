//! VMs and their snapshots.

use cluster_core::{
    DefaultLimits, EventUuid, Ident, Page, Snapshot, SnapshotUuid, Vm, VmEvent, VmSort, VmUuid,
};
use database::WriteKind::AnyStatementCanFail;
use database::{Connection, Result, outbox, reading, writing};

use super::admission::Admission;
use super::allowance;
use crate::refusal::QuotaWriteError;
use crate::table::holding::HoldingOwner;
use crate::table::{holding, snapshot, vm, vm_event};
use crate::{PagePart, PageRows, SnapshotChange, Store, VmChange, VmScope};

impl Store {
    /// Adds a VM with its sealed user-data, unless the limits of its project or its owner forbid the VM or its lease; with `within` `None`
    /// no limit applies.
    pub async fn insert_vm(
        &self,
        new: &Vm,
        sealed: Option<&str>,
        events: &[VmEvent],
        within: Option<&DefaultLimits>,
    ) -> Result<(), QuotaWriteError> {
        self.admit_vm(new).await?;
        let (new, sealed, events) = (new.clone(), sealed.map(str::to_owned), events.to_vec());
        let within = within.cloned();
        if let Some(sealed) = &sealed {
            self.know_seal_of(sealed).await?;
        }
        let written = writing!(self.database, AnyStatementCanFail, |c| {
            let (whom, takes) = (HoldingOwner::vm(&new), new.takes());
            if let Some(defaults) = &within {
                c.lock_name(&new.project).await?;
                let lease = Some(new.lease.as_ref());
                let refused = allowance::vm_refusal(c, &whom, (&takes, lease), defaults).await?;
                if let Some(denial) = refused {
                    return Ok(Admission::Refused(denial));
                }
            }
            vm::insert(c, &new, sealed.as_deref()).await?;
            holding::save_one(c, &whom, &takes).await?;
            vm_event::append(c, new.id, &events).await?;
            Ok(Admission::Granted(()))
        })?;
        written.granted()
    }

    /// Returns the VMs with this id or name in `scope`.
    pub async fn find_vms(&self, ident: &Ident, scope: &VmScope) -> Result<Vec<Vm>> {
        let (ident, scope) = (ident.clone(), scope.clone());
        reading!(self.database, |c| vm::find(c, &ident, &scope).await)
    }

    /// Returns a part of a page of the VMs in `scope`; only those of `person`, when one is given.
    pub async fn list_vms_part(
        &self,
        scope: &VmScope,
        person: Option<&str>,
        page: &Page<VmSort>,
        part: PagePart,
    ) -> Result<PageRows<Vm>> {
        let (scope, person, page) = (scope.clone(), person.map(str::to_owned), page.clone());
        reading!(self.database, |c| vm::list(c, (&scope, person.as_deref()), &page, &part).await)
    }

    /// Returns the number of VMs.
    pub async fn count_vms(&self) -> Result<u64> {
        reading!(self.database, |c| vm::count(c).await)
    }

    /// Returns the ids of all VMs, with which a conductor starts.
    pub async fn vm_ids(&self) -> Result<Vec<VmUuid>> {
        reading!(self.database, |c| vm::ids(c).await)
    }

    /// Returns the sealed user-data of a VM, while it is kept.
    pub async fn sealed_user_data(&self, of: VmUuid) -> Result<Option<String>> {
        reading!(self.database, |c| vm::sealed(c, of).await)
    }

    /// Writes a change, if the VM's version is still the one that was read; otherwise writes nothing. Returns the VM with its new version.
    pub async fn change_vm(&self, change: &VmChange) -> Result<Vm> {
        self.admit_vm(&change.vm).await?;
        let change = change.clone();
        writing!(self.database, AnyStatementCanFail, |c| write(c, &change).await)
    }

    /// As [`Store::change_vm`], unless the limits of the VM's project or its owner forbid the change or the new lease.
    pub async fn change_vm_within(
        &self,
        change: &VmChange,
        defaults: &DefaultLimits,
    ) -> Result<Vm, QuotaWriteError> {
        self.admit_vm(&change.vm).await?;
        let (change, defaults) = (change.clone(), defaults.clone());
        let written = writing!(self.database, AnyStatementCanFail, |c| {
            c.lock_name(&change.vm.project).await?;
            // A change that was decided on an old version is stale: it is neither counted nor refused by a limit.
            let before = vm::before(c, &change.vm).await?;
            let whom = HoldingOwner::vm(&change.vm);
            let more = change.vm.takes().minus(&before.takes());
            let is_lent_anew = before.lease.as_ref().map(|it| it.until)
                != change.vm.lease.as_ref().map(|it| it.until);
            let lease = is_lent_anew.then_some(change.vm.lease.as_ref());
            match allowance::vm_refusal(c, &whom, (&more, lease), &defaults).await? {
                Some(denial) => Ok(Admission::Refused(denial)),
                None => write(c, &change).await.map(Admission::Granted),
            }
        })?;
        written.granted::<QuotaWriteError>()
    }

    /// Deletes a VM with its events, if its version is still the one that was read. `InUse` while its ledger has an entry.
    pub async fn delete_vm(&self, old: &Vm) -> Result<()> {
        let old = old.clone();
        writing!(self.database, AnyStatementCanFail, |c| {
            vm::delete(c, &old).await?;
            holding::delete(c, &HoldingOwner::vm(&old)).await
        })
    }

    /// Returns the VM's events after `marker`, oldest first.
    pub async fn vm_events_of(
        &self,
        vm: VmUuid,
        limit: u32,
        marker: Option<EventUuid>,
    ) -> Result<Vec<VmEvent>> {
        self.vm_events_part_of(vm, limit, marker, PagePart::whole())
            .await
            .map(|listed| listed.found)
    }

    /// Returns a part of the VM's events after `marker`, oldest first.
    pub async fn vm_events_part_of(
        &self,
        vm: VmUuid,
        limit: u32,
        marker: Option<EventUuid>,
        part: PagePart<i64>,
    ) -> Result<PageRows<VmEvent, i64>> {
        reading!(self.database, |c| vm_event::list(c, vm, limit, marker, &part).await)
    }

    /// Adds a snapshot, and events of its VM, unless the limits of its project or its owner forbid the snapshot.
    pub async fn insert_snapshot(
        &self,
        new: &Snapshot,
        events: &[VmEvent],
        within: Option<&DefaultLimits>,
    ) -> Result<(), QuotaWriteError> {
        let (new, events, within) = (new.clone(), events.to_vec(), within.cloned());
        let written = writing!(self.database, AnyStatementCanFail, |c| {
            let (whom, takes) = (HoldingOwner::snapshot(&new), new.takes());
            if let Some(defaults) = &within {
                c.lock_name(&new.project).await?;
                let refused = allowance::vm_refusal(c, &whom, (&takes, None), defaults).await?;
                if let Some(denial) = refused {
                    return Ok(Admission::Refused(denial));
                }
            }
            add(c, &new).await?;
            vm_event::append(c, new.vm, &events).await?;
            Ok(Admission::Granted(()))
        })?;
        written.granted()
    }

    /// Returns the snapshots with this id or name in `scope`.
    pub async fn find_snapshots(&self, ident: &Ident, scope: &VmScope) -> Result<Vec<Snapshot>> {
        let (ident, scope) = (ident.clone(), scope.clone());
        reading!(self.database, |c| snapshot::find(c, &ident, &scope).await)
    }

    /// Returns a part of a page of the snapshots in `scope`; only those of one VM, when it is given.
    pub async fn list_snapshots_part(
        &self,
        scope: &VmScope,
        vm: Option<VmUuid>,
        page: &Page<VmSort>,
        part: PagePart,
    ) -> Result<PageRows<Snapshot>> {
        let (scope, page) = (scope.clone(), page.clone());
        reading!(self.database, |c| snapshot::list(c, (&scope, vm), &page, &part).await)
    }

    /// Returns the ids of the snapshots of a VM.
    pub async fn snapshots_of(&self, vm: VmUuid) -> Result<Vec<SnapshotUuid>> {
        reading!(self.database, |c| snapshot::of(c, vm).await)
    }

    /// Returns the ids of all snapshots, with which a conductor starts.
    pub async fn snapshot_ids(&self) -> Result<Vec<SnapshotUuid>> {
        reading!(self.database, |c| snapshot::ids(c).await)
    }

    /// Writes a snapshot, if its version is still the one that was read, and the events of its VM, if the VM exists. Returns the snapshot
    /// with its new version.
    pub async fn change_snapshot(&self, change: &SnapshotChange) -> Result<Snapshot> {
        let SnapshotChange { snapshot: changed, events } = change.clone();
        writing!(self.database, AnyStatementCanFail, |c| {
            let written = snapshot::update(c, &changed).await?;
            holding::save_one(c, &HoldingOwner::snapshot(&written), &written.takes()).await?;
            if !events.is_empty() && vm::is_there(c, written.vm).await? {
                vm_event::append(c, written.vm, &events).await?;
            }
            Ok(written)
        })
    }

    /// Deletes a snapshot, if its version is still the one that was read.
    pub async fn delete_snapshot(&self, old: &Snapshot) -> Result<()> {
        let old = old.clone();
        writing!(self.database, AnyStatementCanFail, |c| {
            snapshot::delete(c, &old).await?;
            holding::delete(c, &HoldingOwner::snapshot(&old)).await
        })
    }
}

async fn write(c: &mut Connection, change: &VmChange) -> Result<Vm> {
    let written = vm::update(c, &change.vm).await?;
    holding::save_one(c, &HoldingOwner::vm(&written), &written.takes()).await?;
    if let Some(copy) = &change.copy {
        add(c, copy).await?;
    }
    let at = change.events.iter().map(|event| event.at).max().unwrap_or_default();
    let lost = outbox::append(c, &change.letters, at).await?;
    let mut events = change.events.clone();
    if lost > 0 {
        let message = format!(
            "{lost} notices were dropped because the outbox is full: check the webhook and the mail server"
        );
        events.push(VmEvent::error(&written, "NoticeLost", message, at));
    }
    vm_event::append(c, written.id, &events).await?;
    Ok(written)
}

async fn add(c: &mut Connection, new: &Snapshot) -> Result<()> {
    snapshot::insert(c, new).await?;
    holding::save_one(c, &HoldingOwner::snapshot(new), &new.takes()).await
}
