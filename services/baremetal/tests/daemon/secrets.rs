//! Nodes with passwords, for the tests that both daemons pass.
#![expect(clippy::unwrap_used, reason = "a failed setup fails the test")]

use std::path::Path;
use std::sync::Arc;

use baremetal_core::{Driver, Node, NodeIdent, NodeUuid};
use baremetal_store::Store;
use contract::{Daemon, key_rotation, refused_starts};
use jiff::Timestamp;
use sealing::Keyring;
use secrecy::ExposeSecret;
use serde_json::json;

struct Baremetald;

impl Daemon for Baremetald {
    const PROGRAM: &'static str = env!("CARGO_BIN_EXE_baremetald");
    const DATABASE: &'static str = "baremetal.db";
    const EARLIER_KEYS: &'static str =
        include_str!("../../../baremetal-store/tests/fixtures/seal.keys");
    const PROGRESS: [&'static str; 2] = ["re-encrypted", "nodes"];
    type Records = Vec<(NodeUuid, String)>;

    async fn store_records(state: &Path, count: usize) -> Vec<(NodeUuid, String)> {
        let store = open(state).await;
        let mut known = Vec::new();
        for number in 0..count {
            let now = Timestamp::UNIX_EPOCH;
            let mut node = Node::new(NodeUuid::new_v4(), Driver::Redfish, now);
            let secret = format!("password {number}");
            node.driver_info.insert("redfish_password".to_owned(), json!(secret));
            store.insert_node(&node).await.unwrap();
            known.push((node.id, secret));
        }
        known
    }

    async fn check_records(state: &Path, records: &Vec<(NodeUuid, String)>) {
        let store = open(state).await;
        for (id, secret) in records {
            let node = store.find_node(&NodeIdent::Id(*id)).await.unwrap().unwrap();
            let opened = store.secrets().text(&node, "redfish_password").unwrap().unwrap();
            assert_eq!(opened.expose_secret(), secret);
        }
    }
}

/// Opens the daemon's store with the keys in the file, like another process.
async fn open(state: &Path) -> Store {
    let url = format!("sqlite://{}", state.join("baremetal.db").display());
    let store = Store::open(&url).await.unwrap();
    let known = store.known_keys().await.unwrap();
    let keys = Keyring::open(&state.join("seal.keys"), &known).unwrap();
    store.with_keys(Arc::new(keys)).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rotation_killed_at_any_point_loses_nothing_and_completes() {
    key_rotation::killed_at_any_point::<Baremetald>().await;
}

#[tokio::test]
async fn a_missing_key_file_is_not_replaced_while_secrets_need_it() {
    refused_starts::missing_key_file::<Baremetald>().await;
}

#[tokio::test]
async fn another_key_with_the_same_number_is_refused() {
    refused_starts::another_key_with_the_same_number::<Baremetald>().await;
}

#[tokio::test]
async fn a_key_file_that_others_can_read_is_refused() {
    refused_starts::readable_key_file::<Baremetald>().await;
}

#[tokio::test]
async fn a_damaged_database_is_refused_by_name() {
    refused_starts::damaged_database::<Baremetald>().await;
}
