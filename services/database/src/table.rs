//! Functions that the code of every table needs.

use rusqlite::ffi;
use uuid::Uuid;

use crate::{Connection, Key, Query, Result, Row, SqlError, StoreError, Tie, Value};

/// SQLite's result codes for a unique constraint and a primary key.
const UNIQUE: [i32; 2] = [ffi::SQLITE_CONSTRAINT_UNIQUE, ffi::SQLITE_CONSTRAINT_PRIMARYKEY];

/// The column of the unique constraint that `error` reports; `id` for the primary key. `None` if the error is another error.
pub fn violated_unique_column(error: &SqlError) -> Option<String> {
    match error {
        SqlError::Sqlite(rusqlite::Error::SqliteFailure(code, message)) => {
            // SQLite says "… failed: TABLE.COLUMN".
            let is_unique = UNIQUE.contains(&code.extended_code);
            let message = message.as_deref().filter(|_| is_unique)?;
            Some(message.rsplit('.').next().unwrap_or_default().to_owned())
        }
        SqlError::Postgres(error) => {
            let error = error.as_database_error().filter(|error| error.is_unique_violation())?;
            // PostgreSQL names the constraint, TABLE_COLUMN_key or TABLE_pkey.
            let column = error.constraint()?.strip_suffix("_key").and_then(|it| it.split_once('_'));
            Some(column.map_or_else(|| "id".to_owned(), |(_, column)| column.to_owned()))
        }
        SqlError::Sqlite(_) | SqlError::Null { .. } => None,
    }
}

/// Whether `error` reports that the owner of the row does not exist.
pub fn is_missing_owner(error: &SqlError) -> bool {
    match error {
        SqlError::Sqlite(error) => {
            let code = error.sqlite_error().map(|error| error.extended_code);
            code == Some(ffi::SQLITE_CONSTRAINT_FOREIGNKEY)
        }
        SqlError::Postgres(error) => {
            error.as_database_error().is_some_and(|error| error.is_foreign_key_violation())
        }
        SqlError::Null { .. } => false,
    }
}

/// Returns `Stale` if an update changed no row: every update names the version it read.
pub fn changed_one(rows: u64) -> Result<()> {
    if rows == 0 { Err(StoreError::Stale) } else { Ok(()) }
}

/// Returns the key and the tie of `marker`, after which a page begins. `seen` is the condition that the caller's visible rows meet, with `?` for
/// the value beside it: a marker the caller may not see is reported as missing, like a marker that does not exist.
pub async fn page_start(
    connection: &mut Connection,
    table: &str,
    key: &Key,
    marker: Option<Uuid>,
    seen: Option<(&str, &str)>,
) -> Result<Option<(Value, Value)>> {
    let Some(marker) = marker else { return Ok(None) };
    let mut query = Query::new(&format!("SELECT {}, {} FROM {table}", key.sql, key.tie.column()));
    query.and_value("id = ?", marker);
    if let Some((condition, value)) = seen {
        query.and_value(condition, value);
    }
    let row = query.row(connection).await?;
    let row = row.ok_or(StoreError::NoMarker(marker))?;
    let value = if key.is_number { Value::from(row.int(0)?) } else { Value::from(row.text(0)?) };
    let tie = match key.tie {
        Tie::Id => marker.into(),
        Tie::Seq => Value::from(row.int(1)?),
    };
    Ok(Some((value, tie)))
}

/// The key and the tie of the row after which a list continues.
pub type Position = (Value, Value);

/// A part of a page. A page is read in parts, so that only one part is in memory at a time.
#[derive(Clone, Debug)]
pub struct PagePart<P = Position> {
    /// Where the part begins; `None` for the first part, which begins at the marker of the page.
    pub after: Option<P>,
    /// The part ends before its documents exceed this many bytes, but has at least one row.
    pub bytes: usize,
}

impl<P> PagePart<P> {
    /// The first part, whatever its size.
    pub fn whole() -> PagePart<P> {
        PagePart { after: None, bytes: usize::MAX }
    }
}

/// A page, or a part of a page.
#[derive(Clone, Debug)]
pub struct PageRows<T, P = Position> {
    pub found: Vec<T>,
    /// Where the next part begins, if there may be more rows. Always `None` for a whole page.
    pub more: Option<P>,
}

/// Cuts `rows`, which a query returned at most `limit` of, to the size of a part. `document` is the index of the column that is measured.
/// Returns whether there may be more rows.
pub fn cut(rows: &mut Vec<Row>, limit: u32, bytes: usize, document: usize) -> Result<bool> {
    let mut is_full = rows.len() >= limit as usize;
    let (mut fit, mut so_far) = (0, 0_usize);
    for row in rows.iter() {
        so_far = so_far.saturating_add(row.text(document)?.len());
        if so_far > bytes && fit > 0 {
            is_full = true;
            break;
        }
        fit += 1;
    }
    rows.truncate(fit);
    Ok(is_full)
}

/// How a table is listed. Column 0 of its rows is the id.
#[derive(Clone, Copy)]
pub struct Listing<'a> {
    pub table: &'a str,
    pub key: &'a Key,
    /// The condition that visible rows meet, as for [`page_start`].
    pub seen: Option<(&'a str, &'a str)>,
    /// The index of the column with the document.
    pub document: usize,
}

impl Listing<'_> {
    /// Returns where the page, or this part of it, begins.
    pub async fn begin(
        &self,
        connection: &mut Connection,
        marker: Option<Uuid>,
        part: Option<&PagePart>,
    ) -> Result<Option<Position>> {
        match part.and_then(|part| part.after.clone()) {
            Some(after) => Ok(Some(after)),
            None => page_start(connection, self.table, self.key, marker, self.seen).await,
        }
    }

    /// Reads the rows of a page or a part, which `query` finds. `limit` is the limit of the query; a part is cut to its size in bytes.
    pub async fn read<T>(
        &self,
        connection: &mut Connection,
        query: Query,
        limit: u32,
        part: Option<&PagePart>,
        read: impl Fn(&Row) -> Result<T>,
    ) -> Result<PageRows<T>> {
        let mut rows = query.rows(connection).await?;
        let is_full = match part {
            Some(part) => cut(&mut rows, limit, part.bytes, self.document)?,
            None => false,
        };
        let found = rows.iter().map(read).collect::<Result<Vec<T>>>()?;
        let more = match rows.last().filter(|_| is_full) {
            Some(last) => {
                let last = last.parse::<Uuid>("listed", 0)?;
                page_start(connection, self.table, self.key, Some(last), self.seen).await?
            }
            None => None,
        };
        Ok(PageRows { found, more })
    }
}
