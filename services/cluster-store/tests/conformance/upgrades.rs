//! Programs of two versions on one database: what a newer program has written survives the writes of this one.

use cluster_core::{Cluster, ClusterSort, NodeGroup, Page, Template, TemplateSort, Vm, VmSort};
use cluster_store::{
    ClusterChange, PagePart, SCHEMA, Scope, SnapshotChange, Store, VmChange, VmScope,
};
use database::Database;
use database::scratch::{Scratch, count, run_script};

use crate::samples::at;
use crate::versions::FIXTURES;

/// The tables whose documents are read, changed and written again, with a part of the document that gets a further field.
const TABLES: [(&str, &str); 6] = [
    ("templates", r#""blueprint":{"#),
    ("clusters", r#""blueprint":{"#),
    ("node_groups", r#""labels_compared":{"#),
    ("vms", r#""flavor":{"#),
    ("snapshots", r#"{"id":"#),
    ("drains", r#"{"id":"#),
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
    let newer = Database::open(&scratch.url, SCHEMA).await.unwrap();
    run_script(&newer, FIXTURES[SCHEMA.len() - 1].to_owned()).await;
    let store = Store::open(&scratch.url).await.unwrap();
    // A newer program writes no field by its former name, as some are in the fixture.
    change_all(&store, 75).await;
    let mut before = Vec::new();
    for (table, part) in TABLES {
        let with_more = part.replacen('{', "{\"later\":1,", 1);
        let sql = format!(
            "UPDATE {table} SET written_by = 9000000000, document = \
             replace(substr(document, 1, length(document) - 1) || ',\"also\":\"later\"}}', '{part}', '{with_more}');"
        );
        run_script(&newer, sql).await;
        before.push(count_unknown(&newer, table).await);
    }
    assert_eq!(before, [2; 6]);

    // The second time the rows were written by this program last.
    for seconds in [76, 77] {
        change_all(&store, seconds).await;
    }
    for (table, _) in TABLES {
        assert_eq!(count_unknown(&newer, table).await, 2, "{table}");
    }
    for table in ["templates", "clusters", "node_groups", "vms"] {
        let sql = format!(
            "SELECT count(*) FROM {table} WHERE document LIKE '%\"updated_at\":\"2023-11-14T22:14:37Z\"%'"
        );
        assert_eq!(count(&newer, sql).await, 1, "{table}");
    }
}

#[tokio::test]
async fn what_an_older_program_cannot_do_waits_until_its_last_conductor_has_ended() {
    assert!(Store::open("sqlite::memory:").await.unwrap().is_upgraded());
    let Some(scratch) = Scratch::postgres().await else { return };
    let older = Database::open(&scratch.url, &SCHEMA[..14]).await.unwrap();
    run_script(&older, FIXTURES[13].to_owned()).await;
    run_script(&older, "UPDATE conductors SET alive_until = 9000000000000000;".to_owned()).await;
    let store = Store::open(&scratch.url).await.unwrap();
    assert!(!store.is_upgraded());
    store.conductors().finish_upgrade().await.unwrap();
    assert!(!store.is_upgraded());
    run_script(&older, "DELETE FROM conductors;".to_owned()).await;
    store.conductors().finish_upgrade().await.unwrap();
    assert!(store.is_upgraded());
}

/// Changes a record of each table, as this version does.
async fn change_all(store: &Store, seconds: i64) {
    let updated_at = Some(at(seconds));
    let page = Page { limit: 9, marker: None, sort: TemplateSort::Name, descending: false };
    for template in store.list_templates(&Scope::All, &page).await.unwrap() {
        store.update_template(&Template { updated_at, ..template }).await.unwrap();
    }
    let page = Page { limit: 9, marker: None, sort: ClusterSort::Name, descending: false };
    for cluster in store.list_clusters(&Scope::All, &page).await.unwrap() {
        let groups = store.groups_of(cluster.id).await.unwrap();
        let changed = groups.into_iter().map(|group| NodeGroup { updated_at, ..group }).collect();
        let change = ClusterChange::of(Cluster { updated_at, ..cluster });
        store.change_cluster(&ClusterChange { changed, ..change }).await.unwrap();
    }
    let page = Page { limit: 9, marker: None, sort: VmSort::Name, descending: false };
    let vms = store.list_vms_part(&VmScope::All, None, &page, PagePart::whole()).await.unwrap();
    for vm in vms.found {
        let (of, whole) = (Some(vm.id), PagePart::whole());
        let snapshots = store.list_snapshots_part(&VmScope::All, of, &page, whole).await.unwrap();
        for snapshot in snapshots.found {
            let change = SnapshotChange { snapshot, events: Vec::new() };
            store.change_snapshot(&change).await.unwrap();
        }
        store.change_vm(&VmChange::of(Vm { updated_at, ..vm })).await.unwrap();
    }
    store.end_drain(&"host-1".parse().unwrap()).await.unwrap().unwrap();
}

/// Counts the fields in the documents of a table that only the newer program knows.
async fn count_unknown(database: &Database, table: &str) -> i64 {
    let sql = format!(
        "SELECT CAST(sum((length(document) - length(replace(document, '\"later\"', ''))) / 7) AS BIGINT) \
         FROM {table}"
    );
    count(database, sql).await
}
