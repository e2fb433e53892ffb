//! Records that belong to no node: unknown machines and racks.

use baremetal_core::{
    Acceptance, BmcIdentity, Discovery, DiscoveryId, Driver, HistoryEntry, Node, Port, PortUuid,
};
use baremetal_store::{AcceptOutcome, PagePart, Store, StoreError};
use hardware::MacAddress;
use serde_json::json;

use crate::scratch::{at, bare_node, on_both};

on_both! { Store:
    unknown_machines_are_recorded_once_each
    discoveries_are_bounded
    a_discovery_is_accepted_once
    a_machine_is_unknown_again_without_its_node
    an_acceptance_that_clashes_writes_nothing
    a_rack_is_written_found_changed_and_deleted
}

fn mac(n: u16) -> MacAddress {
    let [high, low] = n.to_be_bytes();
    MacAddress::new([0x52, 0x54, 0, 0, high, low])
}

fn machine(n: u16) -> DiscoveryId {
    DiscoveryId::Machine(mac(n))
}

async fn unknown_machines_are_recorded_once_each(store: Store) {
    store.touch_discovery(machine(2), at(1)).await.unwrap();
    store.touch_discovery(machine(1), at(2)).await.unwrap();
    store.touch_discovery(machine(2), at(3)).await.unwrap();
    let noted = |n, first, last| Discovery {
        id: machine(n),
        first_seen_at: at(first),
        last_seen_at: at(last),
        data: None,
        node: None,
    };
    assert_eq!(
        store.list_discoveries_part(1000, PagePart::whole()).await.unwrap().found,
        [noted(2, 1, 3), noted(1, 2, 2)]
    );

    let found = Discovery { data: Some(json!({ "cpu": 4 })), ..noted(1, 4, 4) };
    store.save_discovery(&found).await.unwrap();
    store.touch_discovery(machine(1), at(5)).await.unwrap();
    store.delete_discovery(machine(2)).await.unwrap();
    let want = Discovery { first_seen_at: at(2), last_seen_at: at(5), ..found };
    assert_eq!(
        store.list_discoveries_part(1000, PagePart::whole()).await.unwrap().found,
        std::slice::from_ref(&want)
    );

    let earlier = Discovery { last_seen_at: at(4), ..want.clone() };
    store.update_discovery_data(&earlier.with_refusal("too late".to_owned())).await.unwrap();
    let refused = want.with_refusal("not ours".to_owned());
    store.update_discovery_data(&refused).await.unwrap();
    assert_eq!(store.find_discovery(machine(1)).await.unwrap(), Some(refused));
    store.update_discovery_data(&noted(2, 1, 3)).await.unwrap();
    assert_eq!(store.find_discovery(machine(2)).await.unwrap(), None, "it was deleted");
}

async fn discoveries_are_bounded(store: Store) {
    let touches = (0..1030).map(|n| {
        let store = store.clone();
        tokio::spawn(async move { store.touch_discovery(machine(n), at(n.into())).await.unwrap() })
    });
    for touch in touches.collect::<Vec<_>>() {
        touch.await.unwrap();
    }
    store.touch_discovery(machine(4), at(9000)).await.unwrap();
    let known = store.list_discoveries_part(2000, PagePart::whole()).await.unwrap().found;
    let is_known = |n| known.iter().any(|found| found.id == machine(n));
    assert_eq!(known.len(), 1024);
    assert!(is_known(1029) && is_known(4), "the last that asked are known");
}

/// A node with one port of the machine, and a BMC at this address.
fn acceptance(n: u16, address: &str) -> Acceptance {
    let mut node = Node { driver: Driver::Redfish, ..bare_node() };
    node.driver_info.insert("redfish_address".to_owned(), address.into());
    let port = Port::new(PortUuid::new_v4(), node.id, mac(n), at(0));
    let entry = HistoryEntry::changed(&node, &node, "accepted".to_owned(), at(1));
    Acceptance { node, ports: vec![port], report: None, entry }
}

async fn listed(store: &Store) -> Vec<DiscoveryId> {
    let found = store.list_discoveries_part(1000, PagePart::whole()).await.unwrap().found;
    found.into_iter().map(|it| it.id).collect()
}

async fn a_discovery_is_accepted_once(store: Store) {
    store.touch_discovery(machine(1), at(1)).await.unwrap();
    store.touch_discovery(machine(2), at(1)).await.unwrap();
    let tries = (0..4_u16).map(|_| {
        let store = store.clone();
        let wanted = acceptance(1, "https://10.0.0.1");
        tokio::spawn(async move {
            (wanted.node.id, store.accept_discovery(machine(1), &wanted).await.unwrap())
        })
    });
    let mut outcomes = Vec::new();
    for one in tries.collect::<Vec<_>>() {
        outcomes.push(one.await.unwrap());
    }
    let is_accepted = |it: &&(_, AcceptOutcome)| it.1 == AcceptOutcome::Accepted;
    let [(node, _)] = *outcomes.iter().filter(is_accepted).copied().collect::<Vec<_>>() else {
        panic!("{outcomes:?}")
    };
    let mut others = outcomes.iter().filter(|it| !is_accepted(it));
    assert!(others.all(|it| it.1 == AcceptOutcome::Present(node)), "{outcomes:?}");
    assert_eq!(listed(&store).await, [machine(2)]);
    assert_eq!(store.find_discovery(machine(1)).await.unwrap().unwrap().node, Some(node));
    assert_eq!(store.ports_of(node).await.unwrap()[0].address, mac(1));
    assert_eq!(store.history(node, 9, None).await.unwrap().len(), 1);
    let missing = store.accept_discovery(machine(3), &acceptance(3, "https://10.0.0.3")).await;
    assert_eq!(missing.unwrap(), AcceptOutcome::Missing);
    assert_eq!(store.count_nodes().await.unwrap(), 1);
}

async fn a_machine_is_unknown_again_without_its_node(store: Store) {
    store.touch_discovery(machine(1), at(1)).await.unwrap();
    let wanted = acceptance(1, "https://10.0.0.1");
    store.accept_discovery(machine(1), &wanted).await.unwrap();
    store.delete_node(&wanted.node).await.unwrap();
    assert_eq!(store.find_discovery(machine(1)).await.unwrap(), None);
    store.touch_discovery(machine(1), at(2)).await.unwrap();
    let again = acceptance(1, "https://10.0.0.1");
    let outcome = store.accept_discovery(machine(1), &again).await.unwrap();
    assert_eq!(outcome, AcceptOutcome::Accepted);
    // The machine asks again although it has a node: its port was deleted.
    store.touch_discovery(machine(1), at(3)).await.unwrap();
    assert_eq!(listed(&store).await, [machine(1)]);
}

async fn an_acceptance_that_clashes_writes_nothing(store: Store) {
    for n in 1..=2 {
        store.touch_discovery(machine(n), at(1)).await.unwrap();
    }
    let first = acceptance(1, "https://10.0.0.1");
    store.accept_discovery(machine(1), &first).await.unwrap();
    for (clash, field) in
        [(acceptance(1, "https://10.0.0.2"), "address"), (acceptance(2, "10.0.0.1/"), "bmc")]
    {
        let refused = store.accept_discovery(machine(2), &clash).await;
        let is_named =
            matches!(&refused, Err(StoreError::Duplicate { field: it, .. }) if *it == field);
        assert!(is_named, "{refused:?}");
        assert_eq!(store.count_nodes().await.unwrap(), 1);
    }
    assert_eq!(listed(&store).await, [machine(2)]);
    let bmc = BmcIdentity::of(&first.node).unwrap();
    assert_eq!(store.find_bmc_node(&bmc).await.unwrap(), Some(first.node.id));
}

async fn a_rack_is_written_found_changed_and_deleted(store: Store) {
    let (first, second) = (json!({ "machines": [1] }), json!({ "machines": [1, 2] }));
    assert_eq!(store.find_rack("r1").await.unwrap(), None);
    store.insert_rack("r1", &first).await.unwrap();
    store.insert_rack("r0", &second).await.unwrap();
    let again = store.insert_rack("r1", &second).await;
    assert!(
        matches!(&again, Err(StoreError::Duplicate { field: "name", value }) if value == "r1"),
        "{again:?}"
    );
    assert_eq!(store.find_rack("r1").await.unwrap(), Some((first.clone(), 1)));

    store.update_rack("r1", &second, 1).await.unwrap();
    assert!(matches!(store.update_rack("r1", &first, 1).await, Err(StoreError::Stale)));
    assert!(matches!(store.update_rack("r9", &first, 1).await, Err(StoreError::Stale)));
    let want = [("r0".to_owned(), second.clone(), 1), ("r1".to_owned(), second, 2)];
    assert_eq!(store.list_racks().await.unwrap(), want);
    store.delete_rack("r1").await.unwrap();
    assert_eq!(store.find_rack("r1").await.unwrap(), None);
}
