//! What every table needs.

use uuid::Uuid;

use crate::{Connection, Key, Query, SqlError, StoreError, Value};

/// The column whose uniqueness `error` says would be lost; `id` where it is the table's key.
pub fn clash(error: &SqlError) -> Option<String> {
    let error = error.as_database_error().filter(|error| error.is_unique_violation())?;
    // PostgreSQL names the constraint, TABLE_COLUMN_key or TABLE_pkey; SQLite says "… failed: TABLE.COLUMN".
    Some(match error.constraint() {
        Some(constraint) => constraint
            .strip_suffix("_key")
            .and_then(|rest| rest.split_once('_'))
            .map_or_else(|| "id".to_owned(), |(_, column)| column.to_owned()),
        None => error.message().rsplit('.').next().unwrap_or_default().to_owned(),
    })
}

/// Whether `error` says that the row would belong to one that is not there.
pub fn is_orphan(error: &SqlError) -> bool {
    error.as_database_error().is_some_and(|error| error.is_foreign_key_violation())
}

/// `Stale` unless a row was changed: every update names the version it read.
pub fn changed_one(rows: u64) -> Result<(), StoreError> {
    if rows == 0 { Err(StoreError::Stale) } else { Ok(()) }
}

/// Where the page after `marker` begins: the marker's key and id, for somebody who sees only rows that meet a condition, in which every `?` stands for
/// the value beside it. Any other marker is as one that is not there.
pub async fn after_seen(
    connection: &mut Connection,
    table: &str,
    key: &Key,
    marker: Option<Uuid>,
    seen: Option<(&str, &str)>,
) -> Result<Option<(Value, Value)>, StoreError> {
    let Some(marker) = marker else { return Ok(None) };
    let mut query = Query::new(&format!("SELECT {} FROM {table}", key.sql));
    query.and_value("id = ?", marker);
    if let Some((condition, value)) = seen {
        query.and_value(condition, value);
    }
    let (sql, values) = query.into_parts();
    let row = connection.row(sql, values).await?;
    let row = row.ok_or(StoreError::NoMarker(marker))?;
    let value = if key.is_number { Value::from(row.int(0)?) } else { Value::from(row.text(0)?) };
    Ok(Some((value, marker.into())))
}
