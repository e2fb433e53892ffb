//! Tests of turns with a clock that is handed in.

use baremetal_core::{Driver, LendRequest, State, Task, Work, WorkUuid, lend, with_stage_taken};
use baremetal_store::Store;
use jiff::Timestamp;
use lease::{LeaseStage, Terms};
use spans::{AttributeValue, EndedSpan, KeptSpans, SpanKind, Tracer};

use super::*;
use crate::conductor::Conductor;
use crate::secrets::ServiceKey;
use crate::settings::Settings;

/// A time at which no test runs.
fn far_future() -> Timestamp {
    "2100-01-01T00:00:00Z".parse().unwrap()
}

/// Returns a store with a node in this state, whose lease ends in [`far_future`], and a conductor that lives at that time.
async fn given(state: State) -> (Store, Conductor, Node) {
    given_traced(state, Tracer::default()).await
}

/// As [`given`], with a conductor that traces its turns, and a node that a request inserted.
async fn given_traced(state: State, tracer: Tracer) -> (Store, Conductor, Node) {
    let length = "1d".parse().unwrap();
    let loan = LendRequest { lessee: "lab".to_owned(), length, notify: None };
    let begun = far_future() - Duration::from_secs(24 * 3600);
    let mut node = Node::new(NodeUuid::new_v4(), Driver::FakeHardware, begun);
    node.provision_state = state;
    let (mut lent, _) = lend(&node, loan, "root", Terms::default(), begun).unwrap();
    lent.work = state.is_busy().then(|| Work::new(WorkUuid::nil(), vec![Task::Hold], begun));
    let store = Store::open("sqlite::memory:").await.unwrap();
    let request = tracer.begin(None, SpanKind::Server, || "request");
    request.run(store.insert_node(&lent)).await.unwrap();

    let key = ServiceKey::new([7; 32]);
    let settings = Settings { tracer, ..Settings::sample(far_future) };
    let conductor = Conductor::new(settings, store.clone(), key).await.unwrap();
    (store, conductor, lent)
}

#[tokio::test]
async fn a_lease_ends_when_the_clock_of_the_conductor_says_so() {
    let (store, conductor, lent) = given(State::Active).await;
    turn(lent.id, conductor.context.clone()).await;

    let after = store.find_node(&NodeIdent::Id(lent.id)).await.unwrap().unwrap();
    assert_eq!(after.updated_at, Some(far_future()));
    assert_ne!(after.lending, lent.lending, "the turn takes a stage of the end of the lease");
}

#[tokio::test]
async fn the_end_of_a_lease_ends_work_that_holds() {
    let (store, conductor, lent) = given(State::ServiceHold).await;
    turn(lent.id, conductor.context.clone()).await;
    let warned = store.find_node(&NodeIdent::Id(lent.id)).await.unwrap().unwrap();
    assert_eq!(warned.provision_state, State::ServiceHold);

    let switch_off = LeaseStage::SwitchOff { deleted_at: far_future() };
    let (over, _) = with_stage_taken(&warned, switch_off, far_future());
    store.update_node(&over, &[]).await.unwrap();
    turn(lent.id, conductor.context.clone()).await;
    let after = store.find_node(&NodeIdent::Id(lent.id)).await.unwrap().unwrap();
    assert_eq!((after.provision_state, after.work), (State::ServiceFailed, None));
}

#[tokio::test]
async fn a_turn_continues_the_trace_of_the_request_for_its_work() {
    let kept = KeptSpans::default();
    let (_, conductor, lent) = given_traced(State::ServiceHold, kept.tracer(1.0)).await;
    let [_, request]: [EndedSpan; 2] = kept.take_all().try_into().unwrap();
    // A turn after a restart knows nothing but the record.
    turn(lent.id, conductor.context.clone()).await;
    let [write, turn]: [EndedSpan; 2] = kept.take_all().try_into().unwrap();
    assert_eq!((&*turn.name, turn.kind), ("node turn", SpanKind::Consumer));
    assert_eq!(turn.parent, Some(request.context.span_id));
    assert_eq!(turn.context.trace_id, request.context.trace_id);
    let want: [(&str, AttributeValue); 2] = [
        ("bedplate.node.id", lent.id.to_string().into()),
        ("bedplate.node.provision_state", "service hold".into()),
    ];
    assert_eq!(turn.attributes, want);
    assert_eq!(write.parent, Some(turn.context.span_id));
    let want: [(&str, AttributeValue); 1] = [("db.system.name", "sqlite".into())];
    assert_eq!(write.attributes, want);
}
