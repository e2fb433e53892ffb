//! Migrates the tables of a database, also while programs of the version before go on working on them.

use std::time::Duration;

use jiff::Timestamp;

use crate::{Connection, SqlError, values};
use crate::{Result, StoreError};

/// The tables of one service, as a list of SQL scripts: the first creates version 1, each further script migrates to the next version. A
/// published script is never changed; changes are appended as a new version.
///
/// Scripts are written for both databases, with `SERIAL` for an auto-incremented primary key; `TEXT` compares byte by byte on both. Lines
/// after `-- on SQLite` or `-- on PostgreSQL` are run on that database only, up to the next such line or `-- on both`.
///
/// Several versions of a program work on one database while they are upgraded, so a script only *expands* the tables: it adds tables, indexes,
/// and columns that are NULL or have a default. Programs that do not know the script go on.
///
/// A script with the line `-- needs schema 24 of 0.2.0` *narrows* the database to programs that know schema version 24. These are of version
/// 0.2.0 or newer. The script removes what they do not use any more. Without any SQL, it permits words in documents that only they can read.
/// Such a script waits until no living conductor is older, and then older programs are refused.
///
/// After the line `-- concurrently`, the last part of a script creates indexes of large tables, one in each statement. On PostgreSQL they are
/// built without a lock that writers would wait for.
pub type Schema = &'static [&'static str];

/// The versions of a database: of its tables, and of the oldest program that may work on them.
const TABLES: &str = "CREATE TABLE IF NOT EXISTS schema_version (version BIGINT NOT NULL);\n\
     CREATE TABLE IF NOT EXISTS schema_needs (version BIGINT NOT NULL, program TEXT NOT NULL);";

const NEEDS: &str = "-- needs schema ";
const CONCURRENTLY: &str = "\n-- concurrently\n";

/// How long a statement of a migration waits for a table that others use. Everybody else waits behind the statement meanwhile.
const LOCK_TIMEOUT: Duration = Duration::from_secs(2);

/// The pause before another look whether another program still builds indexes.
const INDEX_PAUSE: Duration = Duration::from_millis(200);

/// The number of the PostgreSQL advisory lock for building indexes: the bytes of `indexing`.
const INDEX_LOCK: i64 = 0x696e_6465_7869_6e67;

/// SQLSTATEs after which a migration is tried again (PostgreSQL 17, Appendix A): lock_not_available, deadlock_detected.
const LOCKED_OUT: [&str; 2] = ["55P03", "40P01"];

/// Migrates the database behind `connection`, which must be in a transaction, as far as the living programs permit. Returns the version that
/// the tables have then.
pub(crate) async fn migrate(connection: &mut Connection, schema: Schema) -> Result<i64> {
    connection.lock_bulk_writes().await?;
    connection.script(in_dialect(connection, TABLES)).await?;
    let found = found(connection).await?;
    let known = schema.len() as i64;
    check_known(connection, known).await?;
    if found >= known {
        return Ok(found);
    }
    limit_lock_waits(connection).await?;
    let mut reached = found;
    for (version, sql) in (1..).zip(schema).skip(found as usize) {
        let needs = needed_by(sql);
        if let Some((needed, _)) = needs
            && let Some(older) = find_older(connection, needed).await?
        {
            return wait_for(older, &schema[reached as usize..]).map(|()| reached);
        }
        tracing::info!("migrating the database to schema version {version}");
        run(connection, version, sql, needs).await?;
        reached = version;
    }
    Ok(reached)
}

async fn run(
    connection: &mut Connection,
    version: i64,
    sql: &str,
    needs: Option<(i64, &str)>,
) -> Result<()> {
    const REACHED: &str = "INSERT INTO schema_version (version) VALUES ($1)";
    const NEEDED: &str = "INSERT INTO schema_needs (version, program) VALUES ($1, $2)";
    let script = in_dialect(connection, sql);
    if script.lines().any(|line| !line.is_empty() && !line.starts_with("--")) {
        connection.script(script).await?;
    }
    connection.execute(REACHED, values![version]).await?;
    if let Some((needed, program)) = needs {
        connection.execute(NEEDED, values![needed, program]).await?;
    }
    Ok(())
}

/// Permits the remaining scripts to wait for an older program, if this program works without them: all of them narrow the database.
fn wait_for(older: OlderProgram, rest: &[&str]) -> Result<()> {
    let OlderProgram { hostname, version } = older;
    if rest.iter().all(|sql| needed_by(sql).is_some()) {
        tracing::info!(
            "a part of the upgrade waits until conductor {hostname} ends, which runs version {version}"
        );
        return Ok(());
    }
    Err(StoreError::OlderProgram { hostname, version })
}

/// A living conductor that does not know a version of the schema.
struct OlderProgram {
    hostname: String,
    version: String,
}

async fn find_older(connection: &mut Connection, version: i64) -> Result<Option<OlderProgram>> {
    const IS_RECORDED: &str = "SELECT count(*) FROM information_schema.columns \
         WHERE table_schema = current_schema() AND table_name = 'conductors' AND column_name = 'schema_known'";
    const OLDER: &str = "SELECT hostname, program FROM conductors \
         WHERE alive_until > $1 AND schema_known < $2 ORDER BY hostname LIMIT 1";
    // SQLite has one program.
    if let Connection::Sqlite(_) = connection {
        return Ok(None);
    }
    let recorded = connection.row(IS_RECORDED, values![]).await?;
    if recorded.map_or(Ok(0), |row| row.int(0))? == 0 {
        return Ok(None);
    }
    let now = connection.clock(Timestamp::UNIX_EPOCH).await?;
    let Some(row) = connection.row(OLDER, values![now, version]).await? else { return Ok(None) };
    Ok(Some(OlderProgram { hostname: row.text(0)?.to_owned(), version: row.text(1)?.to_owned() }))
}

/// The schema version of the database; 0 if it has no tables yet.
pub(crate) async fn found(connection: &mut Connection) -> Result<i64> {
    let row = connection.row("SELECT max(version) FROM schema_version", values![]).await?;
    Ok(row.map(|row| row.optional_int(0)).transpose()?.flatten().unwrap_or(0))
}

/// The schema version that every program has to know, and the first version of the programs that know it.
async fn needs(connection: &mut Connection) -> Result<Option<(i64, String)>> {
    const NEEDED: &str = "SELECT version, program FROM schema_needs ORDER BY version DESC LIMIT 1";
    let row = connection.row(NEEDED, values![]).await?;
    row.map(|row| Ok((row.int(0)?, row.text(1)?.to_owned()))).transpose()
}

/// Refuses a program that does not know the schema version that the database needs. Returns that version.
pub(crate) async fn check_known(connection: &mut Connection, known: i64) -> Result<i64> {
    match needs(connection).await? {
        Some((needed, program)) if needed > known => {
            let found = found(connection).await?;
            Err(StoreError::NewerSchema { found, known, program })
        }
        Some((needed, _)) => Ok(needed),
        None => Ok(0),
    }
}

/// Whether others used a table that the migration changes, so that the migration has to be tried again.
pub(crate) fn is_locked_out(error: &StoreError) -> bool {
    let StoreError::Unavailable { source } = error else { return false };
    let SqlError::Postgres(error) = &**source else { return false };
    let code = error.as_database_error().and_then(|refused| refused.code());
    code.is_some_and(|code| LOCKED_OUT.contains(&&*code))
}

async fn limit_lock_waits(connection: &mut Connection) -> Result<()> {
    if let Connection::Postgres(_) = connection {
        let limit = format!("SET LOCAL lock_timeout = {}", LOCK_TIMEOUT.as_millis());
        connection.script(limit).await?;
    }
    Ok(())
}

/// The schema version that programs have to know after this script, and the first version of these programs; `None` if the script expands.
fn needed_by(sql: &str) -> Option<(i64, &str)> {
    let line = sql.lines().find_map(|line| line.strip_prefix(NEEDS))?;
    let (version, program) = line.split_once(" of ")?;
    Some((version.parse().ok()?, program))
}

/// Whether any of these scripts names indexes after `-- concurrently`.
pub(crate) fn has_concurrent_indexes(scripts: Schema) -> bool {
    scripts.iter().any(|sql| sql.contains(CONCURRENTLY))
}

/// Creates the indexes that the scripts of a PostgreSQL database name after `-- concurrently`, unless they exist. The connection must not be in
/// a transaction.
pub(crate) async fn build_indexes(connection: &mut Connection, scripts: Schema) -> Result<()> {
    const LOCK: &str = "SELECT CAST(CAST(pg_try_advisory_lock($1) AS INTEGER) AS BIGINT)";
    const UNLOCK: &str = "SELECT pg_advisory_unlock($1)";
    let wanted = concurrent_indexes(scripts);
    // A statement that waited for the lock would be a transaction that the builder of the index waits for.
    while connection.row(LOCK, values![INDEX_LOCK]).await?.map_or(Ok(0), |row| row.int(0))? == 0 {
        tokio::time::sleep(INDEX_PAUSE).await;
    }
    let built = build_missing(connection, wanted).await;
    connection.row(UNLOCK, values![INDEX_LOCK]).await?;
    built
}

async fn build_missing(connection: &mut Connection, wanted: Vec<(&str, String)>) -> Result<()> {
    const STATE: &str = "SELECT CAST(CAST(indisvalid AS INTEGER) AS BIGINT) FROM pg_index \
         WHERE indexrelid = to_regclass($1)";
    for (name, create) in wanted {
        match connection.row(STATE, values![name]).await?.map(|row| row.int(0)).transpose()? {
            Some(1) => continue,
            // A program ended while it built the index.
            Some(_) => connection.script(format!("DROP INDEX CONCURRENTLY {name}")).await?,
            None => {}
        }
        tracing::info!("building the index {name}");
        connection.script(create).await?;
    }
    Ok(())
}

/// The names of the indexes that are built concurrently, with the statements of PostgreSQL. An index that a later script drops is left out.
fn concurrent_indexes(scripts: Schema) -> Vec<(&'static str, String)> {
    let mut found = Vec::new();
    for (later, sql) in (1..).zip(scripts) {
        let Some((_, statements)) = sql.split_once(CONCURRENTLY) else { continue };
        for statement in statements.split(';') {
            let Some((create, index)) = statement.trim().split_once(" INDEX ") else { continue };
            let name = index.split(' ').next().unwrap_or_default();
            let drop = format!("DROP INDEX {name};");
            if !scripts[later..].iter().any(|sql| sql.contains(&drop)) {
                found.push((name, format!("{create} INDEX CONCURRENTLY {index}")));
            }
        }
    }
    found
}

/// Translates a script to the dialect of this database. Indexes that are built concurrently on PostgreSQL are left out.
fn in_dialect(connection: &Connection, sql: &str) -> String {
    match connection {
        Connection::Sqlite(_) => {
            without(sql, ON_POSTGRES).replace("SERIAL", "INTEGER PRIMARY KEY AUTOINCREMENT")
        }
        Connection::Postgres(_) => {
            let sql = sql.split_once(CONCURRENTLY).map_or(sql, |(sql, _)| sql);
            without(sql, ON_SQLITE)
                .replace("SERIAL", "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY")
                .replace("TEXT", "TEXT COLLATE \"C\"")
        }
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
mod tests;
