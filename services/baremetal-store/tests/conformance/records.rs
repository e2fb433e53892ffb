//! Records that belong to no node: unknown machines, conductors and racks.

use baremetal_core::Discovery;
use baremetal_store::{PagePart, Store, StoreError};
use hardware::MacAddress;
use serde_json::json;

use crate::scratch::{at, on_both};

on_both! { Store:
    unknown_machines_are_recorded_once_each
    discoveries_are_bounded
    conductors_are_listed_with_their_last_sign_of_life
    a_rack_is_written_found_changed_and_deleted
}

fn mac(n: u16) -> MacAddress {
    let [high, low] = n.to_be_bytes();
    MacAddress::new([0x52, 0x54, 0, 0, high, low])
}

async fn unknown_machines_are_recorded_once_each(store: Store) {
    store.touch_discovery(mac(2), at(1)).await.unwrap();
    store.touch_discovery(mac(1), at(2)).await.unwrap();
    store.touch_discovery(mac(2), at(3)).await.unwrap();
    let noted = |n, first, last| Discovery {
        mac: mac(n),
        first_seen_at: at(first),
        last_seen_at: at(last),
        data: None,
    };
    assert_eq!(
        store.list_discoveries_part(1000, PagePart::whole()).await.unwrap().found,
        [noted(2, 1, 3), noted(1, 2, 2)]
    );

    let found = Discovery { data: Some(json!({ "cpu": 4 })), ..noted(1, 4, 4) };
    store.save_discovery(&found).await.unwrap();
    store.touch_discovery(mac(1), at(5)).await.unwrap();
    store.delete_discovery(mac(2)).await.unwrap();
    let want = Discovery { first_seen_at: at(2), last_seen_at: at(5), ..found };
    assert_eq!(store.list_discoveries_part(1000, PagePart::whole()).await.unwrap().found, [want]);
}

async fn discoveries_are_bounded(store: Store) {
    let touches = (0..1030).map(|n| {
        let store = store.clone();
        tokio::spawn(async move { store.touch_discovery(mac(n), at(n.into())).await.unwrap() })
    });
    for touch in touches.collect::<Vec<_>>() {
        touch.await.unwrap();
    }
    store.touch_discovery(mac(4), at(9000)).await.unwrap();
    let known = store.list_discoveries_part(2000, PagePart::whole()).await.unwrap().found;
    let is_known = |n| known.iter().any(|found| found.mac == mac(n));
    assert_eq!(known.len(), 1024);
    assert!(is_known(1029) && is_known(4), "the last that asked are known");
}

async fn conductors_are_listed_with_their_last_sign_of_life(store: Store) {
    store.touch_conductor("b.example", at(1)).await.unwrap();
    store.touch_conductor("a.example", at(2)).await.unwrap();
    store.touch_conductor("b.example", at(3)).await.unwrap();
    let want = [("a.example".to_owned(), at(2)), ("b.example".to_owned(), at(3))];
    assert_eq!(store.list_conductors().await.unwrap(), want);
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
