//! Nodes that another service managed before, with everything that belongs to them.

use std::num::{NonZeroU32, NonZeroUsize};

use baremetal_core::{
    Allocation, AllocationState, AllocationUuid, HistoryEntry, HistoryUuid, InspectionReport, Node,
    NodeIdent, PortGroup, Stored, VolumeConnector, VolumeTarget,
};
use baremetal_store::{ImportEffect, ImportedNode, MOST_IMPORTED_HISTORY, Store, StoreError};
use newtype_uuid::GenericUuid;
use serde_json::json;
use uuid::Uuid;

use crate::machine::port;
use crate::scratch::{at, bare_node, on_both};

on_both! { Store:
    a_node_is_imported_with_everything_or_with_nothing
    a_check_leaves_nothing
    a_history_is_imported_with_its_ids_and_times
    a_failed_allocation_is_imported
    an_imported_allocation_counts_in_the_limit_of_its_project
}

/// A node that an allocation reserves, with one resource of every kind.
fn imported() -> ImportedNode {
    let id = AllocationUuid::new_v4();
    let instance = Some(id.into_untyped_uuid());
    let node = Node { allocation: Some(id), instance_uuid: instance, ..bare_node() };
    let group = PortGroup { node: node.id, ..PortGroup::default() };
    let group = Stored::new(Uuid::new_v4(), group, at(1));
    let mut first = port(&node, 1);
    first.portgroup = Some(group.id);
    let mut allocation = Allocation::new(id, at(2));
    allocation.node = Some(node.id);
    allocation.state = AllocationState::Active;
    let connector = VolumeConnector { node: node.id, ..VolumeConnector::default() };
    let target = VolumeTarget { node: node.id, ..VolumeTarget::default() };
    let (inventory, plugin_data) = (json!({"cpu": 4}), json!({}));
    let inspection = InspectionReport { node: node.id, at: at(3), inventory, plugin_data };
    ImportedNode {
        history: vec![event(&node, 0)],
        entry: HistoryEntry::changed(&node, &node, "imported".to_owned(), at(4)),
        portgroups: vec![group],
        ports: vec![first, port(&node, 2)],
        connectors: vec![Stored::new(Uuid::new_v4(), connector, at(1))],
        targets: vec![Stored::new(Uuid::new_v4(), target, at(1))],
        allocation: Some(allocation),
        inspection: Some(inspection),
        node,
    }
}

/// An entry of the other service.
fn event(node: &Node, seconds: i64) -> HistoryEntry {
    let event = HistoryEntry::failed(node, node, format!("event {seconds}"), at(seconds));
    let id = Some(HistoryUuid::new_v4());
    HistoryEntry { id, from: String::new(), to: "monitoring".to_owned(), ..event }
}

/// Whether the store has the node and each of its parts; the store has all of them or none.
async fn is_there(store: &Store, it: &ImportedNode) -> bool {
    let node = store.find_node(&NodeIdent::Id(it.node.id)).await.unwrap();
    let allocation = store.find_allocation(it.allocation.as_ref().unwrap().id).await.unwrap();
    let group = store.find_resource::<PortGroup>(it.portgroups[0].id).await.unwrap();
    let connector = store.find_resource::<VolumeConnector>(it.connectors[0].id).await.unwrap();
    let target = store.find_resource::<VolumeTarget>(it.targets[0].id).await.unwrap();
    let inspection = store.find_inspected(it.node.id).await.unwrap();
    let found = [
        node.is_some(),
        allocation.is_some(),
        group.is_some(),
        connector.is_some(),
        target.is_some(),
        inspection.is_some(),
        store.ports_of(it.node.id).await.unwrap().len() == 2,
    ];
    assert!(found.iter().all(|it| *it == found[0]), "{found:?}");
    found[0]
}

async fn a_node_is_imported_with_everything_or_with_nothing(store: Store) {
    let it = imported();
    store.import_node(&it, ImportEffect::Write).await.unwrap();
    assert!(is_there(&store, &it).await);
    let found = store.find_node(&NodeIdent::Id(it.node.id)).await.unwrap().unwrap();
    assert_eq!(found, it.node);
    // The ports have the addresses of the first node.
    let other = imported();
    let refused = store.import_node(&other, ImportEffect::Write).await;
    assert!(matches!(refused, Err(StoreError::Duplicate { .. })), "{refused:?}");
    let node = store.find_node(&NodeIdent::Id(other.node.id)).await.unwrap();
    assert!(node.is_none());
    let allocation = other.allocation.unwrap().id;
    assert_eq!(store.find_allocation(allocation).await.unwrap(), None);
}

async fn a_check_leaves_nothing(store: Store) {
    let it = imported();
    store.import_node(&it, ImportEffect::Check).await.unwrap();
    assert!(!is_there(&store, &it).await);
    store.import_node(&it, ImportEffect::Write).await.unwrap();
    let again = store.import_node(&it, ImportEffect::Check).await;
    assert!(matches!(again, Err(StoreError::Duplicate { .. })), "{again:?}");
    assert!(is_there(&store, &it).await, "a refused check deletes nothing");
}

async fn a_history_is_imported_with_its_ids_and_times(store: Store) {
    let mut it = imported();
    let most = i64::try_from(MOST_IMPORTED_HISTORY).unwrap();
    it.history = (0..most).map(|seconds| event(&it.node, seconds)).collect();
    store.import_node(&it, ImportEffect::Write).await.unwrap();
    let stored = store.history(it.node.id, 1000, None).await.unwrap();
    let (last, before) = stored.split_last().unwrap();
    assert_eq!(before, it.history);
    assert_eq!(last.event, "imported");

    let other = imported();
    let (ports, connectors, targets) = (Vec::new(), Vec::new(), Vec::new());
    let history = it.history[..1].to_vec();
    let other = ImportedNode { ports, connectors, targets, history, ..other };
    let refused = store.import_node(&other, ImportEffect::Write).await;
    let used = it.history[0].id.unwrap().to_string();
    assert!(
        matches!(&refused, Err(StoreError::Duplicate { field: "history", value }) if *value == used),
        "{refused:?}"
    );
    let node = store.find_node(&NodeIdent::Id(other.node.id)).await.unwrap();
    assert!(node.is_none());
}

async fn an_imported_allocation_counts_in_the_limit_of_its_project(store: Store) {
    let store = store.for_callers(NonZeroUsize::MAX, NonZeroU32::MIN);
    let of = |owner: Option<&str>| {
        let mut it = imported();
        (it.ports, it.connectors, it.targets) = (Vec::new(), Vec::new(), Vec::new());
        it.allocation.as_mut().unwrap().owner = owner.map(str::to_owned);
        it
    };
    store.import_node(&of(Some("a")), ImportEffect::Write).await.unwrap();
    let second = of(Some("a"));
    for effect in [ImportEffect::Check, ImportEffect::Write] {
        let refused = store.import_node(&second, effect).await.unwrap_err();
        let why = "allocations: the project uses 1 of its limit of 1";
        assert_eq!(refused.to_string(), why, "{effect:?}");
    }
    assert!(store.find_node(&NodeIdent::Id(second.node.id)).await.unwrap().is_none());
    for other in [Some("b"), None, None] {
        store.import_node(&of(other), ImportEffect::Write).await.unwrap();
    }
}

async fn a_failed_allocation_is_imported(store: Store) {
    let mut it = Allocation::new(AllocationUuid::new_v4(), at(1));
    it.state = AllocationState::Error;
    store.import_allocation(&it, ImportEffect::Check).await.unwrap();
    assert_eq!(store.find_allocation(it.id).await.unwrap(), None);
    store.import_allocation(&it, ImportEffect::Write).await.unwrap();
    assert_eq!(store.find_allocation(it.id).await.unwrap(), Some(it));
}
