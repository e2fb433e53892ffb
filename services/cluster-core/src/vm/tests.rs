//! Turns of VMs as tables: the observation, and the resulting events and requests.

mod conclusion;
mod lease;
mod plan;
mod snapshot;

use std::collections::BTreeSet;
use std::time::Duration;

use ::lease::{Lease, LeaseSchedule, LeaseStage, Length};
use decision::{Decision, Requeue};
use expect_test::{Expect, expect};
use jiff::{SignedDuration, Timestamp};
use newtype_uuid::GenericUuid;

use super::*;
use crate::sample::at;
use crate::{
    Amounts, Backoff, CloudObject, CloudObjectDetails, CloudObjectState, ClusterObservation,
    Failure, FlavorSize, Key, LeaseNotice, LedgerEntry, LedgerState, ProjectObservation,
    RecordChange, Resource, SecurityGroupRole, ServerDetails, ServerState, SnapshotUuid,
    TurnPauses,
};

const SMALL: FlavorSize = FlavorSize { vcpus: 2, ram_mib: 4096, disk_gib: 20, gpus: 0 };
const LARGE: FlavorSize = FlavorSize { vcpus: 8, ram_mib: 2048, disk_gib: 40, gpus: 1 };

fn flavor(name: &str, size: FlavorSize) -> VmFlavor {
    VmFlavor { id: format!("id-{name}"), name: name.to_owned(), size }
}

fn image() -> VmImage {
    let (id, name) = ("i-1".to_owned(), "debian".to_owned());
    VmImage { id, name, told: UserDataFormat::CloudInit, min_disk_gib: 10, min_ram_mib: 512 }
}

fn uuid<T: GenericUuid>(last: u128) -> T {
    T::from_untyped_uuid(uuid::Uuid::from_u128(0x7c9e_6679_7425_40de_944b_e07f_c1f9_0000 + last))
}

/// A new VM with a floating IP and a DNS name.
fn asked() -> Vm {
    let what = (image(), flavor("small", SMALL), "net-1".to_owned());
    let vm = Vm::new(uuid(1), Owner::new("p", "u"), "dev".parse().unwrap(), what, at(0));
    Vm { public: Some("public".to_owned()), zone: Some("example.org.".to_owned()), ..vm }
}

/// A VM whose server was observed in this state.
fn built(is: ServerState) -> Vm {
    let server =
        ServerObservation { id: "s".to_owned(), is, since: at(1), flavor: "small".to_owned() };
    Vm { built_at: Some(at(1)), server: Some(server), ..asked() }
}

fn found(id: &str, state: CloudObjectState, facts: CloudObjectDetails) -> CloudObject {
    CloudObject { id: id.to_owned(), state, address: Some([10, 0, 0, 7].into()), facts }
}

fn server(is: ServerState, is_busy: bool, flavor: &str) -> CloudObject {
    let state = match &is {
        ServerState::Failed(why) => CloudObjectState::Failed(why.clone()),
        ServerState::Building => CloudObjectState::Working,
        ServerState::Leaving => CloudObjectState::Deleting,
        ServerState::On
        | ServerState::Off
        | ServerState::Resized
        | ServerState::Changing
        | ServerState::Other(_) => CloudObjectState::Ready,
    };
    found(
        "s",
        state,
        CloudObjectDetails::Server(ServerDetails { is, is_busy, flavor: flavor.to_owned() }),
    )
}

/// An observation in which the server is as given and every other object is ready.
fn seen(server: Option<CloudObject>) -> ClusterObservation {
    let mut seen = ClusterObservation { at: Some(at(100)), ..ClusterObservation::default() };
    for (key, object) in &vm_desired_objects(&asked()) {
        let facts = if let crate::ResourceSpec::SecurityGroup { rules } = &object.thing {
            CloudObjectDetails::Rules(rules.clone())
        } else if matches!(object.thing, crate::ResourceSpec::Record { .. }) {
            CloudObjectDetails::Addresses(BTreeSet::from([[10, 0, 0, 7].into()]))
        } else {
            CloudObjectDetails::None
        };
        seen.objects.insert(key.clone(), found(&key.to_string(), CloudObjectState::Ready, facts));
    }
    let key = Key::Server(vm_machine());
    match server {
        Some(server) => seen.objects.insert(key, server),
        None => seen.objects.remove(&key),
    };
    seen
}

const PAUSES: TurnPauses =
    TurnPauses { soon: Duration::from_millis(500), look_every: Duration::from_secs(600) };

fn rules() -> VmRules {
    let secs = SignedDuration::from_secs;
    VmRules {
        ladder: LeaseSchedule::default(),
        lands_within: secs(60),
        ends_again_after: secs(900),
        idle_every: secs(900),
        pauses: PAUSES,
        new_copy: uuid(9),
    }
}

/// The records of a VM with a cloud object.
fn records(vm: &Vm, copy: Option<&Snapshot>) -> VmRecords {
    let line = LedgerEntry {
        id: uuid(8),
        of: vm.id.into(),
        kind: "server".to_owned(),
        name: "dev".to_owned(),
        cloud_id: Some("s".to_owned()),
        state: LedgerState::Present,
        created_at: at(0),
        updated_at: None,
    };
    VmRecords { vm: vm.clone(), ledger: vec![line], copy: copy.cloned() }
}

fn worked(seen: &ClusterObservation, arrival: RequestArrival) -> VmCallResult {
    let (seen, next_turn) = (seen.clone(), Requeue::After(PAUSES.look_every));
    VmCallResult::Reconciled(Box::new(VmCloudWork {
        seen,
        arrival,
        given_up: Vec::new(),
        next_turn,
    }))
}

/// The result of a turn in which Nova answers all calls.
#[derive(Debug)]
struct Turned {
    vm: Vm,
    events: Vec<VmEvent>,
    notices: Vec<LeaseNotice>,
    copy: Option<Snapshot>,
    ask: Option<VmRequest>,
    next_turn: Requeue,
}

fn turn_at(
    vm: &Vm,
    seen: &ClusterObservation,
    arrival: RequestArrival,
    copy: Option<&Snapshot>,
    now: Timestamp,
) -> Turned {
    let (events, notices) = (Vec::new(), Vec::new());
    let next_turn = Requeue::OnChange;
    let mut turned = Turned { vm: vm.clone(), events, notices, copy: None, ask: None, next_turn };
    let mut results = vec![worked(seen, arrival)];
    while !results.is_empty() {
        let decided = after_vm_calls(&records(&turned.vm, copy), &results, &rules(), now);
        turned.next_turn = turned.next_turn.min(decided.next_turn);
        if let Some(RecordChange::Write(update)) = decided.change {
            turned.vm = update.vm;
            turned.events.extend(update.events);
            turned.notices.extend(update.notices);
            turned.copy = update.copy.or(turned.copy);
        }
        let answers = decided.actions.into_iter().map(|call| match call {
            VmCall::ReconcileObjects => panic!("the objects are reconciled once in a turn"),
            VmCall::ReadDiagnostics { .. } => VmCallResult::NoDiagnostics,
            VmCall::ReadLastRequest { .. } => VmCallResult::LastRequest(Some("r".to_owned())),
            VmCall::Send { request, .. } => {
                let sent = turned.vm.errand.as_ref().and_then(|errand| errand.sent.as_ref());
                assert!(sent.is_some(), "a request is recorded before it is sent");
                turned.ask = Some(request);
                VmCallResult::Sent
            }
        });
        results = answers.collect();
    }
    turned
}

fn turn(vm: &Vm, seen: &ClusterObservation, arrival: RequestArrival) -> Turned {
    turn_at(vm, seen, arrival, None, at(100))
}

/// Describes the events and the request of a turn.
fn told(turned: &Turned) -> String {
    let events: Vec<String> =
        turned.events.iter().map(|it| format!("{}: {}\n", it.reason, it.message)).collect();
    let action = turned.vm.errand.as_ref().map(|it| it.kind.to_string());
    format!("{}ask {:?}, action {action:?}, {}", events.concat(), turned.ask, turned.vm.phase())
}

#[track_caller]
fn check_errand(
    kind: VmActionKind,
    sent: bool,
    server: Option<CloudObject>,
    arrival: RequestArrival,
    want: Expect,
) {
    let mut vm = built(ServerState::On);
    let errand = VmAction::new(kind, ActionOrigin::Owner, at(90));
    let sent = sent.then(|| SentRequest { at: at(95), after: None, times: 1 });
    vm.errand = Some(VmAction { sent, ..errand });
    want.assert_eq(&told(&turn(&vm, &seen(server), arrival)));
}

fn on() -> Option<CloudObject> {
    Some(server(ServerState::On, false, "small"))
}

fn is(is: ServerState) -> Option<CloudObject> {
    Some(server(is, false, "small"))
}

fn broken() -> ServerState {
    ServerState::Failed("no such disk".to_owned())
}

#[test]
fn an_action_is_requested_once_and_judged_by_the_observation() {
    use RequestArrival::{Arrived, NotYet};
    check_errand(
        VmActionKind::Stop,
        false,
        on(),
        NotYet,
        expect![[r#"ask Some(Action(Stop)), action Some("stop"), STOPPING"#]],
    );
    check_errand(
        VmActionKind::Stop,
        true,
        on(),
        NotYet,
        expect![[r#"ask None, action Some("stop"), STOPPING"#]],
    );
    let busy = Some(server(ServerState::On, true, "small"));
    check_errand(
        VmActionKind::Stop,
        true,
        busy,
        Arrived,
        expect![[r#"ask None, action Some("stop"), STOPPING"#]],
    );
    check_errand(
        VmActionKind::Stop,
        true,
        is(ServerState::Off),
        Arrived,
        expect![[r#"
        ErrandDone: done: stop
        ask None, action None, STOPPED"#]],
    );
    check_errand(
        VmActionKind::Start,
        false,
        is(broken()),
        NotYet,
        expect![[r#"
        ServerFailed: the server failed: no such disk
        ErrandRefused: start was not done: the server is in ERROR (no such disk)
        ask None, action None, FAILED"#]],
    );
    check_errand(
        VmActionKind::Stop,
        false,
        None,
        NotYet,
        expect![[r#"
        ServerGone: the server disappeared, and clusterd did not delete it
        ErrandRefused: stop was not done: the VM has no server
        ask None, action None, LOST"#]],
    );
}

#[test]
fn a_reboot_is_done_once_it_arrived_and_leads_out_of_error() {
    use RequestArrival::{Arrived, NotYet};
    check_errand(
        VmActionKind::RebootSoft,
        true,
        on(),
        NotYet,
        expect![[r#"ask None, action Some("reboot"), REBOOTING"#]],
    );
    check_errand(
        VmActionKind::RebootSoft,
        true,
        on(),
        Arrived,
        expect![[r#"
        ErrandDone: done: reboot
        ask None, action None, ACTIVE"#]],
    );
    check_errand(
        VmActionKind::RebootHard,
        false,
        is(broken()),
        NotYet,
        expect![[r#"
        ServerFailed: the server failed: no such disk
        ask Some(Action(RebootHard)), action Some("hard reboot"), REBOOTING"#]],
    );
    assert!(built(broken()).with_errand(VmActionKind::RebootHard, at(5)).is_ok());
    assert!(built(broken()).with_errand(VmActionKind::RebootSoft, at(5)).is_err());
}

#[test]
fn a_resize_that_nova_failed_is_reported_and_never_sent_again() {
    let kind = VmActionKind::Resize(flavor("large", LARGE));
    check_errand(
        kind.clone(),
        true,
        on(),
        RequestArrival::Arrived,
        expect![[r#"
        ErrandFailed: resize to large was not done: Nova gave up, and the server is on
        ask None, action None, ACTIVE"#]],
    );
    let resized = Some(server(ServerState::Resized, false, "large"));
    check_errand(
        kind.clone(),
        true,
        resized,
        RequestArrival::Arrived,
        expect![[r#"ask Some(Confirm), action Some("resize to large"), RESIZING"#]],
    );
    let done = Some(server(ServerState::On, false, "large"));
    check_errand(
        kind,
        true,
        done,
        RequestArrival::Arrived,
        expect![[r#"
        ErrandDone: done: resize to large
        ask None, action None, ACTIVE"#]],
    );
}

#[test]
fn a_request_that_never_arrives_is_sent_three_times() {
    let mut vm = built(ServerState::On);
    vm.errand = Some(VmAction::new(VmActionKind::RebootSoft, ActionOrigin::Owner, at(0)));
    let mut asked = 0;
    for minute in 1..10 {
        let now = at(minute * 61);
        let turned = turn_at(&vm, &seen(on()), RequestArrival::NotYet, None, now);
        asked += u32::from(turned.ask.is_some());
        vm = turned.vm;
    }
    assert_eq!((asked, vm.errand), (3, None));
}

#[test]
fn the_larger_size_counts_until_a_resize_is_confirmed() {
    let vm =
        built(ServerState::On).with_errand(VmActionKind::Resize(flavor("large", LARGE)), at(5));
    let vm = vm.unwrap();
    let want = [
        (Resource::Vms, 1),
        (Resource::Vcpus, 8),
        (Resource::RamMib, 4096),
        (Resource::DiskGib, 40),
        (Resource::Gpus, 1),
        (Resource::FloatingIps, 1),
    ];
    assert_eq!(vm.takes(), Amounts::from_iter(want));
    let mut vm = vm;
    vm.errand.as_mut().unwrap().sent = Some(SentRequest { at: at(95), after: None, times: 1 });
    let resized = turn(
        &vm,
        &seen(Some(server(ServerState::Resized, false, "large"))),
        RequestArrival::Arrived,
    );
    assert_eq!(resized.vm.takes()[Resource::RamMib], 4096);
    let done =
        turn(&vm, &seen(Some(server(ServerState::On, false, "large"))), RequestArrival::Arrived);
    assert_eq!(done.vm.takes()[Resource::RamMib], 2048);
}

#[test]
fn the_minimum_of_an_image_holds_at_first_and_after_a_resize() {
    let tight = flavor("tight", FlavorSize { disk_gib: 5, ..SMALL });
    assert!(image().check(&tight, None).is_err() && image().check(&tight, Some(10)).is_ok());
    let poor = flavor("poor", FlavorSize { ram_mib: 256, ..LARGE });
    let refused =
        built(ServerState::On).with_errand(VmActionKind::Resize(poor), at(5)).unwrap_err();
    expect![
        "image debian needs at least 512 MiB of memory, and the VM would have 256: request more"
    ]
    .assert_eq(&refused.to_string());
    let shrinks = flavor("shrinks", FlavorSize { disk_gib: 15, ..SMALL });
    assert!(matches!(
        built(ServerState::On).with_errand(VmActionKind::Resize(shrinks), at(5)),
        Err(VmRefusal::Shrinks { .. })
    ));
    let as_large = flavor("as-large", FlavorSize { vcpus: 4, ..SMALL });
    assert!(built(ServerState::On).with_errand(VmActionKind::Resize(as_large), at(5)).is_ok());
}

#[test]
fn a_flavor_may_have_exactly_what_the_image_needs() {
    let rows = [
        (10, 512, None, true),
        (9, 512, None, false),
        (10, 511, None, false),
        (9, 512, Some(10), true),
        (10, 512, Some(9), false),
        // Nova gives a flavor without a disk one that is as large as the image.
        (0, 512, None, true),
    ];
    for (disk_gib, ram_mib, root_volume, is_enough) in rows {
        let flavor = flavor("f", FlavorSize { disk_gib, ram_mib, ..SMALL });
        let checked = image().check(&flavor, root_volume);
        assert_eq!(checked.is_ok(), is_enough, "{disk_gib} {ram_mib} {root_volume:?}");
    }
}

#[test]
fn a_server_that_ran_is_never_recreated_nor_deleted_because_it_failed() {
    let shape = vm_desired_objects(&asked());
    let gone = seen(None);
    assert_eq!(vm_plan(&built(ServerState::On), &shape, &gone), []);
    assert_eq!(vm_plan(&built(ServerState::On), &shape, &seen(is(broken()))), []);
    let create = vec![crate::Action::Create(Key::Server(vm_machine()))];
    assert_eq!(vm_plan(&asked(), &shape, &gone), create);
}

#[test]
fn a_server_waits_for_its_volume_and_a_failed_volume_is_reported() {
    let mut vm = Vm { root_volume: Some(30), ..asked() };
    let shape = vm_desired_objects(&vm);
    let mut seen = seen(None);
    seen.objects
        .insert(Key::RootVolume, found("v", CloudObjectState::Working, CloudObjectDetails::None));
    assert_eq!(vm_plan(&vm, &shape, &seen), []);
    for time in 0..3_i64 {
        let failed = found(
            &format!("v{time}"),
            CloudObjectState::Failed("no space".to_owned()),
            CloudObjectDetails::None,
        );
        seen.objects.insert(Key::RootVolume, failed.clone());
        let failure = Failure { why: "no space".to_owned(), object: Some(failed.id) };
        seen.failures = [(Key::RootVolume, failure)].into();
        let turned = turn_at(&vm, &seen, RequestArrival::NotYet, None, at(200 + time));
        vm = turned.vm;
    }
    assert_eq!(vm.phase(), VmPhase::Failed);
    assert_eq!(vm.problem.as_ref().unwrap().reason, "BuildFailed");
    seen.objects.remove(&Key::RootVolume);
    seen.held = vm.held(&Backoff::DEFAULT, at(100_000));
    assert_eq!(vm_plan(&vm, &shape, &seen), [], "it is asked for no more");
}

#[test]
fn a_vm_that_is_off_has_nothing_in_progress_whatever_its_lease() {
    let vm = Vm {
        lease: Some(Lease::new(at(0), Length::from_secs(86_400).unwrap())),
        ..built(ServerState::Off)
    };
    assert!(!vm.is_under_way(&seen(is(ServerState::Off))));
    let working = seen(Some(server(ServerState::Building, false, "small")));
    assert!(vm.is_under_way(&working));
}

/// A VM whose lease ended, before any stage after the warning was taken.
fn ended(is: ServerState) -> Vm {
    let lease = Lease::new(at(-900_000), Length::from_secs(800_000).unwrap());
    let lease = lease.with_stage_taken(&LeaseStage::Warn { ends_at: at(-100_000) }, at(-800_000));
    Vm { lease: Some(lease), ..built(is) }
}

#[test]
fn the_end_of_a_lease_switches_off_makes_a_snapshot_and_can_be_undone() {
    let first = turn(&ended(ServerState::On), &seen(on()), RequestArrival::NotYet);
    expect![[r#"
        LeaseEnded: the lease ended: the VM is switched off, and deleted at 2023-11-21T22:15:00Z; extend the lease or undo its end to keep the VM
        ask Some(Action(Stop)), action Some("stop"), EXPIRED"#]].assert_eq(&told(&first));
    let outside: Vec<&str> = first.notices.iter().map(|it| it.event).collect();
    assert_eq!(outside, ["lease.ended"]);
    let off = turn(&first.vm, &seen(is(ServerState::Off)), RequestArrival::Arrived);
    let off = turn(&off.vm, &seen(is(ServerState::Off)), RequestArrival::Arrived);
    let copy = off.copy.clone().unwrap();
    assert_eq!((off.vm.copy, copy.why), (Some(copy.id), SnapshotOrigin::LeaseEnded));
    // A second turn makes no second snapshot, and the snapshot counts only once its image is active.
    let waits =
        turn_at(&off.vm, &seen(is(ServerState::Off)), RequestArrival::NotYet, Some(&copy), at(101));
    assert_eq!((waits.copy, waits.vm.lease.as_ref().unwrap().taken.copied_at), (None, None));
    let made = Snapshot { state: SnapshotState::Active, ..copy };
    let copied =
        turn_at(&off.vm, &seen(is(ServerState::Off)), RequestArrival::NotYet, Some(&made), at(102));
    assert_eq!(copied.vm.lease.as_ref().unwrap().taken.copied_at, Some(at(102)));

    let mut undone = copied.vm;
    let lease = undone.lease.take().unwrap();
    undone.lease = Some(
        lease.undone("u", &LeaseSchedule::default(), ::lease::Terms::default(), at(103)).unwrap(),
    );
    let again =
        turn_at(&undone, &seen(is(ServerState::Off)), RequestArrival::NotYet, Some(&made), at(103));
    assert_eq!((again.ask, again.vm.copy), (Some(VmRequest::Action(VmActionKind::Start)), None));
}

#[test]
fn a_failed_server_does_not_delay_the_end_of_the_lease() {
    let turned = turn(&ended(broken()), &seen(is(broken())), RequestArrival::NotYet);
    assert!(told(&turned).contains("CopySkipped"), "{}", told(&turned));
    assert!(turned.vm.lease.as_ref().unwrap().taken.copied_at.is_some());
    assert_eq!((turned.ask.clone(), turned.vm.errand.clone()), (None, None));
    let later = turn_at(&turned.vm, &seen(is(broken())), RequestArrival::NotYet, None, at(101));
    assert_eq!((later.ask, later.events), (None, vec![]));
}

#[test]
fn a_switch_off_that_fails_is_reported_once_and_tried_again_later() {
    let mut vm = turn(&ended(ServerState::On), &seen(on()), RequestArrival::NotYet).vm;
    let mut events = 0;
    let mut asked = 0;
    for second in 0..120 {
        if vm.errand.as_ref().is_some_and(|errand| errand.sent.is_some()) {
            let (refused, told) = vm.refused("it is locked", at(100 + second * 10));
            (vm, events) = (refused, events + told.len());
        }
        let turned = turn_at(&vm, &seen(on()), RequestArrival::NotYet, None, at(100 + second * 10));
        asked += u32::from(turned.ask.is_some());
        vm = turned.vm;
    }
    assert_eq!((events, asked), (1, 1));
}

fn copy() -> Snapshot {
    let name = "one".parse().unwrap();
    Snapshot::new(uuid(3), &built(ServerState::On), name, SnapshotOrigin::Asked, at(0))
}

fn snapshot_rules() -> SnapshotRules {
    let secs = SignedDuration::from_secs;
    SnapshotRules {
        keep: secs(1000),
        backoff: Backoff::DEFAULT,
        lands_within: secs(60),
        pauses: PAUSES,
    }
}

/// Returns the snapshot and the events after a decision, and describes what is done next.
fn applied(
    of: &Snapshot,
    decided: Decision<RecordChange<SnapshotUpdate>, SnapshotAction>,
) -> (Snapshot, Vec<VmEvent>, String) {
    let Decision { change, actions, next_turn, .. } = decided;
    let actions = actions.iter().map(|action| match action {
        SnapshotAction::Request { server } => format!("request an image of {server}"),
        SnapshotAction::DeleteImage(image) => format!("delete {image}"),
    });
    let actions: Vec<String> = actions.collect();
    let next = match next_turn {
        _ if change == Some(RecordChange::Delete) => "forget".to_owned(),
        _ if !actions.is_empty() => actions.join(", "),
        Requeue::After(pause) if pause == PAUSES.soon => "look again".to_owned(),
        Requeue::After(pause) if pause == PAUSES.look_every => "rest".to_owned(),
        Requeue::After(pause) => format!("rest {} s", pause.as_secs()),
        Requeue::Now | Requeue::OnChange => format!("{next_turn:?}"),
    };
    match change {
        Some(RecordChange::Write(SnapshotUpdate { snapshot, events })) => (snapshot, events, next),
        Some(RecordChange::Delete) | None => (of.clone(), Vec::new(), next),
    }
}

fn snapped(
    of: &Snapshot,
    images: &[(&str, Option<Result<(), String>>)],
    vm: Option<&Vm>,
    now: i64,
) -> (Snapshot, Vec<VmEvent>, String) {
    let seen = |(id, usable): &(&str, Option<Result<(), String>>)| SnapshotImage {
        id: (*id).to_owned(),
        usable: usable.clone(),
    };
    let images = images.iter().map(seen).collect();
    let seen = SnapshotObservation::Seen { images, vm: vm.cloned().map(Box::new) };
    applied(of, plan_snapshot(of, &seen, &snapshot_rules(), at(now)))
}

#[test]
fn a_snapshot_is_made_once_its_image_is_active_and_a_failure_has_its_reason() {
    let vm = built(ServerState::On);
    let (asked, _, next) = snapped(&copy(), &[], Some(&vm), 1);
    assert_eq!((asked.state, next.as_str()), (SnapshotState::Making, "request an image of s"));
    // The answer of the create request was lost: the image is found by its name.
    let (found, events, _) = snapped(&asked, &[("i", None)], Some(&vm), 2);
    assert_eq!(
        (found.image.as_deref(), found.state, events.len()),
        (Some("i"), SnapshotState::Making, 0)
    );
    let (made, events, _) = snapped(&found, &[("i", Some(Ok(())))], Some(&vm), 3);
    assert_eq!((made.state, events[0].reason.as_str()), (SnapshotState::Active, "SnapshotMade"));
    let (failed, events, next) =
        snapped(&found, &[("i", Some(Err("killed".to_owned())))], Some(&vm), 3);
    assert_eq!((failed.state, failed.reason.as_deref()), (SnapshotState::Failed, Some("killed")));
    assert_eq!(next, "delete i");
    assert!(events[0].message.ends_with("killed"), "{events:?}");
    assert_eq!(failed.takes()[Resource::DiskGib], 0);
    let (_, _, next) = snapped(&failed, &[], Some(&vm), 1_000_000);
    assert_eq!(next, "rest", "nobody asked for it again");
}

#[test]
fn a_snapshot_without_an_answer_is_requested_again_and_a_second_image_is_deleted() {
    let vm = built(ServerState::On);
    let asked = snapped(&copy(), &[], Some(&vm), 1).0;
    assert_eq!(snapped(&asked, &[], Some(&vm), 30).2, "rest 31 s");
    let (again, _, next) = snapped(&asked, &[], Some(&vm), 62);
    let request = "request an image of s";
    assert_eq!((again.times, next.as_str()), (0, request), "who is killed has not asked");
    // The snapshot fails after three requests without an answer.
    let mut tried = asked.clone();
    for at in [100, 200] {
        tried = snapped(&tried.unanswered(), &[], Some(&vm), at).0;
        assert_eq!(tried.state, SnapshotState::Making);
    }
    let (failed, events, _) = snapped(&tried.unanswered(), &[], Some(&vm), 300);
    assert_eq!((failed.state, events.len()), (SnapshotState::Failed, 1));
    let both = [("i", None), ("j", None)];
    let (kept, _, next) = snapped(&again, &both, Some(&vm), 63);
    assert_eq!((kept.image.as_deref(), next.as_str()), (Some("i"), "delete j"));
}

#[test]
fn the_snapshot_of_an_ended_lease_is_retried_kept_and_dropped_if_undone() {
    let copy = Snapshot { why: SnapshotOrigin::LeaseEnded, ..copy() };
    let vm = Vm { copy: Some(copy.id), ..built(ServerState::Off) };
    let (failed, events) = copy.failed("no space", at(10));
    assert_eq!(events.len(), 1);
    assert_eq!(snapped(&failed, &[], Some(&vm), 11).2, "rest 1 s");
    let again = snapped(&failed, &[], Some(&vm), 12).0;
    assert_eq!(again.state, SnapshotState::Wanted);
    let (twice, events) = again.failed("no space", at(12));
    assert_eq!((events.len(), snapped(&twice, &[], Some(&vm), 13).2.as_str()), (0, "rest 3 s"));

    let made = Snapshot { state: SnapshotState::Active, image: Some("i".to_owned()), ..copy };
    let image = [("i", Some(Ok(())))];
    let kept = snapped(&made, &image, None, 100).0;
    assert_eq!(kept.keep_until, Some(at(1100)));
    assert_eq!(snapped(&kept, &image, None, 1100).0.state, SnapshotState::Leaving);
    let undone = Vm { copy: None, ..vm };
    assert_eq!(snapped(&made, &image, Some(&undone), 100).0.state, SnapshotState::Leaving);
}

#[test]
fn a_snapshot_that_is_made_forgets_its_failures() {
    let asked = Snapshot { why: SnapshotOrigin::LeaseEnded, times: 2, ..copy() };
    let (failed, _) = asked.failed("no space", at(10));
    assert_eq!((failed.times, failed.failures), (0, 1));
    let vm = Vm { copy: Some(failed.id), ..built(ServerState::On) };
    let again = Snapshot { state: SnapshotState::Wanted, ..failed };
    let made = snapped(&again, &[("i", Some(Ok(())))], Some(&vm), 20).0;
    assert_eq!((made.state, made.made_at), (SnapshotState::Active, Some(at(20))));
    assert_eq!((made.failures, made.failed_at, made.reason), (0, None, None));
}

#[test]
fn a_snapshot_whose_image_disappears_fails_and_names_no_image() {
    let vm = built(ServerState::On);
    for state in [SnapshotState::Making, SnapshotState::Active] {
        let of = Snapshot { state, image: Some("i".to_owned()), ..copy() };
        let (failed, events, _) = snapped(&of, &[], Some(&vm), 20);
        assert_eq!((failed.state, failed.image), (SnapshotState::Failed, None));
        assert_eq!(events.len(), 1);
    }
}

#[test]
fn a_vm_that_is_to_be_deleted_has_no_action() {
    let vm = built(ServerState::On).with_errand(VmActionKind::Stop, at(5)).unwrap();
    assert_eq!((vm.errand.is_some(), vm.updated_at), (true, Some(at(5))));
    let gone = vm.to_be_deleted(at(6));
    assert_eq!((gone.errand, gone.updated_at), (None, Some(at(6))));
}

#[test]
fn a_snapshot_is_forgotten_once_no_image_of_it_is_left() {
    let leaving = Snapshot { asked_at: Some(at(0)), ..copy().leaving() };
    let image = [("i", Some(Ok(())))];
    assert_eq!(snapped(&leaving, &image, None, 1).2, "delete i");
    let both = [("i", None), ("j", None)];
    assert_eq!(snapped(&leaving, &both, None, 1).2, "delete i, delete j");
    assert_eq!(snapped(&leaving, &[], None, 1).2, "rest 59 s");
    assert_eq!(snapped(&leaving, &[], None, 61).2, "forget");
}

#[test]
fn a_snapshot_that_cannot_be_observed_rests_as_long_as_the_cloud_asks() {
    let rest = |seen| plan_snapshot(&copy(), &seen, &snapshot_rules(), at(1));
    let unknown =
        |retry_after| rest(SnapshotObservation::Unknown { why: "busy".to_owned(), retry_after });
    let asked = Duration::from_secs(7);
    for (decided, pause, lines) in [
        (rest(SnapshotObservation::NoCloud), PAUSES.look_every, 0),
        (unknown(None), PAUSES.look_every, 1),
        (unknown(Some(asked)), asked, 1),
    ] {
        assert_eq!((decided.next_turn, decided.log.len()), (Requeue::After(pause), lines));
        assert_eq!((decided.change, decided.actions), (None, vec![]));
    }
}

#[test]
fn an_image_is_requested_of_a_server_at_rest_and_of_no_other() {
    let with = |is: ServerState, sent: Option<bool>| {
        let mut vm = built(is);
        vm.errand = sent.map(|is_sent| {
            let sent = is_sent.then(|| SentRequest { at: at(1), after: None, times: 1 });
            VmAction { sent, ..VmAction::new(VmActionKind::Stop, ActionOrigin::Owner, at(1)) }
        });
        vm
    };
    let (request, wait) = ("request an image of s", "look again");
    let rows = [
        (with(ServerState::On, None), SnapshotState::Making, request),
        (with(ServerState::Off, None), SnapshotState::Making, request),
        (with(ServerState::Other("PAUSED".to_owned()), None), SnapshotState::Making, request),
        (with(ServerState::On, Some(false)), SnapshotState::Making, request),
        (with(ServerState::On, Some(true)), SnapshotState::Wanted, wait),
        (with(ServerState::Changing, None), SnapshotState::Wanted, wait),
        (with(broken(), None), SnapshotState::Failed, wait),
        (with(ServerState::Leaving, None), SnapshotState::Failed, wait),
        (Vm { server: None, ..built(ServerState::On) }, SnapshotState::Failed, wait),
        (built(ServerState::On).to_be_deleted(at(1)), SnapshotState::Failed, wait),
        (Vm { root_volume: Some(7), ..built(ServerState::On) }, SnapshotState::Failed, wait),
    ];
    for (vm, state, next) in rows {
        let (it, events, then) = snapped(&copy(), &[], Some(&vm), 2);
        assert_eq!((it.state, then.as_str()), (state, next), "{vm:?}");
        assert_eq!(events.len(), usize::from(state == SnapshotState::Failed));
        assert_eq!(it.asked_at, (state == SnapshotState::Making).then(|| at(2)));
    }
    assert_eq!(snapped(&copy(), &[], None, 2).0.state, SnapshotState::Failed);
}

#[test]
fn a_snapshot_whose_image_disappears_or_breaks_has_failed() {
    let vm = built(ServerState::On);
    let of = |state| Snapshot { state, image: Some("i".to_owned()), ..copy() };
    let killed = || Some(Err("killed".to_owned()));
    let (none, other) = (vec![], vec![("j", Some(Ok(())))]);
    let rows = [
        (SnapshotState::Making, none.clone(), "the cloud no longer has its image"),
        (SnapshotState::Making, other.clone(), "the cloud no longer has its image"),
        (SnapshotState::Making, vec![("i", killed())], "killed"),
        (SnapshotState::Active, none, "its image was deleted in the cloud"),
        (SnapshotState::Active, other, "its image was deleted in the cloud"),
        (SnapshotState::Active, vec![("i", killed())], "its image was deleted in the cloud"),
    ];
    for (state, images, why) in rows {
        let (failed, events, _) = snapped(&of(state), &images, Some(&vm), 2);
        assert_eq!((failed.state, failed.reason.as_deref()), (SnapshotState::Failed, Some(why)));
        assert_eq!((failed.failures, events.len()), (1, 1), "{state:?} {images:?}");
    }
    // The images of a failed snapshot are deleted, because nobody can use them.
    let failed = of(SnapshotState::Failed);
    let (forgotten, _, next) = snapped(&failed, &[("i", Some(Ok(())))], Some(&vm), 2);
    assert_eq!((forgotten.image, next.as_str()), (None, "delete i"));
}

#[test]
fn each_result_of_a_call_for_a_snapshot_leads_to_one_step() {
    let asked = Snapshot { state: SnapshotState::Making, asked_at: Some(at(1)), ..copy() };
    let why = || "no space".to_owned();
    let slow = |secs| SnapshotOutcome::DeleteFailed {
        why: why(),
        retry_after: Some(Duration::from_secs(secs)),
    };
    let failed = SnapshotOutcome::DeleteFailed { why: why(), retry_after: None };
    let rows = [
        (
            SnapshotOutcome::Requested("i".to_owned()),
            "Making Some(\"i\") 0 times, 0 events: look again",
        ),
        (SnapshotOutcome::Unanswered(why()), "Making None 1 times, 0 events: look again"),
        (SnapshotOutcome::Refused(why()), "Failed None 0 times, 1 events: look again"),
        (SnapshotOutcome::Deleted, "Making None 0 times, 0 events: look again"),
        (slow(7), "Making None 0 times, 0 events: rest 7 s"),
        (failed.clone(), "Making None 0 times, 0 events: rest"),
    ];
    for (outcome, want) in rows {
        let outcomes = std::slice::from_ref(&outcome);
        let decided = after_snapshot_actions(&asked, outcomes, &snapshot_rules(), at(2));
        let (it, events, next) = applied(&asked, decided);
        let got = format!(
            "{:?} {:?} {} times, {} events: {next}",
            it.state,
            it.image,
            it.times,
            events.len()
        );
        assert_eq!(got, want, "{outcome:?}");
    }
    // After a delete that failed, no other image is deleted in this turn.
    assert!(failed.skips_rest() && !SnapshotOutcome::Deleted.skips_rest());
}

#[test]
fn object_names_contain_the_id_and_only_ssh_and_ping_are_open() {
    let vm = asked();
    let shape = vm_desired_objects(&vm);
    let names: BTreeSet<&str> = shape.values().map(|it| it.name.as_str()).collect();
    assert_eq!(names.len(), shape.len());
    assert!(names.iter().all(|name| name.contains(&vm.id.to_string()[..8])), "{names:?}");
    assert_eq!(vm.host().as_deref(), Some("dev.example.org"));
    assert_eq!(vm.zone_name().as_deref(), Some("example.org."));
    assert_eq!(vm.disk_gib(), SMALL.disk_gib);
    assert_eq!(Vm { root_volume: Some(50), ..vm.clone() }.disk_gib(), 50);
    let group = &shape[&Key::SecurityGroup(SecurityGroupRole::Node)].thing;
    let crate::ResourceSpec::SecurityGroup { rules } = group else { panic!("{group:?}") };
    assert_eq!(rules.len(), 2);
    assert!(vm_desired_objects(&vm.to_be_deleted(at(1))).is_empty());
    let id: SnapshotUuid = uuid(3);
    assert!(copy().image_name().ends_with(&id.to_string()));
}

#[test]
fn a_vm_that_owns_nothing_is_deleted_and_a_project_is_recorded_before_anything_is_created() {
    let going = asked().to_be_deleted(at(1));
    let over = VmRecords { ledger: Vec::new(), ..records(&going, None) };
    let (recorded, no_cloud) = (ProjectObservation::Recorded, ProjectObservation::NoCloud);
    let new = ProjectObservation::New("p-1".to_owned());
    let unknown = ProjectObservation::Unknown("away".to_owned());
    let placed = Vm { cloud_project: Some("p-1".to_owned()), ..asked() };
    let written = VmUpdate { vm: placed, events: vec![], notices: vec![], copy: None };
    let work = || vec![VmCall::ReconcileObjects];
    let rest = Requeue::After(PAUSES.look_every);
    let there = records(&asked(), None);
    let rows = [
        (&over, &recorded, Some(RecordChange::Delete), vec![], Requeue::OnChange),
        (&records(&going, None), &recorded, None, work(), Requeue::OnChange),
        (&there, &recorded, None, work(), Requeue::OnChange),
        (&there, &no_cloud, None, work(), Requeue::OnChange),
        (&there, &new, Some(RecordChange::Write(written)), vec![], Requeue::Now),
        (&there, &unknown, None, vec![], rest),
    ];
    for (records, project, change, actions, next_turn) in rows {
        let decided = plan_vm(records, project, &rules());
        let got = (decided.change, decided.actions, decided.next_turn);
        assert_eq!(got, (change, actions, next_turn), "{project:?}");
    }
}

#[test]
fn a_request_is_recorded_with_the_one_before_it_and_sent_afterwards() {
    let asked = built(ServerState::On).with_errand(VmActionKind::Stop, at(90)).unwrap();
    let vm =
        Vm { idle: Some(IdleCheck::by_power(asked.server.as_ref().unwrap(), at(99))), ..asked };
    let decide = |vm: &Vm, results: &[VmCallResult]| {
        after_vm_calls(&records(vm, None), results, &rules(), at(100))
    };
    let first = decide(&vm, &[worked(&seen(on()), RequestArrival::NotYet)]);
    let server = || "s".to_owned();
    assert_eq!(first.actions, [VmCall::ReadLastRequest { server: server() }]);
    assert_eq!(first.next_turn, Requeue::After(PAUSES.soon));
    let seen_vm = match first.change {
        Some(RecordChange::Write(update)) => update.vm,
        Some(RecordChange::Delete) | None => vm.clone(),
    };
    assert_eq!(seen_vm.errand, vm.errand, "it is not sent yet");

    let second = decide(&seen_vm, &[VmCallResult::LastRequest(Some("r".to_owned()))]);
    let stop = || VmRequest::Action(VmActionKind::Stop);
    assert_eq!(second.actions, [VmCall::Send { server: server(), request: stop() }]);
    let Some(RecordChange::Write(VmUpdate { vm: sent, .. })) = second.change else {
        panic!("the request is not recorded")
    };
    let request = sent.errand.as_ref().unwrap().sent.clone().unwrap();
    assert_eq!((request.after.as_deref(), request.times, request.at), (Some("r"), 1, at(100)));

    // The last request is unknown, so nothing is recorded or sent, and the next turn tries again.
    let unknown = decide(&seen_vm, &[VmCallResult::LastRequestUnknown("away".to_owned())]);
    assert_eq!((unknown.change, unknown.actions, unknown.log.len()), (None, vec![], 1));

    let refused = |request| VmCallResult::Refused { request, why: "it is locked".to_owned() };
    let rows = [
        (VmCallResult::Sent, "None", 0),
        (VmCallResult::Unanswered("away".to_owned()), "None", 1),
        (refused(VmRequest::Confirm), "None", 1),
        (refused(stop()), "ErrandRefused", 1),
    ];
    for (result, event, lines) in rows {
        let decided = decide(&sent, std::slice::from_ref(&result));
        let got = match &decided.change {
            Some(RecordChange::Write(update)) => {
                assert_eq!(update.vm.errand, None);
                update.events[0].reason.as_str()
            }
            Some(RecordChange::Delete) => "Delete",
            None => "None",
        };
        assert_eq!((got, decided.log.len()), (event, lines), "{result:?}");
        assert_eq!((decided.actions, decided.next_turn), (vec![], Requeue::OnChange));
    }
}

#[test]
fn a_repeated_request_keeps_the_one_before_it_and_is_sent_at_once() {
    let mut vm = built(ServerState::On).with_errand(VmActionKind::Stop, at(0)).unwrap();
    let sent = SentRequest { at: at(1), after: Some("r".to_owned()), times: 1 };
    vm.errand.as_mut().unwrap().sent = Some(sent);
    vm.idle = Some(IdleCheck::by_power(vm.server.as_ref().unwrap(), at(99)));
    let results = [worked(&seen(on()), RequestArrival::NotYet)];
    let decided = after_vm_calls(&records(&vm, None), &results, &rules(), at(100));
    let request = VmRequest::Action(VmActionKind::Stop);
    assert_eq!(decided.actions, [VmCall::Send { server: "s".to_owned(), request }]);
    let Some(RecordChange::Write(update)) = decided.change else { panic!("it is not recorded") };
    let sent = update.vm.errand.unwrap().sent.unwrap();
    assert_eq!((sent.after.as_deref(), sent.times, sent.at), (Some("r"), 2, at(100)));
}

#[test]
fn the_idle_check_waits_for_an_observation_and_reads_diagnostics_of_a_running_server() {
    let unseen = ClusterObservation::default();
    let call = || vec![VmCall::ReadDiagnostics { server: "s".to_owned() }];
    let checked =
        |at| IdleCheck { at, by: IdleSource::Power, cpu_ns: None, cpu_permille: None, since: None };
    let rows = [
        (None, &seen(on()), call(), false),
        (None, &unseen, vec![], false),
        (None, &seen(is(ServerState::Off)), vec![], true),
        (Some(checked(at(99))), &seen(on()), vec![], true),
        (Some(checked(at(-900))), &seen(on()), call(), true),
    ];
    for (idle, seen, calls, is_checked) in rows {
        let vm = Vm { idle, ..built(ServerState::On) };
        let results = [worked(seen, RequestArrival::NotYet)];
        let decided = after_vm_calls(&records(&vm, None), &results, &rules(), at(100));
        let after = match decided.change {
            Some(RecordChange::Write(update)) => update.vm,
            Some(RecordChange::Delete) | None => vm,
        };
        assert_eq!((decided.actions, after.idle.is_some()), (calls, is_checked));
    }
    let vm = built(ServerState::On);
    let judged = |result| {
        let decided = after_vm_calls(&records(&vm, None), &[result], &rules(), at(100));
        let Some(RecordChange::Write(update)) = decided.change else { return None };
        update.vm.idle.map(|idle| idle.by)
    };
    assert_eq!(judged(VmCallResult::ProcessorTime(5)), Some(IdleSource::Diagnostics));
    assert_eq!(judged(VmCallResult::NoDiagnostics), Some(IdleSource::Power));
    assert_eq!(judged(VmCallResult::DiagnosticsUnknown), None);
}

#[test]
fn the_next_turn_is_due_soon_while_anything_happens_and_at_the_next_stage_of_the_lease() {
    let soon = Requeue::After(PAUSES.soon);
    let lease = |ends_at: i64| {
        let lease = Lease::new(at(ends_at - 800_000), Length::from_secs(800_000).unwrap());
        Vm { lease: Some(lease), ..built(ServerState::On) }
    };
    let warned = LeaseSchedule::default().due(lease(800_000).lease.as_ref().unwrap(), at(100));
    let ::lease::Due::At(warned_at) = warned else { panic!("{warned:?}") };
    let long = (warned_at.duration_since(at(100)).as_secs()).min(600);
    let rows = [
        (built(ServerState::On), on(), Requeue::After(PAUSES.look_every)),
        (built(ServerState::On).to_be_deleted(at(1)), on(), soon),
        (built(ServerState::On), is(ServerState::Building), soon),
        (lease(800_000), on(), Requeue::After(Duration::from_secs(long.unsigned_abs()))),
    ];
    for (vm, server, want) in rows {
        let turned = turn(&vm, &seen(server), RequestArrival::NotYet);
        assert_eq!(turned.next_turn, want, "{vm:?}");
    }
    // More can be done at once.
    let mut work = worked(&seen(on()), RequestArrival::NotYet);
    if let VmCallResult::Reconciled(work) = &mut work {
        (work.next_turn, work.given_up) = (Requeue::Now, vec!["deleting it".to_owned()]);
    }
    let vm = built(ServerState::On);
    let decided = after_vm_calls(&records(&vm, None), &[work], &rules(), at(100));
    assert_eq!(decided.next_turn, Requeue::Now);
    let Some(RecordChange::Write(update)) = decided.change else { panic!("no event") };
    assert_eq!(update.events[0].reason, "CloudFailed");
}

#[test]
fn a_vm_is_idle_when_it_uses_little_cpu_between_two_checks() {
    let first = IdleCheck::by_diagnostics(None, 5_000_000_000, at(0));
    assert_eq!((first.cpu_permille, first.since), (None, None));
    let quiet = IdleCheck::by_diagnostics(Some(&first), 6_000_000_000, at(900));
    assert_eq!((quiet.cpu_permille, quiet.since), (Some(1), Some(at(0))));
    // Twenty thousandths of a processor for a quarter of an hour are no longer idle.
    for (worked, permille, since) in [(17_999_999_999, 19, Some(at(0))), (18_000_000_000, 20, None)]
    {
        let check = IdleCheck::by_diagnostics(Some(&first), 5_000_000_000 + worked, at(900));
        assert_eq!((check.cpu_permille, check.since), (Some(permille), since));
    }
    let busy = IdleCheck::by_diagnostics(Some(&quiet), 906_000_000_000, at(1800));
    assert_eq!((busy.cpu_permille, busy.since), (Some(1000), None));
    // The server was started again.
    assert_eq!(IdleCheck::by_diagnostics(Some(&busy), 1, at(2000)).cpu_permille, None);
    let off = ServerObservation {
        id: "s".to_owned(),
        is: ServerState::Off,
        since: at(3),
        flavor: "f".to_owned(),
    };
    assert_eq!(IdleCheck::by_power(&off, at(9)).since, Some(at(3)));
}
