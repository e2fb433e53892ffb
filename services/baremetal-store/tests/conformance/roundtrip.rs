//! Property tests: every node, port, runbook and inspection rule is read back as it was written.

use baremetal_core::{
    Chassis, InspectionRule, Maintenance, Node, NodeFilter, NodeIdent, NodeSort, Page, PortGroup,
    Runbook, Stored,
};
use baremetal_store::{NodeDetail, PagePart, Store};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use tokio::runtime::Handle;
use tokio::task::block_in_place;
use uuid::Uuid;

use crate::arbitrary;
use crate::scratch::{at, bare_node, on_both};
use crate::seals::keyring;

on_both! { Store:
    any_node_is_read_back_as_it_was_written
    any_port_is_read_back_as_it_was_written
    any_runbook_is_read_back_as_it_was_written
    any_inspection_rule_is_read_back_as_it_was_written
}

/// Calls `check` with many values.
fn for_any<S: Strategy>(values: S, check: impl AsyncFn(S::Value)) {
    // The panic message contains the smallest failing value, so no regression file is needed.
    let config = Config { cases: 100, failure_persistence: None, ..Config::default() };
    let tried = TestRunner::new(config).run(&values, |value| {
        block_in_place(|| Handle::current().block_on(check(value)));
        Ok(())
    });
    if let Err(error) = tried {
        panic!("{error}");
    }
}

async fn any_node_is_read_back_as_it_was_written(store: Store) {
    for_any((arbitrary::node(), arbitrary::node()), async |(first, second)| {
        for id in [first.chassis, second.chassis].into_iter().flatten() {
            let chassis = Stored::new(id, Chassis::default(), at(0));
            store.insert_resource(&chassis).await.unwrap();
        }
        let ident = NodeIdent::Id(first.id);
        store.insert_node(&first).await.unwrap();
        let read = store.find_node(&ident).await.unwrap().unwrap();
        assert_eq!(read, first);

        let changed = Node { id: first.id, version: read.version, ..second };
        let written = store.update_node(&changed, &[]).await.unwrap();
        assert_eq!(written, Node { version: 2, ..changed });
        assert_eq!(store.find_node(&ident).await.unwrap(), Some(written.clone()));
        assert_eq!(of_summary(&listed(&store, NodeDetail::Summary).await), of_summary(&written));
        assert_eq!(listed(&store, NodeDetail::Whole).await, written);
        store.delete_node(&written).await.unwrap();
    });
}

/// The only node.
async fn listed(store: &Store, detail: NodeDetail) -> Node {
    let filter = NodeFilter { include_children: true, ..NodeFilter::default() };
    let page = Page { limit: 9, marker: None, sort: NodeSort::default(), descending: false };
    let found = store.list_nodes_part(&filter, &page, PagePart::whole(), detail).await.unwrap();
    found.found.into_iter().next().unwrap()
}

/// The fields that a summary has. A column has U+FFFD where the document has U+0000, which PostgreSQL cannot store.
fn of_summary(node: &Node) -> Node {
    let Node { id, version, updated_at, power_state, name, instance_uuid, .. } = node.clone();
    let Node { provision_state, maintenance, owner, lessee, .. } = node.clone();
    let maintenance = maintenance.map(|_| Maintenance::requested(None));
    let column = |text: Option<String>| text.map(|text| text.replace('\0', "\u{fffd}"));
    let (owner, lessee) = (column(owner), column(lessee));
    let new = Node { version, updated_at, power_state, name, instance_uuid, ..bare_node() };
    Node { id, provision_state, maintenance, owner, lessee, ..new }
}

async fn any_port_is_read_back_as_it_was_written(store: Store) {
    let node = bare_node();
    store.insert_node(&node).await.unwrap();
    for_any(arbitrary::port(node.id), async |port| {
        if let Some(id) = port.portgroup {
            let group = PortGroup { node: node.id, ..PortGroup::default() };
            store.insert_resource(&Stored::new(id, group, at(0))).await.unwrap();
        }
        store.insert_port(&port).await.unwrap();
        assert_eq!(store.find_port(port.id).await.unwrap(), Some(port.clone()));
        assert_eq!(store.find_port_by_address(port.address).await.unwrap(), Some(port.clone()));
        store.delete_port(&port).await.unwrap();
    });
}

async fn any_runbook_is_read_back_as_it_was_written(store: Store) {
    for_any((arbitrary::runbook(), arbitrary::runbook()), async |(first, second)| {
        let it = Stored::new(Uuid::new_v4(), first, at(0));
        store.insert_resource(&it).await.unwrap();
        assert_eq!(store.find_resource::<Runbook>(it.id).await.unwrap().as_ref(), Some(&it));
        let written = store.update_resource(&Stored { content: second, ..it }).await.unwrap();
        let read = store.find_resource::<Runbook>(written.id).await.unwrap();
        assert_eq!(read.as_ref(), Some(&written));
        assert!(store.delete_resource(&written).await.unwrap());
    });
}

/// The rule is written in the clear by one store, and sealed by the other.
async fn any_inspection_rule_is_read_back_as_it_was_written(store: Store) {
    let folder = tempfile::tempdir().unwrap();
    let sealing = store.clone().with_keys(keyring(folder.path())).await.unwrap();
    let rule = arbitrary::inspection_rule;
    for_any((rule(), rule(), any::<bool>()), async |(first, second, is_sealed)| {
        let store = if is_sealed { &sealing } else { &store };
        let read = async |id| {
            let found = store.find_resource::<InspectionRule>(id).await.unwrap().unwrap();
            store.secrets().with_rule(&found).unwrap()
        };
        let it = Stored::new(Uuid::new_v4(), first, at(0));
        store.insert_resource(&it).await.unwrap();
        assert_eq!(read(it.id).await, it);
        let written = store.update_resource(&Stored { content: second, ..it }).await.unwrap();
        assert_eq!(read(written.id).await, written);
        assert!(store.delete_resource(&written).await.unwrap());
    });
}
