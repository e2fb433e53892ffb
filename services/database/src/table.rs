//! What every table needs.

use uuid::Uuid;

use crate::{Connection, Key, Query, Row, SqlError, StoreError, Value};

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

/// Where a list goes on: the key and the id of the row before.
pub type Position = (Value, Value);

/// A part of a page that is read at once, so that no more than that is in memory.
#[derive(Clone, Debug)]
pub struct Part {
    /// Where it begins, if that is not after the page's marker.
    pub after: Option<Position>,
    /// After how many bytes of documents it ends; it has one row at least.
    pub bytes: usize,
}

/// What was read of a page.
#[derive(Clone, Debug)]
pub struct Listed<T> {
    /// The rows.
    pub found: Vec<T>,
    /// Where the list goes on, if there may be more of it. Told for parts only.
    pub more: Option<Position>,
}

/// How a table is listed. Its rows have their id in column 0.
#[derive(Clone, Copy)]
pub struct Listing<'a> {
    /// Which table.
    pub table: &'a str,
    /// By what it is sorted.
    pub key: &'a Key,
    /// Which rows may be seen, as for [`after_seen`].
    pub seen: Option<(&'a str, &'a str)>,
    /// In which column the document is.
    pub document: usize,
}

impl Listing<'_> {
    /// Where the page, or the part of it, begins.
    pub async fn begin(
        &self,
        connection: &mut Connection,
        marker: Option<Uuid>,
        part: Option<&Part>,
    ) -> Result<Option<Position>, StoreError> {
        match part.and_then(|part| part.after.clone()) {
            Some(after) => Ok(Some(after)),
            None => after_seen(connection, self.table, self.key, marker, self.seen).await,
        }
    }

    /// What `rows` hold, of which `limit` were asked for: of a part no more than it may have.
    pub async fn read<T>(
        &self,
        connection: &mut Connection,
        mut rows: Vec<Row>,
        limit: u32,
        part: Option<&Part>,
        read: impl Fn(&Row) -> Result<T, StoreError>,
    ) -> Result<Listed<T>, StoreError> {
        let mut is_full = false;
        if let Some(part) = part {
            is_full = rows.len() >= limit as usize;
            let (mut fit, mut bytes) = (0, 0_usize);
            for row in &rows {
                bytes = bytes.saturating_add(row.text(self.document)?.len());
                if bytes > part.bytes && fit > 0 {
                    is_full = true;
                    break;
                }
                fit += 1;
            }
            rows.truncate(fit);
        }
        let found = rows.iter().map(read).collect::<Result<Vec<T>, StoreError>>()?;
        let more = match rows.last().filter(|_| is_full) {
            Some(last) => {
                let last = last.parse::<Uuid>("listed", 0)?;
                after_seen(connection, self.table, self.key, Some(last), self.seen).await?
            }
            None => None,
        };
        Ok(Listed { found, more })
    }
}
