//! VMs and their snapshots: their rows, and their use of limits.

use cluster_core::{
    DefaultLimits, FlavorSize, Ident, LedgerEntry, LedgerState, LedgerUuid, Limit, Limits, Owner,
    Page, QuotaRefused, QuotaScope, Resource, Snapshot, SnapshotOrigin, SnapshotState,
    SnapshotUuid, UserData, UserDataFormat, Vm, VmActionKind, VmEvent, VmFlavor, VmImage, VmSort,
    VmUuid,
};
use cluster_store::{
    PagePart, QuotaWriteError, SnapshotChange, Store, StoreError, VmChange, VmScope,
};
use database::outbox::Letter;
use database::scratch::Scratch;
use jiff::SignedDuration;
use lease::{Lease, Length};
use newtype_uuid::GenericUuid;

use crate::samples::{LARGE, at, is_admitted, on_both, refusal};

on_both! { Store:
    a_vm_is_found_only_within_its_scope
    a_vm_with_a_ledger_entry_cannot_be_deleted
    user_data_is_deleted_once_it_is_not_kept
    vms_and_snapshots_count_until_they_are_deleted
    a_lease_longer_than_the_limit_is_refused
    a_late_change_is_stale
    notices_of_a_vm_are_written_with_the_change
    snapshots_outlive_their_vm
    events_of_vms_are_listed_in_their_order
}

fn flavor(name: &str, size: FlavorSize) -> VmFlavor {
    VmFlavor { id: name.to_owned(), name: name.to_owned(), size }
}

pub(crate) fn vm(project: &str, user: &str, name: &str) -> Vm {
    let image = VmImage {
        id: "i".to_owned(),
        name: "debian".to_owned(),
        user_data_format: UserDataFormat::CloudInit,
        min_disk_gib: 0,
        min_ram_mib: 0,
    };
    let what = (image, flavor("large", LARGE), "net".to_owned());
    Vm::new(VmUuid::new_v4(), Owner::new(project, user), name.parse().unwrap(), what, at(0))
}

async fn stored(store: &Store, vm: &Vm) {
    store.insert_vm(vm, None, &[], None).await.unwrap();
}

async fn find(store: &Store, of: &Vm) -> Option<Vm> {
    let ident = Ident::Id(of.id.into_untyped_uuid());
    store.find_vms(&ident, &VmScope::All).await.unwrap().pop()
}

fn person(project: &str, user: &str) -> VmScope {
    VmScope::Person { project: project.to_owned(), user: user.to_owned() }
}

fn page(marker: Option<VmUuid>) -> Page<VmSort> {
    let marker = marker.map(GenericUuid::into_untyped_uuid);
    Page { limit: 10, marker, sort: VmSort::Name, descending: false }
}

async fn used(store: &Store, of: Resource) -> u64 {
    let whose = QuotaScope { project: "p".to_owned(), person: Some("u".to_owned()) };
    store.account(&whose, &DefaultLimits::default()).await.unwrap().used[of]
}

fn snapshot(of: &Vm, name: &str) -> Snapshot {
    let name = name.parse().unwrap();
    Snapshot::new(SnapshotUuid::new_v4(), of, name, SnapshotOrigin::Asked, at(1))
}

async fn a_vm_is_found_only_within_its_scope(store: Store) {
    let (mine, theirs, others) = (vm("p", "u", "a"), vm("p", "v", "b"), vm("q", "u", "a"));
    for one in [&mine, &theirs, &others] {
        stored(&store, one).await;
    }
    let ident = Ident::Name("a".parse().unwrap());
    let found = store.find_vms(&ident, &VmScope::Project("p".to_owned())).await.unwrap();
    assert_eq!(found.as_slice(), std::slice::from_ref(&mine));
    assert_eq!(store.find_vms(&ident, &person("p", "v")).await.unwrap(), []);
    let of = async |scope: VmScope, marker| {
        let listed = store
            .list_vms_part(&scope, None, &page(marker), PagePart::whole())
            .await
            .map(|it| it.found);
        listed.map(|all| all.into_iter().map(|it| it.id).collect::<Vec<_>>())
    };
    assert_eq!(of(person("p", "u"), None).await.unwrap(), [mine.id]);
    let project = VmScope::Project("p".to_owned());
    assert_eq!(of(project.clone(), Some(mine.id)).await.unwrap(), [theirs.id]);
    // A VM that the scope may not see is no marker.
    let strange = of(person("p", "u"), Some(theirs.id)).await;
    assert!(matches!(strange, Err(StoreError::NoMarker(_))), "{strange:?}");
    let clash = store.insert_vm(&vm("p", "v", "a"), None, &[], None).await;
    assert!(
        matches!(clash, Err(QuotaWriteError::Store(StoreError::Duplicate { field: "name", .. }))),
        "{clash:?}"
    );
}

async fn a_vm_with_a_ledger_entry_cannot_be_deleted(store: Store) {
    let vm = vm("p", "u", "a");
    stored(&store, &vm).await;
    let line = LedgerEntry {
        id: LedgerUuid::new_v4(),
        of: vm.id.into(),
        kind: "server/vm-0".to_owned(),
        name: "a".to_owned(),
        cloud_id: None,
        state: LedgerState::Intended,
        created_at: at(1),
        updated_at: None,
    };
    store.save_ledger(std::slice::from_ref(&line)).await.unwrap();
    let known = LedgerEntry { cloud_id: Some("x".to_owned()), ..line.clone() };
    store.save_ledger(std::slice::from_ref(&known)).await.unwrap();
    assert_eq!(store.ledger_of(vm.id).await.unwrap(), [known]);
    let refused = store.delete_vm(&vm).await;
    assert!(matches!(refused, Err(StoreError::InUse { .. })), "{refused:?}");
    assert_eq!(used(&store, Resource::Vms).await, 1, "it is there, and counts");
    store.remove_ledger_entry(line.id).await.unwrap();
    store.delete_vm(&vm).await.unwrap();
    assert_eq!(used(&store, Resource::Vms).await, 0);
}

async fn user_data_is_deleted_once_it_is_not_kept(store: Store) {
    let noted = UserData { digest: "d".to_owned(), is_kept: true };
    let vm = Vm { user_data: Some(noted.clone()), ..vm("p", "u", "a") };
    store.insert_vm(&vm, Some("sealed"), &[], None).await.unwrap();
    let vm = store.change_vm(&VmChange::of(vm)).await.unwrap();
    assert_eq!(store.sealed_user_data(vm.id).await.unwrap().as_deref(), Some("sealed"));
    let built = Vm { user_data: Some(UserData { is_kept: false, ..noted }), ..vm };
    let built = store.change_vm(&VmChange::of(built)).await.unwrap();
    assert_eq!(store.sealed_user_data(built.id).await.unwrap(), None);
}

async fn vms_and_snapshots_count_until_they_are_deleted(store: Store) {
    let vm = vm("p", "u", "a");
    stored(&store, &vm).await;
    assert_eq!(used(&store, Resource::Vcpus).await, LARGE.vcpus);
    let huge = flavor("huge", FlavorSize { vcpus: 64, ..LARGE });
    let built = Vm {
        built_at: Some(at(1)),
        server: Some(cluster_core::ServerObservation {
            id: "s".to_owned(),
            is: cluster_core::ServerState::On,
            since: at(1),
            flavor: "large".to_owned(),
        }),
        ..vm
    };
    let built = store.change_vm(&VmChange::of(built)).await.unwrap();
    let grown = built.with_action(VmActionKind::Resize(huge), at(2)).unwrap();
    let limits = Limits([(Resource::Vcpus, Limit::AtMost(63))].into());
    let defaults = DefaultLimits { person: limits, ..DefaultLimits::default() };
    let refused = refusal(store.change_vm_within(&VmChange::of(grown.clone()), &defaults).await);
    assert!(matches!(refused, QuotaRefused::Exceeded(_)), "{refused:?}");
    assert_eq!(find(&store, &built).await, Some(built.clone()));
    let grown = store.change_vm_within(&VmChange::of(grown), &DefaultLimits::default()).await;
    let grown = grown.unwrap();
    assert_eq!(used(&store, Resource::Vcpus).await, 64);

    let taken = snapshot(&grown, "s");
    let disk = Limits([(Resource::DiskGib, Limit::AtMost(LARGE.disk_gib))].into());
    let defaults = DefaultLimits { project: disk, ..DefaultLimits::default() };
    let refused = refusal(store.insert_snapshot(&taken, &[], Some(&defaults)).await);
    assert!(matches!(refused, QuotaRefused::Exceeded(_)), "{refused:?}");
    store.insert_snapshot(&taken, &[], None).await.unwrap();
    assert_eq!(used(&store, Resource::DiskGib).await, 2 * LARGE.disk_gib);
    let (failed, events) = taken.failed("no space", at(3));
    let failed = store.change_snapshot(&SnapshotChange { snapshot: failed, events }).await.unwrap();
    assert_eq!(used(&store, Resource::DiskGib).await, LARGE.disk_gib);
    store.delete_snapshot(&failed).await.unwrap();
    store.delete_vm(&grown).await.unwrap();
    assert_eq!(used(&store, Resource::DiskGib).await, 0);
}

async fn a_lease_longer_than_the_limit_is_refused(store: Store) {
    let days = |days: u64| Length::from_secs(days * 86_400).unwrap();
    let limits = Limits([(Resource::LeaseSeconds, Limit::AtMost(7 * 86_400))].into());
    let defaults = DefaultLimits { person: limits, ..DefaultLimits::default() };
    let endless = vm("p", "u", "a");
    let refused = refusal(store.insert_vm(&endless, None, &[], Some(&defaults)).await);
    assert!(matches!(refused, QuotaRefused::Lease { asked: None, .. }), "{refused:?}");
    let long = Vm { lease: Some(Lease::new(at(0), days(8))), ..endless.clone() };
    let refused = refusal(store.insert_vm(&long, None, &[], Some(&defaults)).await);
    assert!(matches!(refused, QuotaRefused::Lease { asked: Some(_), .. }), "{refused:?}");
    let week = Vm { lease: Some(Lease::new(at(0), days(7))), ..endless };
    store.insert_vm(&week, None, &[], Some(&defaults)).await.unwrap();
    // A limit that was lowered applies to a new lease, not to the existing one.
    let less = Limits([(Resource::LeaseSeconds, Limit::AtMost(86_400))].into());
    let less = DefaultLimits { person: less, ..DefaultLimits::default() };
    let same = store.change_vm_within(&VmChange::of(week.clone()), &less).await.unwrap();
    let extended = Vm { lease: Some(Lease::new(at(5), days(7))), ..same };
    let refused = refusal(store.change_vm_within(&VmChange::of(extended), &less).await);
    assert!(matches!(refused, QuotaRefused::Lease { .. }), "{refused:?}");
}

async fn a_late_change_is_stale(store: Store) {
    let vm = vm("p", "u", "a");
    stored(&store, &vm).await;
    let copy = snapshot(&vm, "kept");
    let event = VmEvent::info(&vm, "Built", "so it is", at(1));
    let change =
        VmChange { copy: Some(copy.clone()), events: vec![event], ..VmChange::of(vm.clone()) };
    let written = store.change_vm(&change).await.unwrap();
    assert_eq!(written.version, 2);
    let late = store.change_vm(&VmChange { copy: Some(snapshot(&vm, "other")), ..change }).await;
    assert!(matches!(late, Err(StoreError::Stale)), "{late:?}");
    let late = store.change_vm_within(&VmChange::of(vm.clone()), &DefaultLimits::default()).await;
    assert!(matches!(late, Err(QuotaWriteError::Store(StoreError::Stale))), "{late:?}");
    assert_eq!(store.snapshots_of(vm.id).await.unwrap(), [copy.id]);
    assert_eq!(store.vm_events_of(vm.id, 10, None).await.unwrap().len(), 1);
}

async fn notices_of_a_vm_are_written_with_the_change(store: Store) {
    let vm = vm("p", "u", "a");
    stored(&store, &vm).await;
    let notice = vm.id.into_untyped_uuid();
    let letter =
        Letter { notice, receiver: "webhook".to_owned(), body: "{}".to_owned(), project: None };
    let events = vec![VmEvent::warning(&vm, "LeaseEndsSoon", "it ends", at(1))];
    let change = VmChange { events, letters: vec![letter.clone()], ..VmChange::of(vm.clone()) };
    store.change_vm(&change).await.unwrap();
    let due = async || store.outbox().due(at(100), SignedDuration::ZERO, 9).await.unwrap();
    let first = due().await.pop().unwrap();
    assert_eq!(first.letter, letter);
    store.outbox().remove(first.seq).await.unwrap();
    // A stale change writes no letter.
    assert!(matches!(store.change_vm(&change).await, Err(StoreError::Stale)));
    assert_eq!(due().await, []);
}

async fn snapshots_outlive_their_vm(store: Store) {
    let vm = vm("p", "u", "a");
    stored(&store, &vm).await;
    let taken = snapshot(&vm, "s");
    store.insert_snapshot(&taken, &[], None).await.unwrap();
    store.delete_vm(&vm).await.unwrap();
    let made = Snapshot { state: SnapshotState::Active, ..taken.clone() };
    let events = vec![VmEvent::info(&vm, "SnapshotMade", "it is", at(2))];
    let made = store.change_snapshot(&SnapshotChange { snapshot: made, events }).await.unwrap();
    let scope = VmScope::Project("p".to_owned());
    let listed = store
        .list_snapshots_part(&scope, Some(vm.id), &page(None), PagePart::whole())
        .await
        .unwrap()
        .found;
    assert_eq!(listed.as_slice(), std::slice::from_ref(&made));
    let others =
        store.list_snapshots_part(&person("p", "v"), None, &page(None), PagePart::whole()).await;
    assert_eq!(others.unwrap().found, []);
    let late = store.change_snapshot(&SnapshotChange { snapshot: taken, events: vec![] }).await;
    assert!(matches!(late, Err(StoreError::Stale)), "{late:?}");
    assert_eq!(store.snapshot_ids().await.unwrap(), [made.id]);
}

async fn events_of_vms_are_listed_in_their_order(store: Store) {
    let vm = vm("p", "u", "a");
    stored(&store, &vm).await;
    let events = ["One", "Two"].map(|reason| VmEvent::info(&vm, reason, "so", at(1))).to_vec();
    store.change_vm(&VmChange { events, ..VmChange::of(vm.clone()) }).await.unwrap();
    let all = store.vm_events_of(vm.id, 10, None).await.unwrap();
    let reasons: Vec<&str> = all.iter().map(|it| it.reason.as_str()).collect();
    assert_eq!(reasons, ["One", "Two"]);
    let rest = store.vm_events_of(vm.id, 10, all[0].id).await.unwrap();
    assert_eq!(rest, all[1..]);
}

/// Two processes work on one database.
mod of_two_programs {
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn ten_of_two_hundred_vms_use_up_a_limit_on_sqlite() {
        the_last_ten(Scratch::sqlite()).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn ten_of_two_hundred_vms_use_up_a_limit_on_postgres() {
        let Some(scratch) = Scratch::postgres().await else { return };
        the_last_ten(scratch).await;
    }
}

async fn the_last_ten(scratch: Scratch) {
    let stores =
        [Store::open(&scratch.url).await.unwrap(), Store::open(&scratch.url).await.unwrap()];
    stored(&stores[0], &vm("p", "u", "first")).await;
    let limits = Limits([(Resource::Vms, Limit::AtMost(11))].into());
    let defaults = DefaultLimits { project: limits, ..DefaultLimits::default() };
    let asked: Vec<_> = (0..200)
        .map(|n| {
            let (store, defaults) = (stores[n % 2].clone(), defaults.clone());
            tokio::spawn(async move {
                let new = vm("p", &format!("u{}", n % 7), &format!("m{n}"));
                is_admitted(store.insert_vm(&new, None, &[], Some(&defaults)).await)
            })
        })
        .collect();
    let mut had = 0;
    for one in asked {
        had += usize::from(one.await.unwrap());
    }
    assert_eq!(had, 10);
    assert_eq!(stores[1].vm_ids().await.unwrap().len(), 11);
    assert_eq!(stores[0].count_vms().await.unwrap(), 11);
}
