//! DHCP leases: which machine keeps an address, which loses it, and which addresses are skipped.

use std::net::IpAddr;

use baremetal_core::{NamedMachine, Node, NodeIdent, NodeName, Port};
use baremetal_store::{AddressPool, Store};
use hardware::MacAddress;
use serde_json::json;

use crate::machine::port;
use crate::scratch::{at, bare_node, on_both, pool};

on_both! { Store:
    a_lease_is_the_lowest_free_address_and_stays
    a_lease_that_no_longer_fits_is_replaced
    a_gap_is_found_among_many_leases
    the_lease_of_a_port_lasts_as_long_as_the_port
    the_lease_of_an_unknown_machine_expires_unless_renewed
    unknown_machines_never_keep_a_port_from_an_address
    an_address_in_use_is_skipped_for_a_time
    a_lease_is_probed_once
    the_leases_of_a_pool_are_listed_until_they_expire
    the_addresses_of_named_nodes_are_listed_once_probed
    ipv6_addresses_are_leased_by_the_same_rules
}

const HOUR: i64 = 3600;

fn mac(n: u16) -> MacAddress {
    let [high, low] = n.to_be_bytes();
    // None of the addresses that `port` makes.
    MacAddress::new([2, 0, 0, 0, high, low])
}

fn address(n: u8) -> IpAddr {
    [10, 0, 0, n].into()
}

/// A pool with the addresses from `first` to `last`.
fn range(first: u8, last: u8) -> AddressPool {
    pool(address(first), address(last))
}

/// Returns the address leased to `mac` at this many seconds.
async fn lease(store: &Store, mac: MacAddress, pool: &AddressPool, seconds: i64) -> Option<IpAddr> {
    store.lease(mac, pool, at(seconds)).await.unwrap().map(|leased| leased.address)
}

/// Adds a node with this many ports.
async fn enrolled(store: &Store, ports: u8) -> (Node, Vec<Port>) {
    let node = bare_node();
    store.insert_node(&node).await.unwrap();
    let ports: Vec<_> = (1..=ports).map(|n| port(&node, n)).collect();
    for port in &ports {
        store.insert_port(port).await.unwrap();
    }
    (node, ports)
}

async fn a_lease_is_the_lowest_free_address_and_stays(store: Store) {
    let pool = AddressPool { reserved: vec![address(11)], ..range(10, 13) };
    assert!(!store.has_lease(mac(1)).await.unwrap());
    assert_eq!(lease(&store, mac(1), &pool, 0).await, Some(address(10)));
    assert_eq!(lease(&store, mac(2), &pool, 0).await, Some(address(12)));
    assert_eq!(lease(&store, mac(3), &pool, 0).await, Some(address(13)));
    assert_eq!(lease(&store, mac(4), &pool, 0).await, None);
    assert_eq!(lease(&store, mac(2), &pool, 0).await, Some(address(12)));
    assert!(store.has_lease(mac(2)).await.unwrap());
    assert!(!store.has_lease(mac(4)).await.unwrap());
}

async fn a_lease_that_no_longer_fits_is_replaced(store: Store) {
    assert_eq!(lease(&store, mac(1), &range(10, 200), 0).await, Some(address(10)));
    assert_eq!(lease(&store, mac(1), &range(100, 200), 0).await, Some(address(100)));
    let reserved = AddressPool { reserved: vec![address(100)], ..range(100, 200) };
    assert_eq!(lease(&store, mac(1), &reserved, 0).await, Some(address(101)));
    // The address that was given up is free for others.
    assert_eq!(lease(&store, mac(2), &range(10, 200), 0).await, Some(address(10)));
    assert_eq!(lease(&store, mac(3), &range(20, 10), 0).await, None);
}

async fn a_gap_is_found_among_many_leases(store: Store) {
    let pool = AddressPool { reserved: vec![address(11), address(40)], ..range(10, 99) };
    let mut leased = Vec::new();
    for n in 0..60 {
        leased.push(lease(&store, mac(n), &pool, 0).await.unwrap());
    }
    let want: Vec<IpAddr> = (10..=71).filter(|n| ![11, 40].contains(n)).map(address).collect();
    assert_eq!(leased, want);
    assert!(store.mark_address_in_use(mac(30), leased[30], at(600)).await.unwrap());
    assert_eq!(lease(&store, mac(100), &pool, 0).await, Some(address(72)));
    assert_eq!(lease(&store, mac(101), &pool, 600).await, Some(leased[30]));
    assert_eq!(lease(&store, mac(102), &pool, 600).await, Some(address(73)));
}

async fn the_lease_of_a_port_lasts_as_long_as_the_port(store: Store) {
    let pool = range(10, 12);
    let (node, ports) = enrolled(&store, 3).await;
    for (port, n) in ports.iter().zip(10..) {
        assert_eq!(lease(&store, port.address, &pool, 0).await, Some(address(n)));
    }
    let year = 365 * 24 * HOUR;
    assert_eq!(lease(&store, mac(900), &pool, year).await, None, "no port's lease ever expires");

    store.delete_port(&ports[0]).await.unwrap();
    assert!(!store.has_lease(ports[0].address).await.unwrap());
    let moved = Port { address: mac(901), ..ports[1].clone() };
    store.update_port(&moved).await.unwrap();
    assert!(!store.has_lease(ports[1].address).await.unwrap());
    store.enroll(("r1", &json!({}), None), &[], &[], &[], &[ports[2].id]).await.unwrap();
    assert!(!store.has_lease(ports[2].address).await.unwrap());

    assert_eq!(lease(&store, moved.address, &pool, year).await, Some(address(10)));
    store.delete_node(&node).await.unwrap();
    assert!(!store.has_lease(moved.address).await.unwrap());
}

async fn the_lease_of_an_unknown_machine_expires_unless_renewed(store: Store) {
    let pool = range(10, 11);
    assert_eq!(lease(&store, mac(1), &pool, 0).await, Some(address(10)));
    assert_eq!(lease(&store, mac(2), &pool, 0).await, Some(address(11)));
    assert_eq!(lease(&store, mac(2), &pool, HOUR - 1).await, Some(address(11)));
    assert_eq!(lease(&store, mac(3), &pool, HOUR - 1).await, None);
    assert_eq!(lease(&store, mac(3), &pool, HOUR).await, Some(address(10)));
    assert_eq!(lease(&store, mac(4), &pool, HOUR).await, None);
    // A machine that was enrolled meanwhile keeps its lease for ever.
    let node = bare_node();
    store.insert_node(&node).await.unwrap();
    store.insert_port(&Port { address: mac(2), ..port(&node, 1) }).await.unwrap();
    assert_eq!(lease(&store, mac(2), &pool, HOUR).await, Some(address(11)));
    assert_eq!(lease(&store, mac(5), &pool, 9 * HOUR).await, Some(address(10)));
    assert_eq!(lease(&store, mac(2), &pool, 9 * HOUR).await, Some(address(11)));
}

async fn unknown_machines_never_keep_a_port_from_an_address(store: Store) {
    let pool = range(10, 109);
    for n in 0..100 {
        let seconds = i64::from(n);
        assert!(lease(&store, mac(1000 + n), &pool, 100 - seconds).await.is_some());
    }
    let (_, ports) = enrolled(&store, 2).await;
    // The unknown machine with the oldest request loses its address.
    assert_eq!(lease(&store, ports[0].address, &pool, 100).await, Some(address(109)));
    assert_eq!(lease(&store, ports[1].address, &pool, 100).await, Some(address(108)));
    assert!(!store.has_lease(mac(1099)).await.unwrap());
    assert_eq!(lease(&store, mac(2000), &pool, 100).await, None, "a stranger takes nobody's");
}

async fn an_address_in_use_is_skipped_for_a_time(store: Store) {
    let pool = range(10, 11);
    let (_, ports) = enrolled(&store, 1).await;
    let port = ports[0].address;
    assert_eq!(lease(&store, port, &pool, 0).await, Some(address(10)));
    assert!(store.mark_address_in_use(port, address(10), at(600)).await.unwrap());
    assert_eq!(lease(&store, port, &pool, 0).await, Some(address(11)));
    assert_eq!(lease(&store, mac(1), &pool, 599).await, None);
    assert_eq!(lease(&store, mac(1), &pool, 600).await, Some(address(10)));

    // A machine cannot block an address that is not leased to it.
    assert!(!store.mark_address_in_use(mac(1), address(11), at(900)).await.unwrap());
    assert_eq!(lease(&store, port, &pool, 600).await, Some(address(11)));
}

async fn a_lease_is_probed_once(store: Store) {
    let pool = range(10, 99);
    let probed = async || store.lease(mac(1), &pool, at(0)).await.unwrap().unwrap().is_probed;
    assert!(!probed().await);
    assert!(!probed().await, "nobody probed yet");
    store.mark_lease_probed(mac(1), address(11)).await.unwrap();
    assert!(!probed().await, "another address was probed");
    store.mark_lease_probed(mac(1), address(10)).await.unwrap();
    assert!(probed().await);
}

async fn the_leases_of_a_pool_are_listed_until_they_expire(store: Store) {
    let (_, ports) = enrolled(&store, 1).await;
    for (mac, pool, seconds) in [
        (mac(1), range(10, 13), 0),
        (mac(2), range(10, 13), HOUR / 2),
        (ports[0].address, range(10, 13), 0),
        (mac(3), range(14, 20), 0),
    ] {
        lease(&store, mac, &pool, seconds).await.unwrap();
    }
    let listed = async |seconds| store.leased_addresses(&range(10, 13), at(seconds)).await.unwrap();
    assert_eq!(listed(HOUR - 1).await, [10, 11, 12].map(address));
    assert_eq!(listed(HOUR).await, [11, 12].map(address));
    assert_eq!(listed(2 * HOUR).await, [12].map(address));
}

async fn the_addresses_of_named_nodes_are_listed_once_probed(store: Store) {
    let (node, ports) = enrolled(&store, 3).await;
    let pool = range(10, 13);
    for port in &ports {
        let leased = lease(&store, port.address, &pool, 0).await.unwrap();
        if leased != address(12) {
            store.mark_lease_probed(port.address, leased).await.unwrap();
        }
    }
    assert_eq!(lease(&store, mac(1), &pool, 0).await, Some(address(13)));
    store.mark_lease_probed(mac(1), address(13)).await.unwrap();
    assert_eq!(store.named_machines(&pool).await.unwrap(), [], "the node has no name");
    let stored = store.find_node(&NodeIdent::Id(node.id)).await.unwrap().unwrap();
    let name: NodeName = "r1u7".to_owned().try_into().unwrap();
    let named = Node { name: Some(name.clone()), ..stored };
    store.update_node(&named, &[]).await.unwrap();
    let addresses = vec![address(10), address(11)];
    assert_eq!(
        store.named_machines(&pool).await.unwrap(),
        [NamedMachine { node: node.id, name, addresses }]
    );
}

async fn ipv6_addresses_are_leased_by_the_same_rules(store: Store) {
    let v6 = |text: &str| text.parse::<IpAddr>().unwrap();
    assert_eq!(lease(&store, mac(1), &range(10, 12), 0).await, Some(address(10)));
    // The upper half of the last 64 bits are negative numbers in the database.
    let pool = AddressPool {
        reserved: vec![v6("fd78::7fff:ffff:ffff:ffff")],
        ..pool(v6("fd78::7fff:ffff:ffff:fffe"), v6("fd78::8000:0:0:1"))
    };
    assert_eq!(lease(&store, mac(1), &pool, 0).await, Some(v6("fd78::7fff:ffff:ffff:fffe")));
    assert_eq!(lease(&store, mac(2), &pool, 0).await, Some(v6("fd78::8000:0:0:0")));
    assert_eq!(lease(&store, mac(3), &pool, 0).await, Some(v6("fd78::8000:0:0:1")));
    assert_eq!(lease(&store, mac(4), &pool, 0).await, None);
    assert_eq!(lease(&store, mac(2), &pool, 0).await, Some(v6("fd78::8000:0:0:0")));
    assert!(store.mark_address_in_use(mac(3), v6("fd78::8000:0:0:1"), at(600)).await.unwrap());
    assert_eq!(lease(&store, mac(4), &pool, 0).await, None);
    assert_eq!(lease(&store, mac(4), &pool, 600).await, Some(v6("fd78::8000:0:0:1")));
    // A pool with another prefix keeps the machine's number.
    let moved = AddressPool { first: v6("fd79::1"), last: v6("fd79::ffff:0:0:0"), ..pool };
    assert_eq!(lease(&store, mac(2), &moved, 0).await, Some(v6("fd79::8000:0:0:0")));
    assert_eq!(lease(&store, mac(5), &moved, 0).await, Some(v6("fd79::1")));
}
