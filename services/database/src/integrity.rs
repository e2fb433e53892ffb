//! Whether a SQLite file is whole.
//!
//! A page that the disk spoiled is otherwise met when somebody reads it: a service would run on with what it can still read, and back up the rest.

use std::path::Path;
use std::str::FromStr;
use std::time::{Duration, Instant};

use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{ConnectOptions, Connection as _, Row as _};
use tracing::warn;

use crate::StoreError;

/// A start waits so long for the check. 10,000 machines take a fraction of a second.
const WITHIN: Duration = Duration::from_secs(10);
/// After so many of SQLite's instructions it is looked at the clock.
const LOOK_EVERY: i32 = 100_000;

/// SQLite's codes: the file is spoiled, it is none of SQLite's, and work was broken off.
const CORRUPT: i32 = 11;
const NOT_A_DATABASE: i32 = 26;
const INTERRUPTED: i32 = 9;

/// Looks through the file that `connection` has open, and is content with what it has seen once the time is over.
pub(crate) async fn check_for_a_while(
    connection: &mut SqliteConnection,
    path: &Path,
) -> Result<(), StoreError> {
    let begun = Instant::now();
    let go_on = move || begun.elapsed() < WITHIN;
    connection.lock_handle().await?.set_progress_handler(LOOK_EVERY, go_on);
    let checked = check(connection, path).await;
    connection.lock_handle().await?.remove_progress_handler();
    match checked {
        Err(StoreError::Unavailable { source }) if code(&source) == Some(INTERRUPTED) => {
            warn!(
                "the check of {} took longer than {WITHIN:?} and was broken off: have --check look through all of it",
                path.display()
            );
            Ok(())
        }
        checked => checked,
    }
}

/// Looks through the whole file that `url` names, if it is there. It is not written, and nothing is made beside it.
pub(crate) async fn check_file(url: &str) -> Result<(), StoreError> {
    let options = SqliteConnectOptions::from_str(url).map_err(|_| StoreError::BadUrl)?;
    let path = options.get_filename().to_owned();
    if url.contains(":memory:") || !path.exists() {
        return Ok(());
    }
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    // With no log beside it, nobody has it open.
    let at_rest = !Path::new(&log).exists();
    let options = options.read_only(true).immutable(at_rest).disable_statement_logging();
    let opened = options.connect().await.map_err(|error| damaged(&path, error));
    let mut connection = opened?;
    let checked = check(&mut connection, &path).await;
    connection.close().await?;
    checked
}

/// Every page, and every row that another refers to.
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
        return refuse(format!("a row of {table} belongs to one of {owner} that is not there"));
    }
    Ok(())
}

/// The error, by name where it says that the file is spoiled.
pub(crate) fn damaged(path: &Path, error: sqlx::Error) -> StoreError {
    match code(&error) {
        Some(CORRUPT | NOT_A_DATABASE) => {
            StoreError::Damaged { path: path.to_owned(), found: error.to_string() }
        }
        _ => error.into(),
    }
}

/// SQLite's primary code of an error.
fn code(error: &sqlx::Error) -> Option<i32> {
    let code = error.as_database_error()?.code()?;
    code.parse::<i32>().ok().map(|code| code & 0xff)
}
