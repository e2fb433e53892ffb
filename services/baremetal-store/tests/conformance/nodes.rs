//! Single nodes: inserted, found, changed and deleted.

use baremetal_core::{
    HistoryEntry, Node, NodeIdent, NodeLease, PowerRequest, State, Work, WorkUuid,
};
use baremetal_store::{SeenPower, Store, StoreError};
use database::outbox::Letter;
use hardware::{PowerChange, PowerState};
use jiff::SignedDuration;
use lease::Lease;
use spans::{KeptSpans, SpanKind};
use uuid::Uuid;

use crate::scratch::{Scratch, at, bare_node, named, on_both, open, unfinished};

on_both! { Store:
    a_node_is_found_by_id_and_by_name
    an_update_of_an_older_version_is_refused
    a_clash_names_the_field
    power_is_written_only_if_it_differs
    power_seen_before_a_write_does_not_undo_it
    busy_nodes_have_work_or_a_power_request
    the_trace_of_a_request_stays_with_its_work
    lent_nodes_are_found
    notices_are_written_with_the_node
    the_sweep_reads_idle_nodes
    the_time_in_a_state_is_measured_once_the_node_has_left_it
}

async fn a_node_is_found_by_id_and_by_name(store: Store) {
    let node = named("r1u7");
    store.insert_node(&node).await.unwrap();
    store.insert_node(&bare_node()).await.unwrap();

    let name = NodeIdent::Name("r1u7".parse().unwrap());
    assert_eq!(store.find_node(&NodeIdent::Id(node.id)).await.unwrap(), Some(node.clone()));
    assert_eq!(store.find_node(&name).await.unwrap(), Some(node));
    assert_eq!(store.find_node(&NodeIdent::Id(bare_node().id)).await.unwrap(), None);
    assert_eq!(store.count_nodes().await.unwrap(), 2);
}

async fn an_update_of_an_older_version_is_refused(store: Store) {
    let read = named("r1u7");
    store.insert_node(&read).await.unwrap();

    let change = Node { owner: Some("one".into()), updated_at: Some(at(1)), ..read.clone() };
    let line = HistoryEntry::changed(&read, &change, "renamed".into(), at(1));
    let written = store.update_node(&change, std::slice::from_ref(&line)).await.unwrap();
    assert_eq!(written, Node { version: 2, ..change });

    let late = Node { owner: Some("two".into()), ..read.clone() };
    assert!(matches!(store.update_node(&late, &[line]).await, Err(StoreError::Stale)));
    assert!(matches!(store.delete_node(&read).await, Err(StoreError::Stale)));
    assert_eq!(store.find_node(&NodeIdent::Id(read.id)).await.unwrap(), Some(written.clone()));
    assert_eq!(store.history(read.id, 10, None).await.unwrap().len(), 1);

    store.delete_node(&written).await.unwrap();
    assert_eq!(store.count_nodes().await.unwrap(), 0);
    assert_eq!(store.history(read.id, 10, None).await.unwrap(), []);
}

async fn the_time_in_a_state_is_measured_once_the_node_has_left_it(store: Store) {
    let mut page = metrics::Metrics::new("test", "0");
    let store = store.with_state_metrics(page.states());
    let entered_at = Some(at(0));
    let cleaning = Node {
        provision_state: State::Cleaning,
        provision_updated_at: entered_at,
        ..named("r1u7")
    };
    store.insert_node(&cleaning).await.unwrap();
    let failed = Node { provision_state: State::CleanFailed, ..cleaning.clone() };
    let renamed = HistoryEntry::changed(&cleaning, &cleaning, "renamed".into(), at(7));
    let left = HistoryEntry::failed(&cleaning, &failed, "it broke".into(), at(30));
    store.update_node(&failed, &[renamed, left.clone()]).await.unwrap();
    store.update_node(&failed, &[left]).await.unwrap_err();
    let text = page.text().unwrap();
    let series = "bedplate_node_state_duration_seconds_sum";
    let measured: Vec<&str> = text.lines().filter(|line| line.starts_with(series)).collect();
    let want = format!("{series}{{provision_state=\"cleaning\",failed=\"true\"}} 30.0");
    assert_eq!(measured, [want]);
}

async fn a_clash_names_the_field(store: Store) {
    let instance = Uuid::new_v4();
    let first = Node { instance_uuid: Some(instance), ..named("r1u7") };
    let second = named("r1u8");
    store.insert_node(&first).await.unwrap();
    store.insert_node(&second).await.unwrap();
    let check = |refused: Result<(), StoreError>, want: &str, of: String| match refused {
        Err(StoreError::Duplicate { field, value }) => assert_eq!((field, value), (want, of)),
        other => panic!("{other:?}"),
    };
    check(store.insert_node(&named("r1u7")).await, "name", "r1u7".into());
    let twin = Node { id: first.id, ..bare_node() };
    check(store.insert_node(&twin).await, "uuid", first.id.to_string());
    let twin = Node { instance_uuid: Some(instance), ..bare_node() };
    check(store.insert_node(&twin).await, "instance_uuid", instance.to_string());

    let renamed = Node { name: first.name.clone(), ..second.clone() };
    let line = HistoryEntry::changed(&second, &renamed, "renamed".into(), at(1));
    check(store.update_node(&renamed, &[line]).await.map(drop), "name", "r1u7".into());
    assert_eq!(store.find_node(&NodeIdent::Id(second.id)).await.unwrap(), Some(second.clone()));
    assert_eq!(store.history(second.id, 10, None).await.unwrap(), []);
    assert_eq!(store.count_nodes().await.unwrap(), 2);
}

async fn power_seen_before_a_write_does_not_undo_it(store: Store) {
    let node = Node { power_state: Some(PowerState::Off), ..bare_node() };
    store.insert_node(&node).await.unwrap();
    let seen = SeenPower::of(&node, PowerState::Off);
    let switched = Node { power_state: Some(PowerState::On), ..node.clone() };
    store.update_node(&switched, &[]).await.unwrap();
    assert_eq!(store.record_power(&[seen], at(9)).await.unwrap(), 0);
    let read = store.find_node(&NodeIdent::Id(node.id)).await.unwrap().unwrap();
    assert_eq!(read.power_state, Some(PowerState::On));
}

async fn power_is_written_only_if_it_differs(store: Store) {
    let unknown = bare_node();
    let on = Node { power_state: Some(PowerState::On), ..bare_node() };
    let off = Node { power_state: Some(PowerState::Off), ..bare_node() };
    for node in [&unknown, &on, &off] {
        store.insert_node(node).await.unwrap();
    }
    let seen = [
        SeenPower::of(&unknown, PowerState::Off),
        SeenPower::of(&on, PowerState::On),
        SeenPower::of(&off, PowerState::On),
        SeenPower::of(&bare_node(), PowerState::On),
    ];
    assert_eq!(store.record_power(&seen, at(9)).await.unwrap(), 2);
    assert_eq!(store.record_power(&seen, at(10)).await.unwrap(), 0);
    assert_eq!(store.record_power(&[], at(11)).await.unwrap(), 0);

    let find = async |node: &Node| store.find_node(&NodeIdent::Id(node.id)).await.unwrap().unwrap();
    let changed = |node: &Node, power| Node {
        power_state: Some(power),
        version: 2,
        updated_at: Some(at(9)),
        ..node.clone()
    };
    assert_eq!(find(&on).await, on);
    assert_eq!(find(&unknown).await, changed(&unknown, PowerState::Off));
    assert_eq!(find(&off).await, changed(&off, PowerState::On));
    // A writer that read the node before has to read it again.
    assert!(matches!(store.update_node(&off, &[]).await, Err(StoreError::Stale)));
}

async fn lent_nodes_are_found(store: Store) {
    let (kept, lent) = (named("kept"), named("lent"));
    let lending = NodeLease {
        lease: Lease::new(lent.created_at, "1d".parse().unwrap()),
        by: "u".to_owned(),
        notify: None,
        reserved: false,
        drain: None,
    };
    store.insert_node(&kept).await.unwrap();
    store.insert_node(&lent).await.unwrap();
    assert_eq!(unfinished(&store).await, []);
    let lent = Node { lending: Some(lending), ..lent };
    let lent = store.update_node(&lent, &[]).await.unwrap();
    assert_eq!(unfinished(&store).await, [lent.id]);
    store.update_node(&Node { lending: None, ..lent }, &[]).await.unwrap();
    assert_eq!(unfinished(&store).await, []);
}

async fn notices_are_written_with_the_node(store: Store) {
    let node = named("n1");
    store.insert_node(&node).await.unwrap();
    let letter = Letter {
        notice: Uuid::new_v4(),
        receiver: "r".to_owned(),
        body: "{}".to_owned(),
        project: None,
    };
    let tell = async |node: &Node| {
        store.update_node_and_notify(node, &[], std::slice::from_ref(&letter), at(1)).await
    };
    let (written, lost) = tell(&node).await.unwrap();
    assert_eq!((written.version, lost), (2, 0));
    // A refused write sends no notice.
    let due = async || store.outbox().due(at(1), SignedDuration::ZERO, 9).await.unwrap();
    let first = due().await.pop().unwrap();
    assert_eq!(first.letter, letter);
    // A process that was killed after giving up the notice gives it up again, but the history gets one entry only.
    let said = HistoryEntry::failed(&node, &node, "given up".to_owned(), at(1));
    for _ in 0..2 {
        store.give_up_notice(first.seq, Some(&said)).await.unwrap();
    }
    assert_eq!(store.history(node.id, 9, None).await.unwrap().len(), 1);
    assert!(matches!(tell(&node).await, Err(StoreError::Stale)));
    assert_eq!(due().await, []);
}

async fn the_trace_of_a_request_stays_with_its_work(store: Store) {
    let kept = KeptSpans::default();
    let request = kept.tracer(1.0).begin(None, SpanKind::Server, || "request");
    let another = kept.tracer(1.0).begin(None, SpanKind::Internal, || "turn");
    let trace = request.context().cloned();
    let node = named("r1u7");
    request.run(store.insert_node(&node)).await.unwrap();
    let read = async || store.find_node(&NodeIdent::Id(node.id)).await.unwrap().unwrap();
    assert_eq!(read().await.trace, None, "no work is in progress");

    let work = Some(Work::new(WorkUuid::new_v4(), Vec::new(), at(0)));
    let working = Node { provision_state: State::Verifying, work, ..node.clone() };
    let working = request.run(store.update_node(&working, &[])).await.unwrap();
    assert_eq!((&working.trace, &read().await.trace), (&trace, &trace));
    let working = Node { updated_at: Some(at(1)), ..working };
    let working = another.run(store.update_node(&working, &[])).await.unwrap();
    assert_eq!(read().await.trace, trace, "a turn writes the node");

    let done = Node { provision_state: State::Manageable, work: None, ..working };
    another.run(store.update_node(&done, &[])).await.unwrap();
    assert_eq!(read().await.trace, None);
    drop((request, another));
    let names: Vec<_> = kept.take_all().into_iter().map(|span| span.name).collect();
    assert_eq!(
        names,
        ["insert_node", "update_node", "update_node", "update_node", "request", "turn"]
    );
}

async fn busy_nodes_have_work_or_a_power_request(store: Store) {
    let working = Node {
        provision_state: State::Verifying,
        work: Some(Work::new(WorkUuid::new_v4(), Vec::new(), at(0))),
        ..bare_node()
    };
    let switching =
        Node { power_request: Some(PowerRequest::new(PowerChange::On, at(60))), ..bare_node() };
    for node in [&working, &switching, &bare_node()] {
        store.insert_node(node).await.unwrap();
    }
    let mut want = [working.id, switching.id];
    want.sort();
    assert_eq!(unfinished(&store).await, want);

    let done = Node { provision_state: State::Manageable, work: None, ..working };
    store.update_node(&done, &[]).await.unwrap();
    assert_eq!(unfinished(&store).await, [switching.id]);
}

async fn the_sweep_reads_idle_nodes(store: Store) {
    let manageable = || Node { provision_state: State::Manageable, ..bare_node() };
    let resting: Vec<Node> = (0..5).map(|_| manageable()).collect();
    let working = Node {
        provision_state: State::Cleaning,
        work: Some(Work::new(WorkUuid::new_v4(), Vec::new(), at(0))),
        ..bare_node()
    };
    let switching =
        Node { power_request: Some(PowerRequest::new(PowerChange::On, at(60))), ..manageable() };
    for node in resting.iter().chain([&working, &switching, &bare_node()]) {
        store.insert_node(node).await.unwrap();
    }
    let mut place = 0;
    for want in [&resting[..2], &resting[2..4], &resting[4..]] {
        let (page, last) = store.sweep_page(place, 2).await.unwrap();
        let page: Vec<_> = page.into_iter().map(|it| (it.id, it.version, it.group)).collect();
        let want = want.iter().map(|it| (it.id, it.version, it.conductor_group.clone()));
        assert_eq!(page, want.collect::<Vec<_>>());
        place = last.unwrap();
    }
    assert_eq!(store.sweep_page(place, 2).await.unwrap(), (vec![], None));
}

/// Returns the length of a SQLite file's write-ahead log.
fn log_length(scratch: &Scratch) -> u64 {
    let file = scratch.url.strip_prefix("sqlite://").unwrap();
    std::fs::metadata(format!("{file}-wal")).unwrap().len()
}

/// Changes the node four times, and returns how many pages the last change writes. Later changes may reuse pages of the log that earlier
/// changes have filled.
async fn pages_of(
    (store, scratch): (&Store, &Scratch),
    node: &mut Node,
    change: impl Fn(usize, Node) -> Node,
) -> u64 {
    const PAGE: u64 = 4096 + 24;
    let mut pages = 0;
    for number in 0..4 {
        let before = log_length(scratch);
        *node = store.update_node(&change(number, node.clone()), &[]).await.unwrap();
        pages = (log_length(scratch) - before) / PAGE;
    }
    pages
}

#[tokio::test]
async fn a_change_writes_only_the_indexes_of_changed_columns() {
    let scratch = Scratch::sqlite();
    let store = open(&scratch).await;
    let mut node = named("r1u7");
    store.insert_node(&node).await.unwrap();
    for _ in 0..200 {
        store.insert_node(&bare_node()).await.unwrap();
    }
    let described =
        |number: usize, node: Node| Node { description: Some(format!("changed {number}")), ..node };
    let pages = pages_of((&store, &scratch), &mut node, described).await;
    assert!((1..=4).contains(&pages), "{pages} pages");
    // The state has two indexes, in each of which an entry moves.
    let states = [State::Manageable, State::Available];
    let moved = |number: usize, node: Node| Node { provision_state: states[number % 2], ..node };
    let pages = pages_of((&store, &scratch), &mut node, moved).await;
    assert!((3..=7).contains(&pages), "{pages} pages");
    // Changes of indexed columns still update their indexes.
    let renamed = Node { name: Some("r1u8".parse().unwrap()), ..node.clone() };
    let renamed = store.update_node(&renamed, &[]).await.unwrap();
    let by_name =
        async |name: &str| store.find_node(&NodeIdent::Name(name.parse().unwrap())).await.unwrap();
    assert_eq!((by_name("r1u7").await, by_name("r1u8").await), (None, Some(renamed)));
    assert!(matches!(store.update_node(&node, &[]).await, Err(StoreError::Stale)));
}
