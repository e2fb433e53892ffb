//! Lists read in parts: the parts together are the whole list, and a part ends at its number of rows or its bytes.

use baremetal_core::{Discovery, DiscoveryId, HistoryEntry, Node};
use baremetal_store::Store;
use database::scratch::read_in_parts;
use hardware::MacAddress;
use serde_json::json;

use crate::scratch::{at, bare_node, on_both};

on_both! { Store:
    racks_are_read_in_parts
    discoveries_are_read_in_parts
    history_is_read_in_parts
    shards_are_read_in_parts
}

async fn racks_are_read_in_parts(store: Store) {
    for name in ["c", "a", "e", "b", "d"] {
        store.insert_rack(name, &json!({"notes": "x".repeat(100)})).await.unwrap();
    }
    let (all, lengths) =
        read_in_parts(1000, async |part| store.list_racks_part(2, part).await).await;
    let names: Vec<_> = all.iter().map(|(name, ..)| name.as_str()).collect();
    assert_eq!((names, lengths), (vec!["a", "b", "c", "d", "e"], vec![2, 2, 1]));
    // A row that is larger than a part is a part.
    let (_, lengths) = read_in_parts(10, async |part| store.list_racks_part(4, part).await).await;
    assert_eq!(lengths, [1; 5]);
}

async fn discoveries_are_read_in_parts(store: Store) {
    let found = |number: u8, seconds, data: usize| Discovery {
        id: DiscoveryId::Machine(MacAddress::new([0x52, 0x54, 0, 0, 0, number])),
        first_seen_at: at(seconds),
        last_seen_at: at(9),
        data: (data > 0).then(|| json!("x".repeat(data))),
        node: None,
    };
    // Two machines were first seen at the same time.
    let all = [found(3, 1, 0), found(2, 2, 500), found(4, 2, 50), found(1, 3, 50), found(5, 4, 0)];
    for one in &all {
        store.save_discovery(one).await.unwrap();
    }
    let read = async |part| store.list_discoveries_part(3, part).await;
    assert_eq!(read_in_parts(200, read).await, (all.to_vec(), vec![1, 1, 3, 0]));
    let read = async |part| store.list_discoveries_part(3, part).await;
    assert_eq!(read_in_parts(10_000, read).await, (all.to_vec(), vec![3, 2]));
}

async fn history_is_read_in_parts(store: Store) {
    let node = bare_node();
    store.insert_node(&node).await.unwrap();
    let entry = |number| HistoryEntry::changed(&node, &node, format!("{number:0100}"), at(number));
    let entries: Vec<HistoryEntry> = (0..5).map(entry).collect();
    store.update_node(&node, &entries).await.unwrap();
    let read = async |part| store.history_part(node.id, 4, None, part).await;
    let (all, lengths) = read_in_parts(250, read).await;
    assert_eq!(all, store.history(node.id, 10, None).await.unwrap());
    assert_eq!((all.len(), lengths), (5, vec![2, 2, 1]));
    let read = async |part| store.history_part(node.id, 4, all[1].id, part).await;
    assert_eq!(read_in_parts(250, read).await, (all[2..].to_vec(), vec![2, 1]));
}

async fn shards_are_read_in_parts(store: Store) {
    for shard in [None, Some("b"), Some("a"), Some("b"), None, Some("c")] {
        let node = Node { shard: shard.map(str::to_owned), ..bare_node() };
        store.insert_node(&node).await.unwrap();
    }
    let (all, lengths) = read_in_parts(1000, async |part| store.shards_part(2, part).await).await;
    let named = |name: &str, count| (Some(name.to_owned()), count);
    assert_eq!(all, [(None, 2), named("a", 1), named("b", 2), named("c", 1)]);
    assert_eq!(lengths, [3, 1]);
}
