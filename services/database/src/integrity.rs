//! Checks that a SQLite file is not damaged.
//!
//! Without the check a damaged page is found only when a query reads it: until then a service would run on with incomplete data, and
//! its backups would contain the damage.

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::{OptionalExtension, ffi};
use tracing::warn;

use crate::sqlite::SqlitePlace;
use crate::{Result, SqlError, SqliteConnection, StoreError};

/// The check at start is stopped after this time. A database of 10,000 machines takes a fraction of a second.
const CHECK_TIMEOUT: Duration = Duration::from_secs(10);
/// The clock is read after this many instructions of SQLite's virtual machine.
const CLOCK_EVERY_INSTRUCTIONS: i32 = 100_000;

/// Checks the open database file for at most [`CHECK_TIMEOUT`], and accepts the file if no damage was found by then.
pub(crate) fn check_with_timeout(connection: &mut SqliteConnection, path: &Path) -> Result<()> {
    let begun = Instant::now();
    let is_over = move || begun.elapsed() >= CHECK_TIMEOUT;
    connection.0.progress_handler(CLOCK_EVERY_INSTRUCTIONS, Some(is_over))?;
    let checked = check(connection, path);
    connection.0.progress_handler(0, None::<fn() -> bool>)?;
    match checked {
        Err(StoreError::Unavailable { source })
            if source.sqlite_code() == Some(ffi::SQLITE_INTERRUPT) =>
        {
            warn!(
                "the integrity check of {} did not finish within {CHECK_TIMEOUT:?} and was stopped: run --check to check the whole file",
                path.display()
            );
            Ok(())
        }
        checked => checked,
    }
}

/// Checks the whole file that `url` names, if the file exists. Neither writes the file nor creates files beside it.
pub(crate) fn check_file(url: &str) -> Result<()> {
    let path = match SqlitePlace::parse(url)? {
        SqlitePlace::File(path) if path.exists() => path,
        SqlitePlace::File(_) | SqlitePlace::Memory => return Ok(()),
    };
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    // Without a WAL file no other process has the database open, so the file can be opened as immutable.
    let opened = if Path::new(&log).exists() {
        SqliteConnection::reader(&path)
    } else {
        SqliteConnection::immutable(&path)
    };
    check(&opened.map_err(|error| damaged(&path, error))?, &path)
}

/// Checks every page and every foreign key.
fn check(connection: &SqliteConnection, path: &Path) -> Result<()> {
    let refuse = |found: String| Err(StoreError::Damaged { path: path.to_owned(), found });
    let spoiled = |error| damaged(path, error);
    let pages = connection.0.query_row("PRAGMA quick_check(1)", [], |row| row.get(0));
    let found: String = pages.map_err(spoiled)?;
    if found != "ok" {
        return refuse(found);
    }
    let orphan = connection
        .0
        .query_row("PRAGMA foreign_key_check", [], |row| Ok((row.get(0)?, row.get(2)?)))
        .optional();
    if let Some((table, owner)) = orphan.map_err(spoiled)? {
        let (table, owner): (String, String) = (table, owner);
        return refuse(format!("a row of {table} refers to a row of {owner} that does not exist"));
    }
    Ok(())
}

/// Converts an error, to `Damaged` if the error says that the file is damaged.
pub(crate) fn damaged(path: &Path, error: rusqlite::Error) -> StoreError {
    let found = error.to_string();
    let error = SqlError::from(error);
    match error.sqlite_code() {
        Some(ffi::SQLITE_CORRUPT | ffi::SQLITE_NOTADB) => {
            StoreError::Damaged { path: path.to_owned(), found }
        }
        _ => error.into(),
    }
}
