//! Nodes with passwords, for the tests that both daemons pass.
#![expect(clippy::unwrap_used, reason = "a failed setup fails the test")]

use std::path::Path;
use std::sync::Arc;

use baremetal_core::{Driver, Node, NodeIdent, NodeUuid};
use baremetal_store::Store;
use contract::Daemon;
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

contract::daemon_tests!(Baremetald);
