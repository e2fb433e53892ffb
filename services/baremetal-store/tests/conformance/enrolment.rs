//! A rack is stored completely or not at all.

use baremetal_core::{Node, NodeIdent, RackLocation};
use baremetal_store::{Store, StoreError};
use serde_json::json;

use crate::machine::port;
use crate::scratch::{named, on_both};

on_both! { Store:
    a_rack_is_enrolled_with_its_nodes_and_ports
    nothing_is_enrolled_if_anything_clashes
    a_rack_is_enrolled_again_with_changes
}

fn in_rack(n: u32) -> Node {
    let place = RackLocation { rack: "r1".into(), position: n, group: None, role: None };
    Node { place: Some(place), ..named(&format!("r1u{n}")) }
}

async fn a_rack_is_enrolled_with_its_nodes_and_ports(store: Store) {
    let document = json!({ "name": "r1" });
    let nodes: Vec<Node> = (0..40).map(in_rack).collect();
    let ports: Vec<_> = nodes.iter().zip(0..).map(|(node, n)| port(node, n)).collect();
    store.enroll(("r1", &document, None), &nodes, &[], &ports, &[]).await.unwrap();
    assert_eq!(store.find_rack("r1").await.unwrap(), Some((document, 1)));
    assert_eq!(store.count_nodes().await.unwrap(), 40);
    assert_eq!(store.ports_of(nodes[39].id).await.unwrap(), ports[39..]);
}

async fn nothing_is_enrolled_if_anything_clashes(store: Store) {
    let there = in_rack(1);
    store.insert_node(&there).await.unwrap();
    store.insert_port(&port(&there, 1)).await.unwrap();
    store.insert_rack("r2", &json!({})).await.unwrap();
    let check = async |outcome: Result<(), StoreError>, taken: &str| {
        assert!(
            matches!(&outcome, Err(StoreError::Duplicate { field, .. }) if *field == taken),
            "{outcome:?}"
        );
        assert_eq!(store.find_rack("r1").await.unwrap(), None);
        assert_eq!(store.count_nodes().await.unwrap(), 1);
        assert_eq!(store.ports_of(there.id).await.unwrap().len(), 1);
    };
    let document = json!({});
    let rack = ("r1", &document, None);
    let fresh = in_rack(2);
    let nodes = [fresh.clone(), in_rack(3), in_rack(1)];
    check(store.enroll(rack, &nodes, &[], &[port(&fresh, 2)], &[]).await, "name").await;
    let ports = [port(&fresh, 2), port(&fresh, 1)];
    check(store.enroll(rack, &nodes[..2], &[], &ports, &[]).await, "address").await;
    check(store.enroll(("r2", &document, None), &nodes[..2], &[], &[], &[]).await, "name").await;

    let late = Node { version: 7, ..there.clone() };
    let refused = store.enroll(rack, &nodes[..2], &[late], &[], &[]).await;
    assert!(matches!(refused, Err(StoreError::Stale)), "{refused:?}");
    let refused = store.enroll(("r2", &document, Some(7)), &nodes[..2], &[], &[], &[]).await;
    assert!(matches!(refused, Err(StoreError::Stale)), "{refused:?}");
    assert_eq!(store.count_nodes().await.unwrap(), 1);
    assert_eq!(store.find_rack("r2").await.unwrap(), Some((json!({}), 1)));
}

async fn a_rack_is_enrolled_again_with_changes(store: Store) {
    let (first, second) = (in_rack(1), in_rack(2));
    let nodes = [first.clone(), second.clone()];
    let ports = [port(&first, 1), port(&second, 2)];
    store.enroll(("r1", &json!(1), None), &nodes, &[], &ports, &[]).await.unwrap();

    // The ports of the two machines are exchanged in one transaction.
    let moved = [port(&first, 2), port(&second, 1)];
    let changed = Node { description: Some("swapped".into()), ..first.clone() };
    let gone = [ports[0].id, ports[1].id];
    store.enroll(("r1", &json!(2), Some(1)), &[], &[changed], &moved, &gone).await.unwrap();
    assert_eq!(store.find_rack("r1").await.unwrap(), Some((json!(2), 2)));
    assert_eq!(store.ports_of(first.id).await.unwrap(), moved[..1]);
    assert_eq!(store.ports_of(second.id).await.unwrap(), moved[1..]);
    let read = store.find_node(&NodeIdent::Id(first.id)).await.unwrap().unwrap();
    assert_eq!((read.version, read.description.as_deref()), (2, Some("swapped")));
}
