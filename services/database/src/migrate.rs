//! The tables, in versions: a database is brought up to date when it is opened.

use crate::StoreError;
use crate::{Connection, values};

/// The tables of one service: what makes version 1 of nothing, version 2 of version 1, and so on. What is listed is never
/// changed, only added to.
///
/// The SQL is SQLite's and PostgreSQL's, with `SERIAL` for a key that counts up; `TEXT` compares byte by byte on both. What follows a line
/// `-- on SQLite` or `-- on PostgreSQL` is for that database alone, up to the next such line or `-- on both`.
pub type Schema = &'static [&'static str];

/// Brings the database behind `connection`, which is in a transaction, up to date.
pub(crate) async fn migrate(connection: &mut Connection, schema: Schema) -> Result<(), StoreError> {
    connection.write_alone().await?;
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
            tracing::info!("bringing the database to schema version {version}");
            connection.script(in_dialect(connection, sql)).await?;
            connection
                .execute("INSERT INTO schema_version (version) VALUES ($1)", values![version])
                .await?;
        }
    }
    Ok(())
}

/// Which version the tables have.
pub(crate) async fn found(connection: &mut Connection) -> Result<i64, StoreError> {
    let row = connection.row("SELECT max(version) FROM schema_version", values![]).await?;
    Ok(row.map(|row| row.optional_int(0)).transpose()?.flatten().unwrap_or(0))
}

/// What is for this database, with the two words the databases do not share.
fn in_dialect(connection: &Connection, sql: &str) -> String {
    match connection {
        Connection::Sqlite(_) => {
            without(sql, ON_POSTGRES).replace("SERIAL", "INTEGER PRIMARY KEY AUTOINCREMENT")
        }
        Connection::Postgres(_) | Connection::PostgresTransaction(_) => without(sql, ON_SQLITE)
            .replace("SERIAL", "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY")
            .replace("TEXT", "TEXT COLLATE \"C\""),
    }
}

const ON_SQLITE: &str = "-- on SQLite";
const ON_POSTGRES: &str = "-- on PostgreSQL";
const ON_BOTH: &str = "-- on both";

/// `sql` without what follows `other`.
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
    fn what_is_for_one_database_is_left_out_for_the_other() {
        let sql = "a\n-- on SQLite\nb\n-- on PostgreSQL\nc\n-- on both\nd";
        assert_eq!(without(sql, ON_POSTGRES), "a\n-- on SQLite\nb\n-- on both\nd\n");
        assert_eq!(without(sql, ON_SQLITE), "a\n-- on PostgreSQL\nc\n-- on both\nd\n");
    }
}
