//! Lists read in parts: the parts together are the whole list, and a part ends at its number of rows or its bytes.

use std::collections::BTreeMap;

use cluster_core::{
    Cluster, Event, Key, LedgerEntry, LedgerState, LedgerUuid, MemberName, Page, VmSort,
};
use cluster_store::{Store, VmScope};
use database::scratch::read_in_parts;

use crate::samples::{at, event, on_both, stored};
use crate::vms::vm;

on_both! { Store:
    events_are_read_in_parts
    the_ledger_is_read_in_parts
    the_servers_of_some_members_are_found
    vms_are_read_in_parts
}

async fn events_are_read_in_parts(store: Store) {
    let (_, cluster) = stored(&store, "p", "one").await;
    let message = "x".repeat(100);
    let reported = |n| Event { message: message.clone(), ..event(&cluster, &format!("E{n}")) };
    store.append_events(cluster.id, &(0..5).map(reported).collect::<Vec<_>>()).await.unwrap();
    let read = async |part| store.events_part_of(cluster.id, 4, None, part).await;
    let (all, lengths) = read_in_parts(250, read).await;
    assert_eq!(all, store.events_of(cluster.id, 10, None).await.unwrap());
    // The first event came with the cluster, and is short.
    assert_eq!((all.len(), lengths), (6, vec![3, 2, 1]));
    let read = async |part| store.events_part_of(cluster.id, 4, all[1].id, part).await;
    assert_eq!(read_in_parts(250, read).await, (all[2..].to_vec(), vec![2, 2]));
}

async fn the_ledger_is_read_in_parts(store: Store) {
    let (_, cluster) = stored(&store, "p", "one").await;
    let entry = |(name, seconds): (&str, i64)| LedgerEntry {
        id: LedgerUuid::new_v4(),
        of: cluster.id.into(),
        kind: "volume".to_owned(),
        name: name.to_owned(),
        cloud_id: None,
        state: LedgerState::Intended,
        created_at: at(seconds),
        updated_at: None,
    };
    let entries = [("c", 1), ("a", 2), ("b", 2), ("d", 2), ("e", 3)].map(entry);
    store.save_ledger(&entries).await.unwrap();
    let read = async |part| store.ledger_part_of(cluster.id, 2, part).await;
    assert_eq!(read_in_parts(1000, read).await, (entries.to_vec(), vec![2, 2, 1]));
}

async fn the_servers_of_some_members_are_found(store: Store) {
    let (_, cluster) = stored(&store, "p", "one").await;
    let (_, other) = stored(&store, "p", "two").await;
    let machine = |number| MemberName { group: "default-worker".parse().unwrap(), number };
    let line = |of: &Cluster, key: Key, id: Option<&str>| LedgerEntry {
        id: LedgerUuid::new_v4(),
        of: of.id.into(),
        kind: key.to_string(),
        name: format!("{}-{key}", of.id),
        cloud_id: id.map(str::to_owned),
        state: LedgerState::Intended,
        created_at: at(1),
        updated_at: None,
    };
    let lines = [
        line(&cluster, Key::Server(machine(0)), Some("s0")),
        line(&cluster, Key::Server(machine(1)), None),
        line(&cluster, Key::Server(machine(2)), Some("s2")),
        line(&cluster, Key::Port(machine(0)), Some("p0")),
        line(&other, Key::Server(machine(0)), Some("t0")),
    ];
    store.save_ledger(&lines).await.unwrap();
    let found =
        store.servers_of(cluster.id, vec![machine(0), machine(1), machine(3)]).await.unwrap();
    assert_eq!(found, BTreeMap::from([(machine(0), "s0".to_owned())]));
    assert_eq!(store.servers_of(cluster.id, Vec::new()).await.unwrap(), BTreeMap::new());
}

async fn vms_are_read_in_parts(store: Store) {
    for name in ["c", "a", "e", "b", "d"] {
        store.insert_vm(&vm("p", "u", name), None, &[], None).await.unwrap();
    }
    let page = Page { limit: 2, marker: None, sort: VmSort::Name, descending: false };
    let read = async |part| store.list_vms_part(&VmScope::All, None, &page, part).await;
    let (all, lengths) = read_in_parts(100_000, read).await;
    let names: Vec<_> = all.iter().map(|vm| vm.name.as_str()).collect();
    assert_eq!((names, lengths), (vec!["a", "b", "c", "d", "e"], vec![2, 2, 1]));
}
