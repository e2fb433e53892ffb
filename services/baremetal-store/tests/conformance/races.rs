//! Sixteen concurrent writers: no write is lost, and nothing is given out twice.

use std::collections::BTreeSet;
use std::net::IpAddr;

use baremetal_core::{
    Chassis, HistoryEntry, Node, NodeFilter, NodeIdent, NodeSort, Page, Port, PortGroup, PortUuid,
    Stored,
};
use baremetal_store::{SeenPower, Store, StoreError};
use hardware::{MacAddress, PowerState};
use serde_json::json;
use uuid::Uuid;

use crate::scratch::{HeldLocks, Scratch, at, bare_node, named, on_both, pool};

on_both! { Store:
    stale_updates_lose_nothing
    a_name_is_given_once
    an_address_is_leased_to_one_machine_only
    one_machine_gets_one_address
    a_rack_is_enrolled_once
    nothing_refers_to_a_resource_that_was_deleted_meanwhile
    the_sweep_and_an_enrolment_do_not_block_each_other
}

const TASKS: usize = 16;

/// Runs `act` in `TASKS` concurrent tasks.
async fn at_once<T, D>(store: &Store, act: impl Fn(Store, usize) -> D) -> Vec<T>
where
    D: Future<Output = T> + Send + 'static,
    T: Send + 'static,
{
    let tasks: Vec<_> = (0..TASKS).map(|n| tokio::spawn(act(store.clone(), n))).collect();
    let mut outcomes = Vec::new();
    for task in tasks {
        outcomes.push(task.await.unwrap());
    }
    outcomes
}

/// A node with a port group and its two ports, and a transaction that holds the second port.
struct HeldPort {
    store: Store,
    node: Node,
    group: Stored<PortGroup>,
    ports: [Port; 2],
    held: HeldLocks,
}

impl HeldPort {
    /// Returns `None` without PostgreSQL: the transactions of SQLite do not run at the same time.
    async fn start() -> Option<HeldPort> {
        let scratch = Scratch::postgres().await?;
        let store = Store::open(&scratch.url).await.unwrap();
        let node = bare_node();
        store.insert_node(&node).await.unwrap();
        let content = PortGroup { node: node.id, ..PortGroup::default() };
        let group = Stored::new(Uuid::new_v4(), content, at(0));
        store.insert_resource(&group).await.unwrap();
        let ports = [1, 2].map(|n| port_of(&node, &group, n));
        for port in &ports {
            store.insert_port(port).await.unwrap();
        }
        let lock = format!("SELECT id FROM ports WHERE id = '{}' FOR UPDATE", ports[1].id);
        let held = HeldLocks::take(&scratch.url, lock).await;
        Some(HeldPort { store, node, group, ports, held })
    }

    /// Runs `first` until it waits for the second port, then `second` until it waits too, and lets both end.
    async fn run<A, B>(
        mut self,
        first: impl Future<Output = A> + Send + 'static,
        second: impl Future<Output = B> + Send + 'static,
    ) -> (A, B)
    where
        A: Send + 'static,
        B: Send + 'static,
    {
        let first = tokio::spawn(first);
        self.held.wait_for_waiting(1).await;
        let second = tokio::spawn(second);
        self.held.wait_for_waiting(2).await;
        self.held.release().await;
        (first.await.unwrap(), second.await.unwrap())
    }

    /// The group as a request would move it to another network, with its ports.
    fn moved(&self) -> Stored<PortGroup> {
        let network = Some("other".to_owned());
        let content = PortGroup { physical_network: network, ..self.group.content.clone() };
        Stored { content, ..self.group.clone() }
    }
}

fn port_of(node: &Node, group: &Stored<PortGroup>, n: u8) -> Port {
    let address = MacAddress::new([2, 0, 0, 0, 0, n]);
    let port = Port::new(PortUuid::from_bytes([n; 16]), node.id, address, at(0));
    Port { portgroup: Some(group.id), ..port }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deletion_of_a_node_and_a_change_of_its_port_group_wait_in_one_order() {
    let Some(there) = HeldPort::start().await else { return };
    let (store, node, moved) = (there.store.clone(), there.node.clone(), there.moved());
    let deletion = async move { store.delete_node(&node).await };
    let store = there.store.clone();
    let change = async move { store.update_port_group(&moved).await };
    let (deleted, changed) = there.run(deletion, change).await;
    assert!(deleted.is_ok(), "{deleted:?}");
    assert!(matches!(changed, Err(StoreError::Stale)), "{changed:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deletion_of_a_node_and_a_new_port_of_its_group_wait_in_one_order() {
    let Some(there) = HeldPort::start().await else { return };
    let (store, node) = (there.store.clone(), there.node.clone());
    let (other, port) = (there.store.clone(), port_of(&there.node, &there.group, 3));
    let deletion = async move { store.delete_node(&node).await };
    let (deleted, added) = there.run(deletion, async move { other.insert_port(&port).await }).await;
    assert!(deleted.is_ok(), "{deleted:?}");
    assert!(matches!(added, Err(StoreError::NoOwner { .. })), "{added:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_of_vifs_and_a_change_of_a_port_group_wait_in_one_order() {
    let Some(there) = HeldPort::start().await else { return };
    let (store, moved) = (there.store.clone(), there.moved());
    let change = async move { store.update_port_group(&moved).await };
    let (store, node, group) = (there.store.clone(), there.node.clone(), there.group.clone());
    let mut ports = there.ports.clone();
    // The caller may have read the ports in any order.
    ports.reverse();
    let vifs = async move { store.update_vifs(&node, &ports, &[group]).await };
    let (attached, changed) = there.run(vifs, change).await;
    assert!(attached.is_ok(), "{attached:?}");
    assert!(matches!(changed, Err(StoreError::Stale)), "{changed:?}");
}

/// Half of the tasks put a node into a chassis and a port into a group; the other half deletes the chassis and the group.
async fn nothing_refers_to_a_resource_that_was_deleted_meanwhile(store: Store) {
    for round in 0..20_u8 {
        let owner = named(&format!("owner-{round}"));
        store.insert_node(&owner).await.unwrap();
        let chassis = Stored::new(Uuid::new_v4(), Chassis::default(), at(0));
        store.insert_resource(&chassis).await.unwrap();
        let group = PortGroup { node: owner.id, ..PortGroup::default() };
        let group = Stored::new(Uuid::new_v4(), group, at(0));
        store.insert_resource(&group).await.unwrap();
        at_once(&store, |store, n| {
            let (owner, chassis, group) = (owner.clone(), chassis.clone(), group.clone());
            async move {
                if n % 2 == 0 {
                    // The first deletion makes the others stale.
                    let _ = store.delete_resource(&chassis).await;
                    let _ = store.delete_resource(&group).await;
                    return;
                }
                let address = MacAddress::new([2, 0, 0, 0, round, n as u8]);
                let port = Port::new(PortUuid::new_v4(), owner.id, address, at(0));
                let port = Port { portgroup: Some(group.id), ..port };
                let node = named(&format!("n-{round}-{n}"));
                let node = Node { chassis: Some(chassis.id), ..node };
                for result in [store.insert_node(&node).await, store.insert_port(&port).await] {
                    assert!(
                        matches!(result, Ok(()) | Err(StoreError::NoOwner { .. })),
                        "{result:?}"
                    );
                }
            }
        })
        .await;
        let is_there = store.find_resource::<Chassis>(chassis.id).await.unwrap().is_some();
        let page = Page { limit: 100, marker: None, sort: NodeSort::Id, descending: false };
        let filter = NodeFilter { chassis: Some(chassis.id), ..NodeFilter::default() };
        let nodes = store.list_nodes(&filter, &page).await.unwrap();
        assert_eq!(is_there, !nodes.is_empty());
        let is_there = store.find_resource::<PortGroup>(group.id).await.unwrap().is_some();
        assert_eq!(is_there, !store.ports_of_group(group.id).await.unwrap().is_empty());
    }
}

async fn stale_updates_lose_nothing(store: Store) {
    const EACH: usize = 10;
    let node = bare_node();
    let ident = NodeIdent::Id(node.id);
    store.insert_node(&node).await.unwrap();
    at_once(&store, |store, n| {
        let ident = ident.clone();
        async move {
            for time in 0..EACH {
                loop {
                    let mut node = store.find_node(&ident).await.unwrap().unwrap();
                    let line = HistoryEntry::changed(&node, &node, format!("{n}.{time}"), at(0));
                    let count = node.extra.get("count").and_then(|count| count.as_u64());
                    node.extra.insert("count".into(), json!(count.unwrap_or(0) + 1));
                    match store.update_node(&node, &[line]).await {
                        Ok(_) => break,
                        Err(StoreError::Stale) => {}
                        Err(error) => panic!("{error:?}"),
                    }
                }
            }
        }
    })
    .await;

    let node = store.find_node(&ident).await.unwrap().unwrap();
    assert_eq!(node.extra["count"], json!(TASKS * EACH));
    assert_eq!(node.version, (TASKS * EACH) as i64 + 1);
    let lines = store.history(node.id, 1000, None).await.unwrap();
    let events: BTreeSet<String> = lines.iter().map(|line| line.event.clone()).collect();
    assert_eq!((lines.len(), events.len()), (TASKS * EACH, TASKS * EACH));
}

async fn a_name_is_given_once(store: Store) {
    let outcomes = at_once(&store, |store, n| async move {
        let twin = store.insert_node(&named("twin")).await;
        // A refused insert must not fail other inserts that share its transaction.
        store.insert_node(&named(&format!("own-{n}"))).await.unwrap();
        twin
    })
    .await;
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 1);
    for refused in outcomes.into_iter().filter_map(Result::err) {
        assert!(matches!(refused, StoreError::Duplicate { field: "name", .. }), "{refused:?}");
    }
    assert_eq!(store.count_nodes().await.unwrap(), TASKS as u64 + 1);
}

async fn an_address_is_leased_to_one_machine_only(store: Store) {
    const EACH: usize = 5;
    let first = IpAddr::from([10, 0, 0, 1]);
    let last = IpAddr::from([10, 0, 0, (TASKS * EACH) as u8]);
    let leased = at_once(&store, |store, n| async move {
        let mut leased = Vec::new();
        for time in 0..EACH {
            let mac = MacAddress::new([2, 0, 0, 0, n as u8, time as u8]);
            leased
                .push(store.lease(mac, &pool(first, last), at(0)).await.unwrap().unwrap().address);
        }
        leased
    })
    .await;
    let unique: BTreeSet<IpAddr> = leased.into_iter().flatten().collect();
    assert_eq!(unique.len(), TASKS * EACH);
    let late = store.lease(MacAddress::new([4; 6]), &pool(first, last), at(0)).await.unwrap();
    assert_eq!(late, None);
}

async fn one_machine_gets_one_address(store: Store) {
    let (first, last) = (IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 99]));
    let leased = at_once(&store, |store, _| async move {
        store.lease(MacAddress::new([2; 6]), &pool(first, last), at(0)).await.unwrap()
    })
    .await;
    assert!(leased.iter().all(|lease| lease.unwrap().address == first), "{leased:?}");
}

async fn a_rack_is_enrolled_once(store: Store) {
    let outcomes = at_once(&store, |store, _| async move {
        let nodes: Vec<Node> = (0..20).map(|n| named(&format!("r1u{n}"))).collect();
        store.enroll(("r1", &json!({}), None), &nodes, &[], &[], &[]).await
    })
    .await;
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 1);
    for refused in outcomes.into_iter().filter_map(Result::err) {
        assert!(matches!(refused, StoreError::Duplicate { .. }), "{refused:?}");
    }
    assert_eq!(store.count_nodes().await.unwrap(), 20);
}

async fn the_sweep_and_an_enrolment_do_not_block_each_other(store: Store) {
    let nodes: Vec<Node> = (0..50).map(|_| bare_node()).collect();
    for node in &nodes {
        store.insert_node(node).await.unwrap();
    }
    let document = json!({});
    store.insert_rack("r1", &document).await.unwrap();
    at_once(&store, |store, n| {
        // Each task visits the nodes in a different order.
        let mut nodes = nodes.clone();
        nodes.rotate_left(3 * n);
        async move {
            if n % 2 == 0 {
                let power = if n % 4 == 0 { PowerState::On } else { PowerState::Off };
                let seen: Vec<_> = nodes.iter().map(|node| SeenPower::of(node, power)).collect();
                store.record_power(&seen, at(n as i64)).await.unwrap();
            } else {
                let rack = ("r1", &json!({}), Some(1));
                let outcome = store.enroll(rack, &[], &nodes, &[], &[]).await;
                assert!(matches!(outcome, Ok(()) | Err(StoreError::Stale)), "{outcome:?}");
            }
        }
    })
    .await;
    for node in &nodes {
        let read = store.find_node(&NodeIdent::Id(node.id)).await.unwrap().unwrap();
        assert!(read.power_state.is_some() || read.version == 2, "{read:?}");
    }
}
