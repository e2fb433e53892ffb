//! An empty database for each test, and records to store in it.

use std::net::IpAddr;
use std::time::Duration;

use baremetal_core::{Driver, Node, NodeUuid};
use baremetal_store::{AddressPool, Store};
use jiff::Timestamp;

pub(crate) use database::on_both;
pub(crate) use database::scratch::{HeldLocks, Scratch};

pub(crate) async fn open(scratch: &Scratch) -> Store {
    Store::open(&scratch.url).await.unwrap()
}

/// The nodes that have something to do or to wait for.
pub(crate) async fn unfinished(store: &Store) -> Vec<NodeUuid> {
    store.unfinished_nodes().await.unwrap().into_iter().map(|it| it.id).collect()
}

/// The timestamp `seconds` after a fixed moment.
pub(crate) fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + seconds).unwrap()
}

/// A node with no optional field set.
pub(crate) fn bare_node() -> Node {
    Node::new(NodeUuid::new_v4(), Driver::FakeHardware, at(0))
}

pub(crate) fn named(name: &str) -> Node {
    Node { name: Some(name.parse().unwrap()), ..bare_node() }
}

/// A pool with the addresses from `first` to `last`, leased to unknown machines for one hour.
pub(crate) fn pool(first: IpAddr, last: IpAddr) -> AddressPool {
    let stranger_lease_time = Duration::from_secs(3600);
    AddressPool { first, last, reserved: Vec::new(), stranger_lease_time }
}
