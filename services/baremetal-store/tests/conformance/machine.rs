//! Records of one node: ports, boot, inventory and history.

use baremetal_core::{
    Boot, HistoryEntry, HistoryUuid, InspectionChanges, InspectionReport, Node, NodeIdent, Port,
    PortUuid, PowerRequest, WorkUuid,
};
use baremetal_store::{Store, StoreError};
use hardware::{MacAddress, PowerChange};
use newtype_uuid::GenericUuid;
use serde_json::json;

use crate::scratch::{at, bare_node, named, on_both};

on_both! { Store:
    a_port_is_written_found_changed_and_deleted
    no_two_ports_share_an_address
    records_of_a_missing_node_are_refused
    a_boot_is_written_whole
    a_report_of_an_earlier_boot_does_not_replace_the_newer_boot
    the_token_of_a_boot_is_handed_out_once
    an_inventory_of_an_earlier_boot_changes_nothing
    an_inventory_replaces_the_one_before
    an_inspection_writes_all_its_changes_or_none
    a_step_on_child_nodes_is_written_to_all_nodes_or_none
    history_is_read_from_its_oldest_line
    history_keeps_its_newest_300_lines
    deleting_a_node_deletes_all_its_records
}

/// A port of `node` whose MAC address ends with `n`.
pub(crate) fn port(node: &Node, n: u8) -> Port {
    let address = MacAddress::new([0x52, 0x54, 0, 0, 0, n]);
    Port::new(PortUuid::new_v4(), node.id, address, at(0))
}

fn boot(node: &Node) -> Boot {
    Boot {
        node: node.id,
        work: WorkUuid::new_v4(),
        nonce: "nonce".into(),
        script_at: Some(at(1)),
        inventory_at: None,
        callback_url: None,
        certificate: None,
        agent_version: None,
        seen_at: None,
    }
}

fn inspected(node: &Node) -> InspectionReport {
    InspectionReport {
        node: node.id,
        at: at(3),
        inventory: json!({ "cpu": { "count": 4 } }),
        plugin_data: json!({ "dmi": "\u{0}ü" }),
    }
}

fn line(node: &Node, event: &str) -> HistoryEntry {
    HistoryEntry::changed(node, node, event.into(), at(5))
}

async fn a_port_is_written_found_changed_and_deleted(store: Store) {
    let node = bare_node();
    store.insert_node(&node).await.unwrap();
    let (first, second) = (port(&node, 2), port(&node, 1));
    store.insert_port(&first).await.unwrap();
    store.insert_port(&second).await.unwrap();
    assert_eq!(store.ports_of(node.id).await.unwrap(), [second.clone(), first.clone()]);
    assert_eq!(store.find_port(first.id).await.unwrap(), Some(first.clone()));
    assert_eq!(store.find_port_by_address(second.address).await.unwrap(), Some(second.clone()));

    let change = Port { pxe_enabled: false, updated_at: Some(at(1)), ..first.clone() };
    let changed = store.update_port(&change).await.unwrap();
    assert_eq!(changed, Port { version: 2, ..change });
    assert_eq!(store.find_port(first.id).await.unwrap(), Some(changed.clone()));
    assert!(matches!(store.update_port(&first).await, Err(StoreError::Stale)));
    assert!(matches!(store.delete_port(&first).await, Err(StoreError::Stale)));

    store.delete_port(&changed).await.unwrap();
    assert_eq!(store.ports_of(node.id).await.unwrap(), [second]);
}

async fn no_two_ports_share_an_address(store: Store) {
    let node = bare_node();
    store.insert_node(&node).await.unwrap();
    let (first, second) = (port(&node, 1), port(&node, 2));
    store.insert_port(&first).await.unwrap();
    store.insert_port(&second).await.unwrap();
    let check = |refused: Result<(), StoreError>, want: &str, of: String| match refused {
        Err(StoreError::Duplicate { field, value }) => {
            assert_eq!((field, value), (want, of));
        }
        other => panic!("{other:?}"),
    };
    let twin = Port { address: first.address, ..port(&node, 3) };
    check(store.insert_port(&twin).await, "address", "52:54:00:00:00:01".into());
    let twin = Port { id: first.id, ..port(&node, 4) };
    check(store.insert_port(&twin).await, "uuid", first.id.to_string());
    let twin = Port { address: first.address, ..second };
    check(store.update_port(&twin).await.map(drop), "address", first.address.to_string());
}

async fn records_of_a_missing_node_are_refused(store: Store) {
    let node = bare_node();
    let check = |refused: Result<(), StoreError>| {
        assert!(
            matches!(refused, Err(StoreError::NoOwner { owner: "node", id }) if id == node.id.into_untyped_uuid()),
            "{refused:?}"
        );
    };
    check(store.insert_port(&port(&node, 1)).await);
    check(store.save_boot(&boot(&node)).await);
    check(store.save_inspected(&inspected(&node)).await);
    assert!(matches!(store.update_node(&node, &[]).await, Err(StoreError::Stale)));
}

async fn a_boot_is_written_whole(store: Store) {
    let node = bare_node();
    store.insert_node(&node).await.unwrap();
    assert_eq!(store.find_boot(node.id).await.unwrap(), None);
    let first = boot(&node);
    store.save_boot(&first).await.unwrap();
    assert_eq!(store.find_boot(node.id).await.unwrap(), Some(first.clone()));

    let full = Boot {
        work: WorkUuid::new_v4(),
        nonce: "another".into(),
        script_at: Some(at(2)),
        inventory_at: Some(at(3)),
        callback_url: Some("https://10.0.0.9:9999".into()),
        certificate: Some("-----BEGIN CERTIFICATE-----".into()),
        agent_version: Some("11.0".into()),
        seen_at: Some(at(4)),
        ..first.clone()
    };
    store.save_boot(&full).await.unwrap();
    assert_eq!(store.find_boot(node.id).await.unwrap(), Some(full));
    store.save_boot(&first).await.unwrap();
    assert_eq!(store.find_boot(node.id).await.unwrap(), Some(first));
}

async fn a_report_of_an_earlier_boot_does_not_replace_the_newer_boot(store: Store) {
    let node = bare_node();
    store.insert_node(&node).await.unwrap();
    let earlier = boot(&node);
    assert!(!store.report_boot(&earlier).await.unwrap(), "there is none");
    store.save_boot(&earlier).await.unwrap();
    let callback_url = Some("https://10.0.0.9:9999".to_owned());
    let reported = Boot { callback_url, seen_at: Some(at(4)), ..earlier };
    assert!(store.report_boot(&reported).await.unwrap());
    assert_eq!(store.find_boot(node.id).await.unwrap(), Some(reported.clone()));

    // The machine fetched another script while the heartbeat was on its way.
    let newer =
        Boot { nonce: "newer".into(), callback_url: None, seen_at: None, ..reported.clone() };
    store.save_boot(&newer).await.unwrap();
    assert!(!store.report_boot(&reported).await.unwrap());
    assert_eq!(store.find_boot(node.id).await.unwrap(), Some(newer));
}

async fn the_token_of_a_boot_is_handed_out_once(store: Store) {
    let node = bare_node();
    store.insert_node(&node).await.unwrap();
    let waiting = Boot { script_at: None, ..boot(&node) };
    assert!(!store.claim_boot(&waiting, at(1)).await.unwrap(), "there is none");
    store.save_boot(&waiting).await.unwrap();
    let claim = || store.claim_boot(&waiting, at(2));
    let (one, two, three) = tokio::join!(claim(), claim(), claim());
    let claims = [one, two, three].map(Result::unwrap);
    assert_eq!(claims.into_iter().filter(|is_first| *is_first).count(), 1);
    let claimed = Boot { script_at: Some(at(2)), ..waiting };
    assert_eq!(store.find_boot(node.id).await.unwrap(), Some(claimed.clone()));
    let newer = Boot { nonce: "newer".into(), script_at: None, ..claimed.clone() };
    store.save_boot(&newer).await.unwrap();
    assert!(!store.claim_boot(&claimed, at(3)).await.unwrap(), "it is replaced");
    assert!(store.claim_boot(&newer, at(3)).await.unwrap());
}

async fn an_inventory_of_an_earlier_boot_changes_nothing(store: Store) {
    let node = bare_node();
    store.insert_node(&node).await.unwrap();
    let earlier = boot(&node);
    store.save_boot(&earlier).await.unwrap();
    let reported = Boot { inventory_at: Some(at(4)), seen_at: Some(at(4)), ..earlier };
    let known = inspected(&node);
    assert!(store.report_inventory(&reported, &known).await.unwrap());
    assert_eq!(store.find_boot(node.id).await.unwrap(), Some(reported.clone()));
    assert_eq!(store.find_inspected(node.id).await.unwrap(), Some(known.clone()));

    // The machine fetched another script while its inventory was on its way.
    let newer = Boot { nonce: "newer".into(), inventory_at: None, ..reported.clone() };
    store.save_boot(&newer).await.unwrap();
    let late = InspectionReport { at: at(9), inventory: json!([]), ..known.clone() };
    assert!(!store.report_inventory(&reported, &late).await.unwrap());
    assert_eq!(store.find_boot(node.id).await.unwrap(), Some(newer));
    assert_eq!(store.find_inspected(node.id).await.unwrap(), Some(known));
}

async fn an_inventory_replaces_the_one_before(store: Store) {
    let node = bare_node();
    store.insert_node(&node).await.unwrap();
    assert_eq!(store.find_inspected(node.id).await.unwrap(), None);
    let first = inspected(&node);
    store.save_inspected(&first).await.unwrap();
    assert_eq!(store.find_inspected(node.id).await.unwrap(), Some(first.clone()));
    let second =
        InspectionReport { at: at(9), inventory: json!([]), plugin_data: json!(null), ..first };
    store.save_inspected(&second).await.unwrap();
    assert_eq!(store.find_inspected(node.id).await.unwrap(), Some(second));
}

async fn an_inspection_writes_all_its_changes_or_none(store: Store) {
    let node = bare_node();
    store.insert_node(&node).await.unwrap();
    let (first, second) = (port(&node, 1), port(&node, 2));
    for port in [&first, &second] {
        store.insert_port(port).await.unwrap();
    }
    let before = inspected(&node);
    store.save_inspected(&before).await.unwrap();
    let read = async || {
        let written = store.find_node(&NodeIdent::Id(node.id)).await.unwrap().unwrap();
        let report = store.find_inspected(node.id).await.unwrap().unwrap();
        let history = store.history(node.id, 9, None).await.unwrap().len();
        (written, store.ports_of(node.id).await.unwrap(), report, history)
    };
    let named = |port: &Port| Port { description: Some("by a rule".to_owned()), ..port.clone() };
    let after = Node { resource_class: Some("large".to_owned()), ..node.clone() };
    let report = InspectionReport { plugin_data: json!({"class": "large"}), ..before.clone() };
    let changes = InspectionChanges {
        ports: vec![named(&first), named(&second)],
        report: Some(report.clone()),
    };
    let lines = [line(&node, "inspected")];

    // Somebody changes or deletes the second port meanwhile, or the node.
    let changed = store.update_port(&second).await.unwrap();
    let refused = store.update_node_and_inspection(&after, &lines, &changes).await;
    assert!(matches!(refused, Err(StoreError::Stale)), "{refused:?}");
    let unchanged = vec![first.clone(), changed.clone()];
    assert_eq!(read().await, (node.clone(), unchanged.clone(), before.clone(), 0));
    let stale = Node { version: 9, ..after.clone() };
    let ports = vec![named(&first), named(&changed)];
    let changes = InspectionChanges { ports, ..changes };
    let refused = store.update_node_and_inspection(&stale, &lines, &changes).await;
    assert!(matches!(refused, Err(StoreError::Stale)), "{refused:?}");
    assert_eq!(read().await, (node.clone(), unchanged, before, 0));

    let written = store.update_node_and_inspection(&after, &lines, &changes).await.unwrap();
    assert_eq!(written, Node { version: 2, ..after });
    let ports = changes.ports.into_iter().map(|it| Port { version: it.version + 1, ..it });
    assert_eq!(read().await, (written, ports.collect(), report, 1));
}

async fn a_step_on_child_nodes_is_written_to_all_nodes_or_none(store: Store) {
    let (parent, first, second) = (bare_node(), bare_node(), bare_node());
    for node in [&parent, &first, &second] {
        store.insert_node(node).await.unwrap();
    }
    let read = async |node: &Node| {
        let found = store.find_node(&NodeIdent::Id(node.id)).await.unwrap().unwrap();
        (found, store.history(node.id, 9, None).await.unwrap().len())
    };
    let asked = |node: &Node| {
        let power_request = Some(PowerRequest::new(PowerChange::On, at(60)));
        (Node { power_request, ..node.clone() }, line(node, "a step begins here"))
    };
    let after = Node { resource_class: Some("large".to_owned()), ..parent.clone() };
    let lines = [line(&parent, "a step begins")];

    // Somebody changes the second child node meanwhile, or the parent.
    let changed = store.update_node(&second, &[]).await.unwrap();
    let children = [asked(&first), asked(&second)];
    let refused = store.update_node_and_children(&after, &lines, &children).await;
    assert!(matches!(refused, Err(StoreError::Stale)), "{refused:?}");
    let stale = Node { version: 9, ..after.clone() };
    let children = [asked(&changed), asked(&first)];
    let refused = store.update_node_and_children(&stale, &lines, &children).await;
    assert!(matches!(refused, Err(StoreError::Stale)), "{refused:?}");
    for node in [&parent, &first, &changed] {
        assert_eq!(read(node).await, (node.clone(), 0));
    }

    let written = store.update_node_and_children(&after, &lines, &children).await.unwrap();
    assert_eq!(written, Node { version: after.version + 1, ..after });
    assert_eq!(read(&parent).await, (written.clone(), 1));
    for (child, _) in children {
        let want = Node { version: child.version + 1, ..child };
        assert_eq!(read(&want).await, (want.clone(), 1));
    }
    let alone = store.update_node_and_children(&written, &[], &[]).await.unwrap();
    assert_eq!(read(&parent).await, (alone, 1));
}

async fn history_is_read_from_its_oldest_line(store: Store) {
    let (node, other) = (bare_node(), bare_node());
    store.insert_node(&node).await.unwrap();
    store.insert_node(&other).await.unwrap();
    let failed =
        HistoryEntry::failed(&node, &node, "it broke".into(), at(6)).by(Some("u1"), Some("p1"));
    let written = store.update_node(&node, &[line(&node, "a"), line(&node, "b")]).await.unwrap();
    store.update_node(&other, &[line(&other, "elsewhere")]).await.unwrap();
    store.update_node(&written, std::slice::from_ref(&failed)).await.unwrap();

    let lines = store.history(node.id, 10, None).await.unwrap();
    let events: Vec<&str> = lines.iter().map(|line| line.event.as_str()).collect();
    assert_eq!(events, ["a", "b", "it broke"]);
    assert_eq!(lines[2], HistoryEntry { id: lines[2].id, ..failed });

    let id = |n: usize| lines[n].id.unwrap();
    assert_eq!(store.history(node.id, 1, Some(id(0))).await.unwrap(), lines[1..2]);
    assert_eq!(store.find_history(node.id, id(1)).await.unwrap().as_ref(), Some(&lines[1]));
    assert_eq!(store.find_history(other.id, id(1)).await.unwrap(), None);
    let gone = store.history(node.id, 10, Some(HistoryUuid::new_v4())).await;
    assert!(matches!(gone, Err(StoreError::NoMarker(_))));
    let foreign = store.history(other.id, 10, Some(id(1))).await;
    assert!(matches!(foreign, Err(StoreError::NoMarker(_))));
}

async fn history_keeps_its_newest_300_lines(store: Store) {
    let (mut node, other) = (bare_node(), bare_node());
    store.insert_node(&node).await.unwrap();
    store.insert_node(&other).await.unwrap();
    store.update_node(&other, &[line(&other, "kept")]).await.unwrap();
    for hundred in 0..4 {
        let lines: Vec<_> =
            (0..100).map(|n| line(&node, &format!("{}", 100 * hundred + n))).collect();
        node = store.update_node(&node, &lines).await.unwrap();
    }
    let lines = store.history(node.id, 1000, None).await.unwrap();
    let events: Vec<&str> = lines.iter().map(|line| line.event.as_str()).collect();
    assert_eq!((events.len(), events[0], events[299]), (300, "100", "399"));
    assert_eq!(store.history(other.id, 10, None).await.unwrap().len(), 1);
}

async fn deleting_a_node_deletes_all_its_records(store: Store) {
    let (node, other) = (named("one"), named("two"));
    for (n, node) in [(1, &node), (2, &other)] {
        store.insert_node(node).await.unwrap();
        store.insert_port(&port(node, n)).await.unwrap();
        store.save_boot(&boot(node)).await.unwrap();
        store.save_inspected(&inspected(node)).await.unwrap();
        store.update_node(node, &[line(node, "here")]).await.unwrap();
    }
    store.delete_node(&Node { version: 2, ..node.clone() }).await.unwrap();

    let left = async |node: &Node| {
        let id = node.id;
        (
            store.find_node(&NodeIdent::Id(id)).await.unwrap().is_some(),
            store.ports_of(id).await.unwrap().len(),
            store.find_boot(id).await.unwrap().is_some(),
            store.find_inspected(id).await.unwrap().is_some(),
            store.history(id, 10, None).await.unwrap().len(),
        )
    };
    assert_eq!(left(&node).await, (false, 0, false, false, 0));
    assert_eq!(left(&other).await, (true, 1, true, true, 1));
    // The name of the node and the address of its port can be used again.
    store.insert_node(&Node { name: node.name.clone(), ..bare_node() }).await.unwrap();
    store.insert_port(&port(&other, 1)).await.unwrap();
}
