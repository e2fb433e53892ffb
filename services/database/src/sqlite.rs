//! A connection to SQLite, which is a library in this process.
//!
//! Statements run on the thread of their caller. Most take microseconds: a thread of its own, which SQLite drivers for async programs have,
//! would take longer to wake than the statement runs.

use std::path::{Path, PathBuf};
use std::time::Duration;

use percent_encoding::percent_decode_str;
use rusqlite::config::DbConfig;
use rusqlite::types::{Value as Cell, ValueRef};
use rusqlite::{CachedStatement, OpenFlags, Rows};
use url::Url;

use crate::{Result, SqlError, StoreError, Value};

/// How long a statement waits for another process that writes the same file.
pub(crate) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// The number of prepared statements that a connection keeps.
const STATEMENTS: usize = 100;

/// The size of the page cache of a connection that writes, in KiB. SQLite's default is 2000. A page that is missing costs a microsecond,
/// because the kernel caches the pages of the file too.
const WRITER_CACHE: i64 = 1024;

/// The size of the page cache of a connection that only reads, in KiB. Each write of another connection empties it.
const READER_CACHE: i64 = 256;

/// The WAL is copied into the database file after this many pages of 4 KiB. The copy takes tens of milliseconds in which no other write can
/// run. SQLite's default is 1000, which a busy service reaches many times a second.
const CHECKPOINT_PAGES: i64 = 4000;

/// An open connection. The methods of [`crate::Connection`] use it.
pub struct SqliteConnection(pub(crate) rusqlite::Connection);

/// A row of a result.
pub struct SqliteRow(Vec<Cell>);

/// The place of a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SqlitePlace {
    Memory,
    File(PathBuf),
}

impl SqlitePlace {
    /// Parses `sqlite:///PATH` and `sqlite::memory:`. Characters of the path may be percent-encoded.
    pub(crate) fn parse(url: &str) -> Result<SqlitePlace> {
        let rest = url.strip_prefix("sqlite:").ok_or(StoreError::BadUrl)?;
        if rest == ":memory:" {
            return Ok(SqlitePlace::Memory);
        }
        let path = rest.strip_prefix("//").unwrap_or(rest);
        let path = percent_decode_str(path).decode_utf8().map_err(|_| StoreError::BadUrl)?;
        if path.is_empty() || path.contains(['?', '\0']) {
            return Err(StoreError::BadUrl);
        }
        Ok(SqlitePlace::File(PathBuf::from(&*path)))
    }
}

impl SqliteConnection {
    /// Opens a connection that writes. The file must exist.
    ///
    /// WAL with FULL: an acknowledged write survives a power cut. With NORMAL a power cut could lose the last rows of the audit trail and of
    /// the ledgers, and so leave unknown servers in a cloud. Concurrent writes share a transaction, and therefore one wait for the disk.
    pub(crate) fn writer(place: &SqlitePlace) -> Result<SqliteConnection, rusqlite::Error> {
        let open = match place {
            SqlitePlace::Memory => rusqlite::Connection::open_in_memory()?,
            SqlitePlace::File(path) => {
                let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
                rusqlite::Connection::open_with_flags(path, flags)?
            }
        };
        open.busy_timeout(BUSY_TIMEOUT)?;
        open.pragma_update(None, "journal_mode", "WAL")?;
        open.pragma_update(None, "synchronous", "FULL")?;
        open.pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES)?;
        open.pragma_update(None, "cache_size", -WRITER_CACHE)?;
        SqliteConnection::configured(open)
    }

    /// Opens a connection that only reads.
    pub(crate) fn reader(path: &Path) -> Result<SqliteConnection, rusqlite::Error> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let open = rusqlite::Connection::open_with_flags(path, flags)?;
        open.pragma_update(None, "cache_size", -READER_CACHE)?;
        SqliteConnection::configured(open)
    }

    /// Opens a file that no process changes. SQLite takes no locks and creates no files beside it.
    pub(crate) fn immutable(path: &Path) -> Result<SqliteConnection, rusqlite::Error> {
        let refused = || rusqlite::Error::InvalidPath(path.to_owned());
        let path = std::path::absolute(path).map_err(|_| refused())?;
        let mut url = Url::from_file_path(&path).map_err(|()| refused())?;
        url.set_query(Some("immutable=1"));
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
            | OpenFlags::SQLITE_OPEN_URI
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let open = rusqlite::Connection::open_with_flags(url.as_str(), flags)?;
        SqliteConnection::configured(open)
    }

    fn configured(open: rusqlite::Connection) -> Result<SqliteConnection, rusqlite::Error> {
        open.busy_timeout(BUSY_TIMEOUT)?;
        open.pragma_update(None, "foreign_keys", true)?;
        // Plans do not depend on bound values. Otherwise SQLite prepares a statement again for each new LIMIT.
        open.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        // Keeps the statement journal in memory instead of a temporary file.
        open.pragma_update(None, "temp_store", "MEMORY")?;
        open.set_prepared_statement_cache_capacity(STATEMENTS);
        Ok(SqliteConnection(open))
    }

    /// Runs a statement and returns how many rows it changed.
    pub(crate) fn execute(&self, sql: &str, values: &[Value]) -> Result<u64, SqlError> {
        let mut statement = self.bound(sql, values)?;
        let mut rows = statement.raw_query();
        while rows.next()?.is_some() {}
        Ok(self.0.changes())
    }

    /// Returns at most `most` rows of a query.
    pub(crate) fn rows(
        &self,
        sql: &str,
        values: &[Value],
        most: usize,
    ) -> Result<Vec<SqliteRow>, SqlError> {
        let mut statement = self.bound(sql, values)?;
        let width = statement.column_count();
        let mut rows = statement.raw_query();
        let mut found = Vec::new();
        while found.len() < most
            && let Some(row) = next(&mut rows, width)?
        {
            found.push(row);
        }
        Ok(found)
    }

    /// Runs several statements that take no values.
    pub(crate) fn script(&self, sql: &str) -> Result<(), SqlError> {
        Ok(self.0.execute_batch(sql)?)
    }

    /// Prepares a statement, and binds `$1` to the first value.
    ///
    /// For SQLite `$1` is a name, and `?1` is a number. No statement has a `$` in a literal.
    fn bound(&self, sql: &str, values: &[Value]) -> Result<CachedStatement<'_>, rusqlite::Error> {
        let mut statement = self.0.prepare_cached(&sql.replace('$', "?"))?;
        let count = statement.parameter_count();
        if values.len() < count {
            return Err(rusqlite::Error::InvalidParameterCount(values.len(), count));
        }
        for (index, value) in (1..=count).zip(values) {
            match value {
                Value::Int(int) => statement.raw_bind_parameter(index, int)?,
                Value::Text(text) => statement.raw_bind_parameter(index, text.as_deref())?,
            }
        }
        Ok(statement)
    }
}

fn next(rows: &mut Rows<'_>, width: usize) -> Result<Option<SqliteRow>, rusqlite::Error> {
    let Some(row) = rows.next()? else { return Ok(None) };
    let cells = (0..width).map(|column| row.get(column));
    Ok(Some(SqliteRow(cells.collect::<Result<_, _>>()?)))
}

impl SqliteRow {
    /// Reads an integer; NULL is `None`.
    pub(crate) fn int(&self, column: usize) -> Result<Option<i64>, SqlError> {
        match self.0.get(column) {
            Some(Cell::Integer(int)) => Ok(Some(*int)),
            Some(Cell::Null) => Ok(None),
            other => Err(unexpected(column, other)),
        }
    }

    /// Reads text; NULL is `None`.
    pub(crate) fn text(&self, column: usize) -> Result<Option<&str>, SqlError> {
        match self.0.get(column) {
            Some(Cell::Text(text)) => Ok(Some(text)),
            Some(Cell::Null) => Ok(None),
            other => Err(unexpected(column, other)),
        }
    }
}

/// The error of a column that is missing or has a value of another type.
fn unexpected(column: usize, found: Option<&Cell>) -> SqlError {
    match found {
        Some(cell) => {
            let name = format!("column {column}");
            rusqlite::Error::InvalidColumnType(column, name, ValueRef::from(cell).data_type())
        }
        None => rusqlite::Error::InvalidColumnIndex(column),
    }
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_name_a_file_or_the_memory() {
        let file = |path: &str| Some(SqlitePlace::File(path.into()));
        for (url, want) in [
            ("sqlite::memory:", Some(SqlitePlace::Memory)),
            ("sqlite:///var/x.db", file("/var/x.db")),
            ("sqlite:x.db", file("x.db")),
            ("sqlite:///a%20b.db", file("/a b.db")),
            ("sqlite://", None),
            ("sqlite:///x.db?mode=ro", None),
            ("sqlite:///%00", None),
            ("sqlite:///%ff", None),
            ("postgres://x", None),
        ] {
            assert_eq!(SqlitePlace::parse(url).ok(), want, "{url}");
        }
    }

    #[test]
    fn values_are_bound_by_their_number() {
        let open = SqliteConnection::writer(&SqlitePlace::Memory).unwrap();
        let sql = "SELECT $2, $1, $2, NULL";
        let rows = open.rows(sql, &["a".into(), 7_i64.into()], usize::MAX).unwrap();
        let row = &rows[0];
        assert_eq!((row.int(0).unwrap(), row.text(1).unwrap()), (Some(7), Some("a")));
        assert_eq!((row.int(2).unwrap(), row.text(3).unwrap()), (Some(7), None));
        assert!(row.int(1).is_err() && row.text(0).is_err() && row.int(4).is_err());
        assert!(open.rows(sql, &["a".into()], usize::MAX).is_err(), "a value is missing");
    }

    #[test]
    fn changed_rows_are_counted_also_if_they_are_returned() {
        let open = SqliteConnection::writer(&SqlitePlace::Memory).unwrap();
        open.script("CREATE TABLE t (n INTEGER); INSERT INTO t VALUES (1), (2), (3)").unwrap();
        assert_eq!(
            open.execute("UPDATE t SET n = n + 1 WHERE n > $1", &[1_i64.into()]).unwrap(),
            2
        );
        assert_eq!(open.execute("DELETE FROM t WHERE n > 1 RETURNING n", &[]).unwrap(), 2);
        assert_eq!(open.rows("SELECT n FROM t", &[], 1).unwrap().len(), 1);
    }
}
