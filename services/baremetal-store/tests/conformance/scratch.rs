//! An empty database for one test, and what to put into it.

use baremetal_core::{Driver, Node, NodeUuid};
use baremetal_store::Store;
use jiff::Timestamp;

pub(crate) use database::on_both;
pub(crate) use database::scratch::Scratch;

pub(crate) async fn open(scratch: &Scratch) -> Store {
    Store::open(&scratch.url).await.unwrap()
}

/// A moment, `seconds` after another.
pub(crate) fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + seconds).unwrap()
}

/// A node with nothing said of it.
pub(crate) fn bare_node() -> Node {
    Node::new(NodeUuid::new_v4(), Driver::FakeHardware, at(0))
}

/// A node with this name.
pub(crate) fn named(name: &str) -> Node {
    Node { name: Some(name.parse().unwrap()), ..bare_node() }
}
