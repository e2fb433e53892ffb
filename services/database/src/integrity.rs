//! Checks that a SQLite file is not damaged.
//!
//! Without the check a damaged page is found only when a query reads it: until then a service would run on with incomplete data, and
//! its backups would contain the damage.

use std::path::Path;
use std::str::FromStr;
use std::time::{Duration, Instant};

use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{ConnectOptions, Connection as _, Row as _};
use tracing::warn;

use crate::StoreError;

/// The check at start is stopped after this time. A database of 10,000 machines takes a fraction of a second.
const CHECK_TIMEOUT: Duration = Duration::from_secs(10);
/// The clock is read after this many instructions of SQLite's virtual machine.
const CLOCK_EVERY_INSTRUCTIONS: i32 = 100_000;

/// SQLite's result codes `SQLITE_CORRUPT`, `SQLITE_NOTADB` and `SQLITE_INTERRUPT`.
const CORRUPT: i32 = 11;
const NOT_A_DATABASE: i32 = 26;
const INTERRUPTED: i32 = 9;

/// Checks the open database file for at most [`CHECK_TIMEOUT`], and accepts the file if no damage was found by then.
pub(crate) async fn check_with_timeout(
    connection: &mut SqliteConnection,
    path: &Path,
) -> Result<(), StoreError> {
    let begun = Instant::now();
    let go_on = move || begun.elapsed() < CHECK_TIMEOUT;
    connection.lock_handle().await?.set_progress_handler(CLOCK_EVERY_INSTRUCTIONS, go_on);
    let checked = check(connection, path).await;
    connection.lock_handle().await?.remove_progress_handler();
    match checked {
        Err(StoreError::Unavailable { source }) if code(&source) == Some(INTERRUPTED) => {
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
pub(crate) async fn check_file(url: &str) -> Result<(), StoreError> {
    let options = SqliteConnectOptions::from_str(url).map_err(|_| StoreError::BadUrl)?;
    let path = options.get_filename().to_owned();
    if url.contains(":memory:") || !path.exists() {
        return Ok(());
    }
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    // Without a WAL file no other process has the database open, so the file can be opened as immutable.
    let at_rest = !Path::new(&log).exists();
    let options = options.read_only(true).immutable(at_rest).disable_statement_logging();
    let opened = options.connect().await.map_err(|error| damaged(&path, error));
    let mut connection = opened?;
    let checked = check(&mut connection, &path).await;
    connection.close().await?;
    checked
}

/// Checks every page and every foreign key.
async fn check(connection: &mut SqliteConnection, path: &Path) -> Result<(), StoreError> {
    let refuse = |found: String| Err(StoreError::Damaged { path: path.to_owned(), found });
    let spoiled = |error| damaged(path, error);
    let pages = sqlx::query("PRAGMA quick_check(1)").fetch_one(&mut *connection).await;
    let found: String = pages.and_then(|row| row.try_get(0)).map_err(spoiled)?;
    if found != "ok" {
        return refuse(found);
    }
    let orphan = sqlx::query("PRAGMA foreign_key_check").fetch_optional(&mut *connection).await;
    if let Some(row) = orphan.map_err(spoiled)? {
        let (table, owner): (String, String) = (row.try_get(0)?, row.try_get(2)?);
        return refuse(format!("a row of {table} refers to a row of {owner} that does not exist"));
    }
    Ok(())
}

/// Converts an error, to `Damaged` if the error says that the file is damaged.
pub(crate) fn damaged(path: &Path, error: sqlx::Error) -> StoreError {
    match code(&error) {
        Some(CORRUPT | NOT_A_DATABASE) => {
            StoreError::Damaged { path: path.to_owned(), found: error.to_string() }
        }
        _ => error.into(),
    }
}

/// The primary SQLite result code of an error.
fn code(error: &sqlx::Error) -> Option<i32> {
    let code = error.as_database_error()?.code()?;
    code.parse::<i32>().ok().map(|code| code & 0xff)
}
