//! The table `racks`: one document per rack.

use baremetal_core::Rack;
use database::documents::{self, known_part};
use database::table::{
    PagePart, PageRows, changed_one, cut, is_missing_owner, violated_unique_column,
};
use database::{
    Column, Connection, Query, Result, Row, SqlError, StoreError, columns, program, values,
};
use serde_json::Value;

use crate::secrets;

const TABLE: &str = "racks";

pub(crate) async fn insert(
    connection: &mut Connection,
    name: &str,
    document: &Value,
) -> Result<()> {
    match columns::insert(connection, TABLE, columns(name, document, 1)).await {
        // The profile was deleted meanwhile.
        Err(error) if is_missing_owner(&error) => Err(StoreError::Stale),
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
) -> Result<()> {
    let columns = || Ok(columns(name, document, version));
    let refused = |error: SqlError| match is_missing_owner(&error) {
        true => StoreError::Stale,
        false => error.into(),
    };
    changed_one(documents::update(connection, TABLE, columns, known_part::<Rack>, refused).await?)
}

fn columns(name: &str, document: &Value, version: i64) -> Vec<Column> {
    columns![
        name: name,
        version: version,
        document: document.to_string(),
        written_by: program::NUMBER,
        sealed_by: secrets::sealed_by(document),
        profile: profile(document),
    ]
}

/// Returns the hypervisor profile that the rack's goal names. The foreign key of this column keeps the profile from being deleted.
fn profile(document: &Value) -> Option<&str> {
    document.pointer("/goal/profile")?.as_str()
}

/// Returns the racks that `key` has sealed; with `None`, the racks that have not been scanned yet.
pub(crate) async fn sealed_by(
    connection: &mut Connection,
    key: Option<&str>,
) -> Result<Vec<(String, Value, i64)>> {
    let mut query = Query::new("SELECT name, version, document FROM racks");
    match key {
        Some(key) => query.and_value("sealed_by = ?", key),
        None => query.and("sealed_by IS NULL"),
    }
    query.rows(connection).await?.iter().map(read).collect()
}

pub(crate) async fn delete(connection: &mut Connection, name: &str) -> Result<()> {
    connection.execute("DELETE FROM racks WHERE name = $1", values![name]).await?;
    Ok(())
}

pub(crate) async fn find(connection: &mut Connection, name: &str) -> Result<Option<(Value, i64)>> {
    const FIND: &str = "SELECT name, version, document FROM racks WHERE name = $1";
    let row = connection.row(FIND, values![name]).await?;
    let rack = row.as_ref().map(read).transpose()?;
    Ok(rack.map(|(_, document, version)| (document, version)))
}

/// Returns all racks, sorted by name.
pub(crate) async fn list(connection: &mut Connection) -> Result<Vec<(String, Value, i64)>> {
    const LIST: &str = "SELECT name, version, document FROM racks ORDER BY name";
    connection.rows(LIST, values![]).await?.iter().map(read).collect()
}

/// Returns a part of all racks, sorted by name. A part continues after a name.
pub(crate) async fn list_part(
    connection: &mut Connection,
    limit: u32,
    part: &PagePart<String>,
) -> Result<PageRows<(String, Value, i64), String>> {
    let mut query = Query::new("SELECT name, version, document FROM racks");
    query.and_if_set("name > ?", part.after.as_deref());
    let mut rows = query.first_by("name", false, limit).rows(connection).await?;
    let is_full = cut(&mut rows, limit, part.bytes, 2)?;
    let found = rows.iter().map(read).collect::<Result<Vec<_>>>()?;
    let more = found.last().filter(|_| is_full).map(|(name, ..)| name.clone());
    Ok(PageRows { found, more })
}

fn read(row: &Row) -> Result<(String, Value, i64)> {
    Ok((row.text(0)?.to_owned(), row.json(TABLE, 2)?, row.int(1)?))
}
