//! Opening a database: a new one, an existing one, and databases that cannot be opened.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use baremetal_core::NodeIdent;
use baremetal_store::{Store, StoreError};
use sqlx::{Connection as _, PgConnection};

use crate::machine::port;
use crate::scratch::{Scratch, named, open};

#[tokio::test]
async fn a_new_file_is_accessible_to_its_owner_only() {
    let scratch = Scratch::sqlite();
    let store = open(&scratch).await;
    store.insert_node(&named("n1")).await.unwrap();
    let path = PathBuf::from(scratch.url.trim_start_matches("sqlite://"));
    let mut files = 0;
    for file in std::fs::read_dir(path.parent().unwrap()).unwrap() {
        let file = file.unwrap();
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{file:?}");
        files += 1;
    }
    assert!(files >= 2, "the file and its journal");
}

#[tokio::test]
async fn a_database_in_memory_works() {
    let store = Store::open("sqlite::memory:").await.unwrap();
    let node = named("n1");
    store.insert_node(&node).await.unwrap();
    let again = store.clone().find_node(&NodeIdent::Id(node.id)).await.unwrap();
    assert_eq!(again, Some(node.clone()));
    assert!(matches!(store.insert_node(&node).await, Err(StoreError::Duplicate { .. })));
    assert_eq!(Store::open("sqlite::memory:").await.unwrap().count_nodes().await.unwrap(), 0);
}

#[tokio::test]
async fn a_reopened_database_has_its_records_on_sqlite() {
    reopen(Scratch::sqlite()).await;
}

#[tokio::test]
async fn a_reopened_database_has_its_records_on_postgres() {
    let Some(scratch) = Scratch::postgres().await else { return };
    reopen(scratch).await;
}

async fn reopen(scratch: Scratch) {
    let node = named("n1");
    open(&scratch).await.insert_node(&node).await.unwrap();
    let again = open(&scratch).await;
    assert_eq!(again.find_node(&NodeIdent::Id(node.id)).await.unwrap(), Some(node));
}

/// Returns a SQLite file with nodes and ports and an empty write-ahead log, and a connection that ignores foreign keys.
async fn filled() -> (Scratch, PathBuf, rusqlite::Connection) {
    let scratch = Scratch::sqlite();
    let store = open(&scratch).await;
    for number in 0..50 {
        let node = named(&format!("n{number}"));
        store.insert_node(&node).await.unwrap();
        store.insert_port(&port(&node, number)).await.unwrap();
    }
    drop(store);
    let (path, connection) = beside(&scratch);
    connection.execute_batch("PRAGMA foreign_keys = OFF; PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    (scratch, path, connection)
}

/// Returns the SQLite file, and a connection that bypasses the store.
fn beside(scratch: &Scratch) -> (PathBuf, rusqlite::Connection) {
    let path = PathBuf::from(scratch.url.trim_start_matches("sqlite://"));
    let connection = rusqlite::Connection::open(&path).unwrap();
    (path, connection)
}

/// Asserts that opening and checking the file both fail as `Damaged`, with a message that names the file and the remedy.
async fn is_refused_as_damaged(scratch: &Scratch, path: &Path, found: &str) {
    let opened = Store::open(&scratch.url).await.err();
    for refused in [opened, Store::check(&scratch.url).await.err()] {
        let refused = refused.expect("it is taken for whole");
        assert!(matches!(refused, StoreError::Damaged { .. }), "{refused:?}");
        let said = refused.to_string();
        for word in [&path.display().to_string(), found, "backup", ".recover"] {
            assert!(said.contains(word), "{word}: {said}");
        }
    }
}

#[tokio::test]
async fn a_file_with_a_spoiled_page_is_refused_by_name() {
    let (scratch, path, connection) = filled().await;
    Store::check(&scratch.url).await.unwrap();
    // The page belongs to an index, which opening without a check would not read.
    let root = "SELECT rootpage FROM sqlite_schema WHERE name = 'nodes_rack'";
    let number = |sql| connection.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
    let (root, size) = (number(root), number("PRAGMA page_size"));
    connection.close().unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    let begin = usize::try_from((root - 1) * size).unwrap();
    bytes[begin..begin + usize::try_from(size).unwrap()].fill(0xa5);
    std::fs::write(&path, &bytes).unwrap();
    is_refused_as_damaged(&scratch, &path, "").await;
    // The check has not changed the file.
    assert_eq!(std::fs::read(&path).unwrap(), bytes);
}

#[tokio::test]
async fn a_file_that_was_cut_short_is_refused_by_name() {
    let (scratch, path, connection) = filled().await;
    connection.close().unwrap();
    let length = std::fs::metadata(&path).unwrap().len();
    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.set_len(length / 2).unwrap();
    is_refused_as_damaged(&scratch, &path, "malformed").await;
}

#[tokio::test]
async fn a_file_that_is_no_database_is_refused_by_name() {
    let (scratch, path, connection) = filled().await;
    connection.close().unwrap();
    std::fs::write(&path, "this is a letter\n".repeat(1000)).unwrap();
    is_refused_as_damaged(&scratch, &path, "not a database").await;
}

#[tokio::test]
async fn a_file_with_an_orphaned_row_is_refused_by_name() {
    let (scratch, path, connection) = filled().await;
    connection.execute_batch("DELETE FROM nodes WHERE name = 'n7'").unwrap();
    connection.close().unwrap();
    is_refused_as_damaged(&scratch, &path, "a row of ports refers to a row of nodes").await;
}

#[tokio::test]
async fn a_newer_schema_is_refused_on_sqlite() {
    let scratch = Scratch::sqlite();
    open(&scratch).await;
    beside(&scratch).1.execute_batch(FROM_THE_FUTURE).unwrap();
    refuses_the_future(&scratch).await;
}

#[tokio::test]
async fn a_newer_schema_is_refused_on_postgres() {
    let Some(scratch) = Scratch::postgres().await else { return };
    open(&scratch).await;
    let mut connection = PgConnection::connect(&scratch.url).await.unwrap();
    sqlx::query(FROM_THE_FUTURE).execute(&mut connection).await.unwrap();
    refuses_the_future(&scratch).await;
}

const FROM_THE_FUTURE: &str = "INSERT INTO schema_needs (version, program) VALUES (999, '9.0.0')";

async fn refuses_the_future(scratch: &Scratch) {
    let refused = Store::open(&scratch.url).await.err().unwrap();
    assert!(matches!(refused, StoreError::NewerSchema { known: 1.., .. }), "{refused:?}");
    assert!(refused.to_string().contains("needs version 9.0.0 or newer"), "{refused}");
}

#[tokio::test]
async fn sixteen_may_open_a_new_database_at_once() {
    let mut scratches = vec![Scratch::sqlite()];
    scratches.extend(Scratch::postgres().await);
    for scratch in scratches {
        let opened = (0..16).map(|_| {
            let url = scratch.url.clone();
            tokio::spawn(async move { Store::open(&url).await.unwrap() })
        });
        for store in opened.collect::<Vec<_>>() {
            assert_eq!(store.await.unwrap().count_nodes().await.unwrap(), 0);
        }
    }
}

#[tokio::test]
async fn an_unusable_url_is_refused_with_its_reason() {
    let open = async |url: &str| Store::open(url).await.err().unwrap();
    for bad in ["", "mysql://root@localhost/db", "/var/lib/db", "postgres://host:port/db"] {
        assert!(matches!(open(bad).await, StoreError::BadUrl), "{bad:?}");
    }
    let missing = open("sqlite:///nonexistent/folder/file.db").await;
    assert!(matches!(missing, StoreError::CannotCreate { .. }), "{missing:?}");
    // No service listens on port 1.
    let silent = open("postgres://user:secret@127.0.0.1:1/db").await;
    assert!(matches!(silent, StoreError::Unavailable { .. }), "{silent:?}");
    assert!(!format!("{silent:?} {silent}").contains("secret"));
}

#[tokio::test]
async fn a_file_that_is_no_database_is_left_alone() {
    let scratch = Scratch::sqlite();
    let path = scratch.url.trim_start_matches("sqlite://");
    let text = "not a database, but long enough to be mistaken for one. ".repeat(100);
    std::fs::write(path, &text).unwrap();
    let refused = Store::open(&scratch.url).await.err().unwrap();
    assert!(matches!(refused, StoreError::Damaged { .. }), "{refused:?}");
    assert_eq!(std::fs::read_to_string(path).unwrap(), text);
}

#[tokio::test]
async fn a_row_that_cannot_be_read_is_named() {
    let scratch = Scratch::sqlite();
    let store = open(&scratch).await;
    let node = named("n1");
    store.insert_node(&node).await.unwrap();
    beside(&scratch).1.execute_batch("UPDATE nodes SET document = '{}'").unwrap();
    let refused = store.find_node(&NodeIdent::Id(node.id)).await.unwrap_err();
    let StoreError::Corrupt { table, id, .. } = refused else { panic!("{refused:?}") };
    assert_eq!((table, id), ("nodes", node.id.to_string()));
}
