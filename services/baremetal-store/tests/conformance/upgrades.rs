//! Programs of two versions on one database: what a newer program has written survives, and programs start beside each other.

use std::sync::Arc;

use baremetal_core::{
    Allocation, DeployTemplate, Node, NodeFilter, NodeIdent, NodeSort, Page, Port, PortFilter,
    PortSort, State,
};
use baremetal_store::{SCHEMA, Store, StoreError};
use database::scratch::{Scratch, count, run_script};
use database::{Database, Schema};
use sealing::{Keyring, SealingKeys};
use serde_json::json;

use crate::scratch::{named, open};
use crate::versions::{FIXTURES, KEYS};

/// The tables whose documents are read, changed and written again.
const TABLES: [&str; 5] = ["nodes", "ports", "allocations", "resources", "racks"];

/// The fields that only a newer program knows, in parts of the documents of nodes and racks.
const NESTED: [(&str, &str); 5] = [
    ("nodes", r#""work":{"#),
    ("nodes", r#""lending":{"#),
    ("nodes", r#""lease":{"#),
    ("nodes", r#""hypervisor":{"#),
    ("racks", r#""goal":{"#),
];

#[tokio::test]
async fn fields_of_a_newer_program_survive_every_write_on_sqlite() {
    fields_survive(&Scratch::sqlite()).await;
}

#[tokio::test]
async fn fields_of_a_newer_program_survive_every_write_on_postgres() {
    let Some(scratch) = Scratch::postgres().await else { return };
    fields_survive(&scratch).await;
}

async fn fields_survive(scratch: &Scratch) {
    let newer = written_by_a_newer_program(scratch).await;
    let mut before = Vec::new();
    for table in TABLES {
        before.push(count_unknown(&newer, table).await);
    }
    assert_eq!(before, [3 + 4, 2, 2, 6, 2]);

    let store = Store::open(&scratch.url).await.unwrap();
    let keys: Arc<Keyring> = SealingKeys::parse(KEYS).unwrap().into();
    let store = store.with_keys(keys).await.unwrap();
    // The second time the rows were written by this program last.
    for change in ["first", "second"] {
        change_all(&store, change).await;
    }
    let mut after = Vec::new();
    for table in TABLES {
        after.push(count_unknown(&newer, table).await);
    }
    assert_eq!(after, before);
    for (table, changed) in TABLES.into_iter().zip([3, 2, 2, 1, 1]) {
        let sql = format!("SELECT count(*) FROM {table} WHERE document LIKE '%second%'");
        assert_eq!(count(&newer, sql).await, changed, "{table}");
    }
}

/// Fills the database with the rows of this version, as a newer program writes them.
async fn written_by_a_newer_program(scratch: &Scratch) -> Database {
    const RACK: &str = r#"UPDATE racks SET document =
        '{"goal":{"reach":"installed","profile":"kvm","limit":1,"asked_at":"2023-11-14T22:13:20Z"}}'"#;
    scratch.fill(SCHEMA, FIXTURES[SCHEMA.len() - 1]).await;
    let newer = Database::open(&scratch.url, SCHEMA).await.unwrap();
    run_script(&newer, RACK.to_owned()).await;
    for (table, part) in NESTED {
        let sql = format!(
            "UPDATE {table} SET document = replace(document, '{part}', '{part}\"later\":1,')"
        );
        run_script(&newer, sql).await;
    }
    for table in TABLES {
        let sql = format!(
            "UPDATE {table} SET written_by = 9000000000, \
             document = substr(document, 1, length(document) - 1) || ',\"later\":1}}'"
        );
        run_script(&newer, sql).await;
    }
    newer
}

/// Changes records of each table, as this version does.
async fn change_all(store: &Store, change: &str) {
    let page = Page { limit: 100, marker: None, sort: NodeSort::Name, descending: false };
    for node in store.list_nodes(&NodeFilter::default(), &page).await.unwrap() {
        let node = Node { description: Some(change.to_owned()), ..node };
        store.update_node(&node, &[]).await.unwrap();
    }
    let page = Page { limit: 100, marker: None, sort: PortSort::Address, descending: false };
    for port in store.list_ports(&PortFilter::default(), &page).await.unwrap() {
        let port = Port { description: Some(change.to_owned()), ..port };
        store.update_port(&port).await.unwrap();
    }
    let page = Page { limit: 100, marker: None, sort: Default::default(), descending: false };
    for allocation in store.list_allocations(&Default::default(), &page).await.unwrap() {
        let allocation = Allocation { last_error: Some(change.to_owned()), ..allocation };
        store.update_allocation(&allocation).await.unwrap();
    }
    let template = store.find_resource_by_name::<DeployTemplate>("CUSTOM_RAID").await.unwrap();
    let mut template = template.unwrap();
    template.content.extra = [("change".to_owned(), change.into())].into_iter().collect();
    store.update_resource(&template).await.unwrap();
    let (_, version) = store.find_rack("r1").await.unwrap().unwrap();
    let goal = json!({"reach": "installed", "instance_info": {}, "profile": "kvm", "limit": 2, "asked_at": "2023-11-14T22:13:20Z"});
    let rack = json!({"description": change, "goal": goal});
    store.update_rack("r1", &rack, version).await.unwrap();
}

/// Counts the fields in the documents of a table that only the newer program knows.
async fn count_unknown(database: &Database, table: &str) -> i64 {
    let sql = format!(
        "SELECT CAST(sum((length(document) - length(replace(document, '\"later\":1', ''))) / 9) AS BIGINT) \
         FROM {table}"
    );
    count(database, sql).await
}

#[tokio::test]
async fn a_node_with_words_of_a_newer_program_stops_no_other_on_sqlite() {
    unreadable_node_stops_no_other(&Scratch::sqlite()).await;
}

#[tokio::test]
async fn a_node_with_words_of_a_newer_program_stops_no_other_on_postgres() {
    let Some(scratch) = Scratch::postgres().await else { return };
    unreadable_node_stops_no_other(&scratch).await;
}

async fn unreadable_node_stops_no_other(scratch: &Scratch) {
    const FLIES: &str = r#"UPDATE nodes SET provision_state = 'flying',
        document = replace(document, '"provision_state":"enroll"', '"provision_state":"flying"') WHERE name = 'flies'"#;
    const STANDS: &str = r#"UPDATE nodes SET provision_state = 'manageable',
        document = replace(document, '"provision_state":"enroll"', '"provision_state":"manageable"') WHERE name = 'stands'"#;
    let store = open(scratch).await;
    let (flies, stands) = (named("flies"), named("stands"));
    store.insert_node(&flies).await.unwrap();
    store.insert_node(&stands).await.unwrap();
    let newer = Database::open(&scratch.url, SCHEMA).await.unwrap();
    run_script(&newer, FLIES.to_owned()).await;
    run_script(&newer, STANDS.to_owned()).await;
    // A turn of the node fails here, before it does anything.
    let read = store.find_node(&NodeIdent::Id(flies.id)).await;
    assert!(matches!(read, Err(StoreError::Corrupt { .. })), "{read:?}");
    let (swept, _) = store.sweep_page(0, 9).await.unwrap();
    let mut swept: Vec<_> = swept.into_iter().map(|it| it.id).collect();
    swept.sort();
    let mut both = vec![flies.id, stands.id];
    both.sort();
    assert_eq!(swept, both, "the list of what the sweep looks at");
    let read = store.find_node(&NodeIdent::Id(stands.id)).await.unwrap().unwrap();
    assert_eq!(read.provision_state, State::Manageable);
}

/// The schema of the next version.
fn next(script: &'static str) -> Schema {
    let mut scripts = SCHEMA.to_vec();
    scripts.push(script);
    scripts.leak()
}

#[tokio::test]
async fn this_version_starts_beside_the_next_one_and_after_it() {
    let mut scratches = vec![Scratch::sqlite()];
    scratches.extend(Scratch::postgres().await);
    for scratch in scratches {
        let expanded = next("ALTER TABLE nodes ADD COLUMN later BIGINT;");
        let newer = Database::open(&scratch.url, expanded).await.unwrap();
        let store = open(&scratch).await;
        store.insert_node(&named("n1")).await.unwrap();
        let (_, schema) = store.schema().await.unwrap();
        assert_eq!(schema.found, schema.known + 1);
        drop(newer);

        let narrowed =
            next("-- needs schema 999 of 9.0.0\nALTER TABLE nodes ADD COLUMN later2 BIGINT;");
        let mut both = expanded.to_vec();
        both.extend(narrowed.last());
        let newer = Database::open(&scratch.url, both.leak()).await.unwrap();
        let refused = Store::open(&scratch.url).await.err().unwrap();
        assert!(refused.to_string().contains("needs version 9.0.0 or newer"), "{refused}");
        assert_eq!(count(&newer, "SELECT count(*) FROM nodes".to_owned()).await, 1);
    }
}
