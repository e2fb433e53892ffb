//! The settings of machines' firmware.

use baremetal_core::{BiosSetting, NewBiosSetting};
use baremetal_store::{Store, StoreError};
use hardware::BiosAttribute;

use crate::scratch::{at, bare_node, on_both};

on_both! { Store:
    settings_are_applied_and_reset
    settings_of_a_missing_node_are_refused
    deleting_a_node_deletes_its_settings
}

fn wanted(name: &str, value: &str) -> NewBiosSetting {
    let attribute =
        BiosAttribute { upper_bound: Some(9), read_only: Some(false), ..BiosAttribute::default() };
    NewBiosSetting { name: name.to_owned(), value: Some(value.to_owned()), attribute }
}

async fn settings_are_applied_and_reset(store: Store) {
    let [node, other] = [bare_node(), bare_node()];
    for node in [&node, &other] {
        store.insert_node(node).await.unwrap();
        let first = [wanted("c", "1"), wanted("a", "1"), wanted("B", "1")];
        store.apply_bios_settings(node.id, &first, at(1)).await.unwrap();
    }
    let second = [wanted("c", "2"), wanted("a", "1")];
    store.apply_bios_settings(node.id, &second, at(2)).await.unwrap();

    let stored = |name: &str, value: &str, updated_at| BiosSetting {
        name: name.to_owned(),
        value: Some(value.to_owned()),
        created_at: at(1),
        updated_at,
        attribute: wanted(name, value).attribute,
    };
    let want = [stored("a", "1", None), stored("c", "2", Some(at(2)))];
    assert_eq!(store.list_bios_settings(node.id).await.unwrap(), want);
    let found = store.find_bios_setting(node.id, "c").await.unwrap();
    assert_eq!(found, Some(stored("c", "2", Some(at(2)))));
    assert_eq!(store.find_bios_setting(node.id, "B").await.unwrap(), None);

    store.reset_bios_settings(node.id).await.unwrap();
    assert_eq!(store.list_bios_settings(node.id).await.unwrap(), []);
    // Upper case sorts first on both databases.
    let names = ["B", "a", "c"].map(|name| stored(name, "1", None));
    assert_eq!(store.list_bios_settings(other.id).await.unwrap(), names);
}

async fn settings_of_a_missing_node_are_refused(store: Store) {
    let missing = bare_node();
    let refused = store.apply_bios_settings(missing.id, &[wanted("a", "1")], at(1)).await;
    assert!(matches!(refused, Err(StoreError::NoOwner { owner: "node", .. })), "{refused:?}");
    store.reset_bios_settings(missing.id).await.unwrap();
}

async fn deleting_a_node_deletes_its_settings(store: Store) {
    let node = bare_node();
    store.insert_node(&node).await.unwrap();
    store.apply_bios_settings(node.id, &[wanted("a", "1")], at(1)).await.unwrap();
    store.delete_node(&node).await.unwrap();
    assert_eq!(store.list_bios_settings(node.id).await.unwrap(), []);
}
