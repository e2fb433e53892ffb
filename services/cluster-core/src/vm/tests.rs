//! Turns of VMs as tables: the observation, and the resulting events and requests.

mod action;
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
    VmImage {
        id,
        name,
        user_data_format: UserDataFormat::CloudInit,
        min_disk_gib: 10,
        min_ram_mib: 512,
    }
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
        schedule: LeaseSchedule::default(),
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
                let sent = turned.vm.action.as_ref().and_then(|action| action.sent.as_ref());
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
fn text(turned: &Turned) -> String {
    let events: Vec<String> =
        turned.events.iter().map(|it| format!("{}: {}\n", it.reason, it.message)).collect();
    let action = turned.vm.action.as_ref().map(|it| it.kind.to_string());
    format!("{}ask {:?}, action {action:?}, {}", events.concat(), turned.ask, turned.vm.phase())
}

#[track_caller]
fn check_action(
    kind: VmActionKind,
    sent: bool,
    server: Option<CloudObject>,
    arrival: RequestArrival,
    want: Expect,
) {
    let mut vm = built(ServerState::On);
    let action = VmAction::new(kind, ActionOrigin::Owner, at(90));
    let sent = sent.then(|| SentRequest { at: at(95), after: None, times: 1 });
    vm.action = Some(VmAction { sent, ..action });
    want.assert_eq(&text(&turn(&vm, &seen(server), arrival)));
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
fn a_server_that_nova_changes_for_long_is_reported_until_it_rests() {
    let changing = seen(is(ServerState::Changing));
    let look = |vm: &Vm, seen: &ClusterObservation, time| {
        turn_at(vm, seen, RequestArrival::NotYet, None, at(time)).vm
    };
    let vm = look(&built(ServerState::On), &changing, 100);
    let vm = look(&vm, &changing, 999);
    assert_eq!(vm.problem, None);
    let vm = look(&vm, &changing, 1000);
    let problem = vm.problem.as_ref().unwrap();
    assert_eq!((problem.reason.as_str(), problem.is_final), ("ServerBusy", false));
    assert!(problem.message.starts_with("the server is changing since "), "{}", problem.message);
    assert_eq!(look(&vm, &seen(on()), 1001).problem, None);
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

#[test]
fn a_vm_that_is_to_be_deleted_has_no_action() {
    let vm = built(ServerState::On).with_action(VmActionKind::Stop, at(5)).unwrap();
    assert_eq!((vm.action.is_some(), vm.updated_at), (true, Some(at(5))));
    let gone = vm.to_be_deleted(at(6));
    assert_eq!((gone.action, gone.updated_at), (None, Some(at(6))));
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
        (Some(checked(at(-799))), &seen(on()), vec![], true),
        (Some(checked(at(-800))), &seen(on()), call(), true),
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
fn a_vm_is_written_when_it_changes_or_has_an_event() {
    let written = |vm: &Vm, server, given_up: &[&str]| {
        let mut work = worked(&seen(server), RequestArrival::NotYet);
        if let VmCallResult::Reconciled(work) = &mut work {
            work.given_up = given_up.iter().map(|it| (*it).to_owned()).collect();
        }
        let decided = after_vm_calls(&records(vm, None), &[work], &rules(), at(100));
        let Some(RecordChange::Write(update)) = decided.change else { return None };
        Some((update.vm != *vm, update.events.len()))
    };
    let seen_off = seen(is(ServerState::Off));
    let off = turn(&built(ServerState::Off), &seen_off, RequestArrival::NotYet).vm;
    let unchecked = Vm { idle: None, ..off.clone() };
    assert_eq!(written(&off, is(ServerState::Off), &[]), None);
    assert_eq!(written(&off, is(ServerState::Off), &["deleting it"]), Some((false, 1)));
    assert_eq!(written(&unchecked, is(ServerState::Off), &[]), Some((true, 0)));
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
