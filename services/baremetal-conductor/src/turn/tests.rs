//! Tests of turns with a clock that is handed in.

use baremetal_core::{Driver, LendRequest, State, lend};
use baremetal_store::Store;
use jiff::Timestamp;
use lease::Terms;

use super::*;
use crate::conductor::Conductor;
use crate::secrets::ServiceKey;
use crate::settings::Settings;

/// A time at which no test runs.
fn far_future() -> Timestamp {
    "2100-01-01T00:00:00Z".parse().unwrap()
}

#[tokio::test]
async fn a_lease_ends_when_the_clock_of_the_conductor_says_so() {
    let length = "1d".parse().unwrap();
    let loan = LendRequest { lessee: "lab".to_owned(), length, notify: None };
    let begun = far_future() - Duration::from_secs(24 * 3600);
    let mut node = Node::new(NodeUuid::new_v4(), Driver::FakeHardware, begun);
    node.provision_state = State::Active;
    let (lent, _) = lend(&node, loan, "root", Terms::default(), begun).unwrap();
    let store = Store::open("sqlite::memory:").await.unwrap();
    store.insert_node(&lent).await.unwrap();

    let key = ServiceKey::new([7; 32]);
    let conductor = Conductor::new(Settings::sample(far_future), store.clone(), key).await.unwrap();
    turn(lent.id, conductor.context.clone()).await;

    let after = store.find_node(&NodeIdent::Id(lent.id)).await.unwrap().unwrap();
    assert_eq!(after.updated_at, Some(far_future()));
    assert_ne!(after.lending, lent.lending, "the turn takes a stage of the end of the lease");
}
