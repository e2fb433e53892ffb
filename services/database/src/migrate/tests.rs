use crate::scratch::{HeldLocks, Scratch};
use crate::{Database, WriteKind, reading, writing};

use super::*;

/// The tables of the first version.
const CATS: &str = "CREATE TABLE cats (id TEXT NOT NULL PRIMARY KEY, name TEXT);\n\
     CREATE TABLE conductors (hostname TEXT NOT NULL PRIMARY KEY, alive_until BIGINT NOT NULL, program TEXT NOT NULL, \
     schema_known BIGINT NOT NULL);\n";
const AGES: &str = "ALTER TABLE cats ADD COLUMN age BIGINT;\n";
const NO_NAMES: &str = "-- needs schema 3 of 0.3.0\nALTER TABLE cats DROP COLUMN name;\n";
const OWNERS: &str = "ALTER TABLE cats ADD COLUMN owner TEXT;\n";
/// From now on a name may have a word that only the third version knows.
const NEW_WORD: &str = "-- needs schema 3 of 0.3.0\n-- Names may be in Greek.\n";
const SORTED: &str =
    "-- Names are sorted.\n\n-- concurrently\nCREATE UNIQUE INDEX cats_name_key ON cats (name);\n";

/// The schemas of four versions of a program.
const V1: Schema = &[CATS];
const V2: Schema = &[CATS, AGES];
const V3: Schema = &[CATS, AGES, NO_NAMES];
const V4: Schema = &[CATS, AGES, NO_NAMES, OWNERS];

#[test]
fn parts_for_one_database_are_left_out_for_the_other() {
    let sql = "a\n-- on SQLite\nb\n-- on PostgreSQL\nc\n-- on both\nd";
    assert_eq!(without(sql, ON_POSTGRES), "a\n-- on SQLite\nb\n-- on both\nd\n");
    assert_eq!(without(sql, ON_SQLITE), "a\n-- on PostgreSQL\nc\n-- on both\nd\n");
}

#[test]
fn indexes_that_are_not_dropped_later_are_built_concurrently() {
    let create = "CREATE UNIQUE INDEX CONCURRENTLY cats_name_key ON cats (name)".to_owned();
    assert_eq!(concurrent_indexes(&[CATS, SORTED]), [("cats_name_key", create)]);
    let dropped = concurrent_indexes(&[CATS, SORTED, "DROP INDEX cats_name_key;"]);
    assert!(dropped.is_empty(), "{dropped:?}");
}

async fn scratches() -> Vec<Scratch> {
    let mut scratches = vec![Scratch::sqlite()];
    scratches.extend(Scratch::postgres().await);
    scratches
}

async fn execute(database: &Database, sql: &'static str) {
    let done = writing!(database, WriteKind::OneStatement, |c| Ok(c.execute(sql, vec![]).await?));
    done.unwrap();
}

async fn count(database: &Database, sql: &'static str) -> i64 {
    let counted = reading!(database, |c| {
        let row = c.row(sql, vec![]).await?;
        Ok(row.map_or(Ok(0), |row| row.int(0))?)
    });
    counted.unwrap()
}

#[tokio::test]
async fn an_older_program_works_on_expanded_tables() {
    for scratch in scratches().await {
        let older = Database::open(&scratch.url, V1).await.unwrap();
        let newer = Database::open(&scratch.url, V2).await.unwrap();
        execute(&newer, "INSERT INTO cats (id, name, age) VALUES ('c1', 'Tim', 3)").await;
        execute(&older, "UPDATE cats SET name = 'Tom'").await;
        drop(older);
        // It is started again after the upgrade, and after a downgrade.
        let older = Database::open(&scratch.url, V1).await.unwrap();
        let version = older.schema_version().await.unwrap();
        assert_eq!((version.found, version.known), (2, 1));
        execute(&older, "INSERT INTO cats (id, name) VALUES ('c2', 'Kit')").await;
        assert_eq!(count(&newer, "SELECT count(*) FROM cats WHERE age = 3").await, 1);
    }
}

#[tokio::test]
async fn an_older_program_is_refused_by_name_after_the_database_was_narrowed() {
    for scratch in scratches().await {
        drop(Database::open(&scratch.url, V4).await.unwrap());
        let refused = Database::open(&scratch.url, V2).await.err().unwrap();
        let StoreError::NewerSchema { found: 4, known: 2, program } = &refused else {
            panic!("{refused:?}")
        };
        assert_eq!(program, "0.3.0");
        assert!(refused.to_string().contains("needs version 0.3.0 or newer"), "{refused}");
        // The version that narrowed the database works on the tables of the next one.
        let version = Database::open(&scratch.url, V3).await.unwrap().schema_version().await;
        assert_eq!(version.unwrap().found, 4);
    }
}

#[tokio::test]
async fn a_new_word_needs_no_statement() {
    for scratch in scratches().await {
        let newer = Database::open(&scratch.url, &[CATS, AGES, NEW_WORD]).await.unwrap();
        assert_eq!(newer.schema_version().await.unwrap().found, 3);
        let refused = Database::open(&scratch.url, V2).await.err().unwrap();
        assert!(matches!(refused, StoreError::NewerSchema { found: 3, .. }), "{refused:?}");
    }
}

#[tokio::test]
async fn a_column_that_is_dropped_a_version_later_refuses_only_the_version_before() {
    const SCHEMA: Schema =
        &[CATS, AGES, "-- needs schema 2 of 0.2.0\nALTER TABLE cats DROP COLUMN name;"];
    for scratch in scratches().await {
        drop(Database::open(&scratch.url, SCHEMA).await.unwrap());
        let version = Database::open(&scratch.url, V2).await.unwrap().schema_version().await;
        assert_eq!(version.unwrap().found, 3);
        let refused = Database::open(&scratch.url, V1).await.err().unwrap();
        assert!(refused.to_string().contains("needs version 0.2.0 or newer"), "{refused}");
    }
}

/// A conductor that lives until it is deleted, of a program with the second schema.
const OLDER_LIVES: &str = "INSERT INTO conductors (hostname, alive_until, program, schema_known) \
     VALUES ('old', 9000000000000000, '0.2.0', 2)";

#[tokio::test]
async fn narrowing_waits_until_no_older_program_lives() {
    let Some(scratch) = Scratch::postgres().await else { return };
    let older = Database::open(&scratch.url, V2).await.unwrap();
    execute(&older, OLDER_LIVES).await;
    let newer = Database::open(&scratch.url, V3).await.unwrap();
    newer.finish_upgrade().await.unwrap();
    assert_eq!(newer.schema_version().await.unwrap().found, 2);
    execute(&older, "INSERT INTO cats (id, name) VALUES ('c1', 'Tim')").await;
    execute(&older, "UPDATE conductors SET alive_until = 0").await;
    newer.finish_upgrade().await.unwrap();
    assert_eq!(newer.schema_version().await.unwrap().found, 3);
    let refused = Database::open(&scratch.url, V2).await.err().unwrap();
    assert!(matches!(refused, StoreError::NewerSchema { .. }), "{refused:?}");
}

#[tokio::test]
async fn a_program_that_skips_a_version_is_refused_beside_an_older_one() {
    let Some(scratch) = Scratch::postgres().await else { return };
    let older = Database::open(&scratch.url, V2).await.unwrap();
    execute(&older, OLDER_LIVES).await;
    let refused = Database::open(&scratch.url, V4).await.err().unwrap();
    let StoreError::OlderProgram { hostname, version } = &refused else { panic!("{refused:?}") };
    assert_eq!((hostname.as_str(), version.as_str()), ("old", "0.2.0"));
    assert_eq!(older.schema_version().await.unwrap().found, 2, "nothing was changed");
    execute(&older, "DELETE FROM conductors").await;
    Database::open(&scratch.url, V4).await.unwrap();
}

#[tokio::test]
async fn a_table_that_others_use_is_changed_later() {
    let Some(scratch) = Scratch::postgres().await else { return };
    let older = Database::open(&scratch.url, V1).await.unwrap();
    let mut held =
        HeldLocks::take(&scratch.url, "LOCK TABLE cats IN ACCESS SHARE MODE".to_owned()).await;
    let url = scratch.url.clone();
    let opening = tokio::spawn(async move { Database::open(&url, V2).await });
    held.wait_for_waiting(1).await;
    // The read waits behind the migration, which gives way before the lock is released.
    assert_eq!(count(&older, "SELECT count(*) FROM cats").await, 0);
    held.release().await;
    opening.await.unwrap().unwrap();
}

#[tokio::test]
async fn indexes_are_built_while_others_write() {
    for scratch in scratches().await {
        let database = Database::open(&scratch.url, &[CATS, SORTED]).await.unwrap();
        execute(&database, "INSERT INTO cats (id, name) VALUES ('c1', 'Tim')").await;
        let again = writing!(database, WriteKind::OneStatement, |c| {
            Ok(c.execute("INSERT INTO cats (id, name) VALUES ('c2', 'Tim')", vec![]).await?)
        });
        assert!(again.is_err(), "the names are unique");
    }
}

#[tokio::test]
async fn an_index_that_was_not_completed_is_built_again() {
    const SCHEMA: Schema = &[CATS, SORTED];
    let Some(scratch) = Scratch::postgres().await else { return };
    let older = Database::open(&scratch.url, V1).await.unwrap();
    execute(&older, "INSERT INTO cats (id, name) VALUES ('c1', 'Tim'), ('c2', 'Tim')").await;
    // PostgreSQL leaves an invalid index, because two names are equal.
    Database::open(&scratch.url, SCHEMA).await.err().unwrap();
    execute(&older, "UPDATE cats SET name = 'Tom' WHERE id = 'c2'").await;
    let newer = Database::open(&scratch.url, SCHEMA).await.unwrap();
    let valid = "SELECT count(*) FROM pg_index WHERE indisvalid AND indexrelid = to_regclass('cats_name_key')";
    assert_eq!(count(&newer, valid).await, 1);
}
