//! Migrates the tables of a database to the newest schema version.

use crate::{Connection, values};
use crate::{Result, StoreError};

/// The tables of one service, as a list of SQL scripts: the first creates version 1, each further script migrates to the next version. A
/// published script is never changed; changes are appended as a new version.
///
/// Scripts are written for both databases, with `SERIAL` for an auto-incremented primary key; `TEXT` compares byte by byte on both. Lines
/// after `-- on SQLite` or `-- on PostgreSQL` are run on that database only, up to the next such line or `-- on both`.
pub type Schema = &'static [&'static str];

/// Migrates the database behind `connection`, which must be in a transaction.
pub(crate) async fn migrate(connection: &mut Connection, schema: Schema) -> Result<()> {
    connection.lock_bulk_writes().await?;
    connection
        .script("CREATE TABLE IF NOT EXISTS schema_version (version BIGINT NOT NULL)".to_owned())
        .await?;
    let found = found(connection).await?;
    let known = schema.len() as i64;
    if found > known {
        return Err(StoreError::NewerSchema { found, known });
    }
    for (version, sql) in (1..).zip(schema) {
        if version > found {
            tracing::info!("migrating the database to schema version {version}");
            connection.script(in_dialect(connection, sql)).await?;
            connection
                .execute("INSERT INTO schema_version (version) VALUES ($1)", values![version])
                .await?;
        }
    }
    Ok(())
}

/// The schema version of the database; 0 if it has no tables yet.
pub(crate) async fn found(connection: &mut Connection) -> Result<i64> {
    let row = connection.row("SELECT max(version) FROM schema_version", values![]).await?;
    Ok(row.map(|row| row.optional_int(0)).transpose()?.flatten().unwrap_or(0))
}

/// Translates a script to the dialect of this database.
fn in_dialect(connection: &Connection, sql: &str) -> String {
    match connection {
        Connection::Sqlite(_) => {
            without(sql, ON_POSTGRES).replace("SERIAL", "INTEGER PRIMARY KEY AUTOINCREMENT")
        }
        Connection::Postgres(_) => without(sql, ON_SQLITE)
            .replace("SERIAL", "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY")
            .replace("TEXT", "TEXT COLLATE \"C\""),
    }
}

const ON_SQLITE: &str = "-- on SQLite";
const ON_POSTGRES: &str = "-- on PostgreSQL";
const ON_BOTH: &str = "-- on both";

/// Removes the parts of `sql` that follow a line `other`.
fn without(sql: &str, other: &str) -> String {
    let mut text = String::with_capacity(sql.len());
    let mut is_ours = true;
    for line in sql.lines() {
        if [ON_SQLITE, ON_POSTGRES, ON_BOTH].contains(&line) {
            is_ours = line != other;
        }
        if is_ours {
            text.push_str(line);
            text.push('\n');
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_for_one_database_are_left_out_for_the_other() {
        let sql = "a\n-- on SQLite\nb\n-- on PostgreSQL\nc\n-- on both\nd";
        assert_eq!(without(sql, ON_POSTGRES), "a\n-- on SQLite\nb\n-- on both\nd\n");
        assert_eq!(without(sql, ON_SQLITE), "a\n-- on PostgreSQL\nc\n-- on both\nd\n");
    }
}
