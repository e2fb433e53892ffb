//! The table `hypervisor_profiles`: one document per profile.

use baremetal_core::Profile;
use database::documents::{self, known_part};
use database::table::{
    PagePart, PageRows, changed_one, cut, is_missing_owner, violated_unique_column,
};
use database::{Connection, Query, Result, Row, StoreError, columns, program, values};
use jiff::Timestamp;
use serde_json::Value;

use crate::secrets;

/// A profile as stored, with its secrets sealed.
#[derive(Clone, Debug, PartialEq)]
pub struct ProfileRow {
    pub profile: Profile,
    /// Counts the writes. A write that names an older version is refused.
    pub version: i64,
    pub created_at: Timestamp,
    /// When the profile was last written; `None` before the first change.
    pub updated_at: Option<Timestamp>,
}

const TABLE: &str = "hypervisor_profiles";
const SELECT: &str =
    "SELECT name, version, created_at, updated_at, document FROM hypervisor_profiles";

pub(crate) async fn insert(
    connection: &mut Connection,
    name: &str,
    document: &Value,
    now: Timestamp,
) -> Result<()> {
    let columns = columns![
        name: name,
        version: 1_i64,
        created_at: now,
        document: document.to_string(),
        written_by: program::NUMBER,
        sealed_by: secrets::sealed_by(document),
    ];
    match columns::insert(connection, TABLE, columns).await {
        Err(error) if violated_unique_column(&error).is_some() => {
            Err(StoreError::Duplicate { field: "name", value: name.to_owned() })
        }
        written => Ok(written.map(drop)?),
    }
}

pub(crate) async fn update(
    connection: &mut Connection,
    name: &str,
    document: &Value,
    version: i64,
    now: Timestamp,
) -> Result<()> {
    let columns = || {
        Ok(columns![
            name: name,
            version: version,
            updated_at: now,
            document: document.to_string(),
            written_by: program::NUMBER,
            sealed_by: secrets::sealed_by(document),
        ])
    };
    let known = known_part::<Profile>;
    changed_one(documents::update(connection, TABLE, columns, known, StoreError::from).await?)
}

/// Writes the re-encrypted secrets of a profile. Nothing else of the profile changes.
pub(crate) async fn reseal(
    connection: &mut Connection,
    name: &str,
    document: &Value,
    version: i64,
) -> Result<()> {
    const RESEAL: &str = "UPDATE hypervisor_profiles SET version = $2 + 1, document = $3, sealed_by = $4 \
         WHERE name = $1 AND version = $2";
    let values = values![name, version, document.to_string(), secrets::sealed_by(document)];
    changed_one(connection.execute(RESEAL, values).await?)
}

/// Deletes a profile, if its version has not changed since it was read. Fails with `InUse` while the goal of a rack names the profile.
pub(crate) async fn delete(connection: &mut Connection, name: &str, version: i64) -> Result<()> {
    const DELETE: &str = "DELETE FROM hypervisor_profiles WHERE name = $1 AND version = $2";
    match connection.execute(DELETE, values![name, version]).await {
        Err(error) if is_missing_owner(&error) => {
            Err(StoreError::InUse { by: "the goal of a rack" })
        }
        done => changed_one(done?),
    }
}

pub(crate) async fn find(connection: &mut Connection, name: &str) -> Result<Option<ProfileRow>> {
    let mut query = Query::new(SELECT);
    query.and_value("name = ?", name);
    query.row(connection).await?.as_ref().map(read).transpose()
}

/// Returns a part of all profiles, sorted by name. A part continues after a name.
pub(crate) async fn list_part(
    connection: &mut Connection,
    limit: u32,
    part: &PagePart<String>,
) -> Result<PageRows<ProfileRow, String>> {
    let mut query = Query::new(SELECT);
    query.and_if_set("name > ?", part.after.as_deref());
    let mut rows = query.first_by("name", false, limit).rows(connection).await?;
    let is_full = cut(&mut rows, limit, part.bytes, 4)?;
    let last = rows.last().filter(|_| is_full).map(|row| row.text(0)).transpose()?;
    let more = last.map(str::to_owned);
    let found = rows.iter().map(read).collect::<Result<_>>()?;
    Ok(PageRows { found, more })
}

/// Returns the profiles that `key` has sealed; with `None`, the profiles that have not been scanned yet.
pub(crate) async fn sealed_by(
    connection: &mut Connection,
    key: Option<&str>,
) -> Result<Vec<(String, Value, i64)>> {
    let mut query = Query::new("SELECT name, version, document FROM hypervisor_profiles");
    match key {
        Some(key) => query.and_value("sealed_by = ?", key),
        None => query.and("sealed_by IS NULL"),
    }
    let read = |row: &Row| Ok((row.text(0)?.to_owned(), row.json(TABLE, 2)?, row.int(1)?));
    query.rows(connection).await?.iter().map(read).collect()
}

fn read(row: &Row) -> Result<ProfileRow> {
    Ok(ProfileRow {
        profile: row.json(TABLE, 4)?,
        version: row.int(1)?,
        created_at: row.time(TABLE, 2)?,
        updated_at: row.optional_time(TABLE, 3)?,
    })
}
