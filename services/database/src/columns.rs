//! The columns of a row with their values. INSERT and UPDATE are made from them, so a table lists each of its columns once.

use std::fmt::Write;

use crate::{AssertSqlSafe, Connection, SqlError, Value};

/// The column with the number of the newest program whose fields the document of the row may have.
pub(crate) const WRITTEN_BY: &str = "written_by";

/// A column of a row, with its value.
#[derive(Clone, Debug)]
pub struct Column {
    pub name: &'static str,
    pub value: Value,
}

/// Makes a vector of [`Column`]s from `NAME: VALUE`. The first column is the key of the table and the second its version, if rows of the
/// table are updated.
#[macro_export]
macro_rules! columns {
    ($($name:ident: $value:expr),* $(,)?) => {
        vec![$($crate::Column { name: stringify!($name), value: $crate::Value::from($value) }),*]
    };
}

/// Inserts a row.
pub async fn insert(
    connection: &mut Connection,
    table: &'static str,
    columns: Vec<Column>,
) -> Result<(), SqlError> {
    let sql = insert_sql(table, &columns);
    connection.execute(AssertSqlSafe(sql), values(columns)).await.map(drop)
}

/// Updates the row with this key if its version is still the one that was read, and raises the version. A row that a newer program has written
/// is not updated. Returns the number of rows.
pub async fn update(
    connection: &mut Connection,
    table: &'static str,
    columns: Vec<Column>,
) -> Result<u64, SqlError> {
    let sql = update_sql(table, &columns, &[], "");
    connection.execute(AssertSqlSafe(sql), values(columns)).await
}

/// Updates a row as [`update`] does, and also sets `more`, a list of SQL assignments with `?` for `value`.
pub async fn update_with(
    connection: &mut Connection,
    table: &'static str,
    columns: Vec<Column>,
    (more, value): (&'static str, Value),
) -> Result<u64, SqlError> {
    let sql = update_sql(table, &columns, &[], more);
    let mut values = values(columns);
    values.push(value);
    connection.execute(AssertSqlSafe(sql), values).await
}

/// Updates a row as [`update`] does, if the columns in `kept` have these values already: they are compared and not set.
pub async fn update_except(
    connection: &mut Connection,
    table: &'static str,
    columns: Vec<Column>,
    kept: &[&str],
) -> Result<u64, SqlError> {
    let sql = update_sql(table, &columns, kept, "");
    connection.execute(AssertSqlSafe(sql), values(columns)).await
}

/// Inserts a row of a table whose column `seq` numbers the rows in the order of their creation.
pub async fn insert_numbered(
    connection: &mut Connection,
    table: &'static str,
    columns: Vec<Column>,
) -> Result<(), SqlError> {
    let sql = match connection {
        // SQLite has one writer, so no other row gets the number meanwhile.
        Connection::Sqlite(_) => numbered_sql(table, &columns),
        // A sequence is the default of the column.
        Connection::Postgres(_) => insert_sql(table, &columns),
    };
    connection.execute(AssertSqlSafe(sql), values(columns)).await.map(drop)
}

fn values(columns: Vec<Column>) -> Vec<Value> {
    columns.into_iter().map(|column| column.value).collect()
}

fn insert_sql(table: &str, columns: &[Column]) -> String {
    let (names, places) = names_and_places(columns);
    format!("INSERT INTO {table} ({names}) VALUES ({places})")
}

fn numbered_sql(table: &str, columns: &[Column]) -> String {
    let (names, places) = names_and_places(columns);
    let next = format!("(SELECT coalesce(max(seq), 0) + 1 FROM {table})");
    format!("INSERT INTO {table} ({names}, seq) VALUES ({places}, {next})")
}

fn names_and_places(columns: &[Column]) -> (String, String) {
    let names: Vec<&str> = columns.iter().map(|column| column.name).collect();
    let mut places = String::with_capacity(8 * columns.len());
    for place in 1..=columns.len() {
        let separator = if place == 1 { "" } else { ", " };
        // Writing to a text does not fail.
        let _ = write!(places, "{separator}${place}");
    }
    (names.join(", "), places)
}

/// `more` is a further assignment, whose `?` become the place after the last column.
fn update_sql(table: &str, columns: &[Column], kept: &[&str], more: &str) -> String {
    let (mut set, mut only) = (String::with_capacity(1024), String::with_capacity(256));
    for (place, column) in (1..).zip(columns) {
        let name = column.name;
        // Writing to a text does not fail.
        let _ = match place {
            1 => write!(only, "{name} = $1"),
            2 => write!(set, "{name} = $2 + 1").and(write!(only, " AND {name} = $2")),
            _ if kept.contains(&name) => {
                write!(only, " AND {name} IS NOT DISTINCT FROM ${place}")
            }
            _ if name == WRITTEN_BY => {
                write!(set, ", {name} = ${place}").and(write!(only, " AND {name} <= ${place}"))
            }
            _ => write!(set, ", {name} = ${place}"),
        };
    }
    if !more.is_empty() {
        set += &format!(", {}", more.replace('?', &format!("${}", columns.len() + 1)));
    }
    format!("UPDATE {table} SET {set} WHERE {only}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cat() -> Vec<Column> {
        columns![id: "c1", version: 3_i64, name: "tom", age: None::<i64>]
    }

    #[test]
    fn a_row_is_inserted_with_all_columns() {
        let want = "INSERT INTO cats (id, version, name, age) VALUES ($1, $2, $3, $4)";
        assert_eq!(insert_sql("cats", &cat()), want);
        let want = "INSERT INTO cats (id, version, name, age, seq) \
             VALUES ($1, $2, $3, $4, (SELECT coalesce(max(seq), 0) + 1 FROM cats))";
        assert_eq!(numbered_sql("cats", &cat()), want);
    }

    #[test]
    fn an_update_names_the_version_that_was_read() {
        #[track_caller]
        fn check(kept: &[&str], more: &str, want: &str) {
            assert_eq!(update_sql("cats", &cat(), kept, more), want);
        }
        let set = "UPDATE cats SET version = $2 + 1, name = $3, age = $4";
        check(&[], "", &format!("{set} WHERE id = $1 AND version = $2"));
        let more = "sealed = CASE WHEN ? = 1 THEN sealed ELSE NULL END";
        let want = format!("{set}, {} WHERE id = $1 AND version = $2", more.replace('?', "$5"));
        check(&[], more, &want);
        let want = "UPDATE cats SET version = $2 + 1, age = $4 \
                    WHERE id = $1 AND version = $2 AND name IS NOT DISTINCT FROM $3";
        check(&["name"], "", want);
    }

    #[test]
    fn an_update_finds_no_row_of_a_newer_program() {
        let columns = columns![id: "c1", version: 3_i64, written_by: 1000_i64];
        let want = "UPDATE cats SET version = $2 + 1, written_by = $3 \
                    WHERE id = $1 AND version = $2 AND written_by <= $3";
        assert_eq!(update_sql("cats", &columns, &[], ""), want);
    }
}
