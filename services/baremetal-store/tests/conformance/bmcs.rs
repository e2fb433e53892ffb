//! A BMC belongs to one node: second records are refused, also at the same time.

use baremetal_core::{Driver, HistoryEntry, Node, NodeUuid};
use baremetal_store::{ImportEffect, ImportedNode, SharedBmcs, Store, StoreError};
use serde_json::{Value, json};

use crate::scratch::{at, bare_node, named, on_both};

on_both! { Store:
    a_second_node_with_a_bmc_is_refused
    a_change_to_the_bmc_of_another_node_is_refused
    systems_behind_one_bmc_are_different_machines
    a_child_may_share_the_bmc_of_its_parent
    a_rack_may_exchange_the_bmcs_of_its_machines
    an_imported_node_with_a_known_bmc_is_refused
    one_of_many_nodes_gets_a_bmc
    nodes_that_share_a_bmc_already_are_still_written
}

fn redfish(address: &str, system: Value) -> Node {
    let mut node = Node { driver: Driver::Redfish, ..bare_node() };
    let info = json!({"redfish_address": address, "redfish_system_id": system});
    node.driver_info = info.as_object().unwrap().clone();
    node
}

fn at_address(address: &str) -> Node {
    redfish(address, Value::Null)
}

#[track_caller]
fn is_refused<T: std::fmt::Debug>(written: Result<T, StoreError>, other: NodeUuid) {
    match written {
        Err(StoreError::Duplicate { field: "bmc", value }) => assert_eq!(value, other.to_string()),
        written => panic!("{written:?}"),
    }
}

async fn a_second_node_with_a_bmc_is_refused(store: Store) {
    let first = at_address("https://10.0.0.1");
    store.insert_node(&first).await.unwrap();
    is_refused(store.insert_node(&at_address("http://10.0.0.1:80/")).await, first.id);
    let mut ipmi = Node { driver: Driver::Ipmi, ..bare_node() };
    ipmi.driver_info.insert("ipmi_address".to_owned(), "10.0.0.1".into());
    is_refused(store.insert_node(&ipmi).await, first.id);
    assert_eq!(store.count_nodes().await.unwrap(), 1);
    // Nodes without a BMC may have the same words in `driver_info`.
    for _ in 0..2 {
        let fake = Node { driver: Driver::FakeHardware, ..at_address("https://10.0.0.1") };
        store.insert_node(&Node { id: NodeUuid::new_v4(), ..fake }).await.unwrap();
    }
    store.delete_node(&first).await.unwrap();
    store.insert_node(&at_address("https://10.0.0.1")).await.unwrap();
}

async fn a_change_to_the_bmc_of_another_node_is_refused(store: Store) {
    let (first, second) = (at_address("https://10.0.0.1"), at_address("https://10.0.0.2"));
    store.insert_node(&first).await.unwrap();
    store.insert_node(&second).await.unwrap();
    let moved = Node { driver_info: first.driver_info.clone(), ..second.clone() };
    let line = HistoryEntry::changed(&second, &moved, "moved".to_owned(), at(1));
    is_refused(store.update_node(&moved, &[line]).await, first.id);
    assert_eq!(store.history(second.id, 9, None).await.unwrap(), []);
    let free = at_address("https://10.0.0.3").driver_info;
    let written = store.update_node(&Node { driver_info: free, ..second }, &[]).await.unwrap();
    assert_eq!(written.version, 2);
    store.insert_node(&at_address("https://10.0.0.2")).await.unwrap();
    let stale = store.update_node(&moved, &[]).await;
    assert!(matches!(stale, Err(StoreError::Stale | StoreError::Duplicate { .. })), "{stale:?}");
}

async fn systems_behind_one_bmc_are_different_machines(store: Store) {
    let one = redfish("https://chassis", "/redfish/v1/Systems/1".into());
    let two = redfish("https://chassis", "/redfish/v1/Systems/2".into());
    store.insert_node(&one).await.unwrap();
    store.insert_node(&two).await.unwrap();
    let again = redfish("https://CHASSIS/", "/redfish/v1/Systems/2/".into());
    is_refused(store.insert_node(&again).await, two.id);
    let first = one.id.min(two.id);
    is_refused(store.insert_node(&at_address("https://chassis")).await, first);
}

async fn a_child_may_share_the_bmc_of_its_parent(store: Store) {
    let parent = at_address("https://chassis");
    store.insert_node(&parent).await.unwrap();
    let child = || Node { parent_node: Some(parent.id), ..at_address("https://chassis") };
    let first = child();
    store.insert_node(&first).await.unwrap();
    is_refused(store.insert_node(&child()).await, first.id);
    let parted = Node { parent_node: None, ..first.clone() };
    is_refused(store.update_node(&parted, &[]).await, parent.id);
    let moved = at_address("https://other").driver_info;
    let moved = store.update_node(&Node { driver_info: moved, ..parent.clone() }, &[]).await;
    let moved = moved.unwrap();
    let back = Node { driver_info: parent.driver_info.clone(), ..moved };
    store.update_node(&back, &[]).await.unwrap();
}

async fn a_rack_may_exchange_the_bmcs_of_its_machines(store: Store) {
    let (one, two) = (at_address("https://10.0.0.1"), at_address("https://10.0.0.2"));
    let rack = json!({});
    store.enroll(("r1", &rack, None), &[one.clone(), two.clone()], &[], &[], &[]).await.unwrap();
    let exchanged = [
        Node { driver_info: two.driver_info.clone(), ..one.clone() },
        Node { driver_info: one.driver_info.clone(), ..two.clone() },
    ];
    store.enroll(("r1", &rack, Some(1)), &[], &exchanged, &[], &[]).await.unwrap();
    let twins = [at_address("https://10.0.0.3"), at_address("https://10.0.0.3")];
    let refused = store.enroll(("r1", &rack, Some(2)), &twins, &[], &[], &[]).await;
    is_refused(refused, twins[1].id);
    assert_eq!(store.count_nodes().await.unwrap(), 2);
}

async fn an_imported_node_with_a_known_bmc_is_refused(store: Store) {
    let known = at_address("https://10.0.0.1");
    store.insert_node(&known).await.unwrap();
    let node = at_address("https://10.0.0.1");
    let imported = ImportedNode {
        entry: HistoryEntry::changed(&node, &node, "imported".to_owned(), at(1)),
        node,
        portgroups: Vec::new(),
        ports: Vec::new(),
        connectors: Vec::new(),
        targets: Vec::new(),
        allocation: None,
        inspection: None,
        history: Vec::new(),
    };
    for effect in [ImportEffect::Check, ImportEffect::Write] {
        is_refused(store.import_node(&imported, effect).await, known.id);
    }
}

async fn one_of_many_nodes_gets_a_bmc(store: Store) {
    let writes = (0..16).map(|number| {
        let store = store.clone();
        tokio::spawn(async move {
            let node = Node { name: named(&format!("n{number}")).name, ..at_address("https://b") };
            match number % 2 {
                0 => store.insert_node(&node).await.is_ok(),
                _ => {
                    let free = Node { driver_info: Default::default(), ..node.clone() };
                    store.insert_node(&free).await.unwrap();
                    store.update_node(&node, &[]).await.is_ok()
                }
            }
        })
    });
    let mut won = 0;
    for write in writes.collect::<Vec<_>>() {
        won += usize::from(write.await.unwrap());
    }
    assert_eq!(won, 1);
}

async fn nodes_that_share_a_bmc_already_are_still_written(store: Store) {
    let permissive = store.clone().with_shared_bmcs(SharedBmcs::Permitted);
    let twins = [at_address("https://10.0.0.1"), at_address("https://10.0.0.1")];
    for twin in &twins {
        permissive.insert_node(twin).await.unwrap();
    }
    assert_eq!(permissive.find_shared_bmc(&twins[0]).await.unwrap(), None);
    let named = Node { name: named("n1").name, ..twins[0].clone() };
    let written = store.update_node(&named, &[]).await.unwrap();
    let moved = Node { driver_info: at_address("https://x").driver_info, ..written.clone() };
    let moved = store.update_node(&moved, &[]).await.unwrap();
    let back = Node { driver_info: written.driver_info, ..moved };
    is_refused(store.update_node(&back, &[]).await, twins[1].id);
}
