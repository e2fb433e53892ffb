//! Recordsets: the records of a name in a zone.

use serde::Deserialize;
use serde_json::json;

use super::{DnsStatus, PAGE, SERVICE};
use crate::body::without_nulls;
use crate::error::{Result, if_found};
use crate::lenient;
use crate::session::Session;

/// The records of one name and type.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Recordset {
    pub id: String,
    /// The name with a final dot.
    pub name: String,
    /// `A`, `AAAA`, `CNAME` … A zone has at most one recordset for a name and a type.
    #[serde(rename = "type")]
    pub kind: String,
    pub status: DnsStatus,
    #[serde(default)]
    pub records: Vec<String>,
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub description: String,
    /// Time to live in seconds; `None` is the zone's value.
    #[serde(default)]
    pub ttl: Option<u32>,
}

/// A recordset to create.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewRecordset {
    /// The name with a final dot.
    pub name: String,
    /// Type of the records: `A`, `AAAA`, `CNAME` …
    pub kind: String,
    pub records: Vec<String>,
    /// Derive the description from the recordset's owner: it distinguishes our recordsets from those that existed before.
    pub description: String,
    /// Time to live in seconds; `None` is the zone's value.
    pub ttl: Option<u32>,
}

/// Creates a recordset. A conflict means that name and type exist, possibly by an earlier request: look with [`find`].
pub async fn create(session: &Session, zone_id: &str, new: &NewRecordset) -> Result<Recordset> {
    let body = without_nulls(json!({
        "name": new.name,
        "type": new.kind,
        "records": new.records,
        "description": new.description,
        "ttl": new.ttl,
    }));
    session.post(SERVICE, &["zones", zone_id, "recordsets"], body).send().await?.whole()
}

/// Returns the recordset of this name and type in a zone.
pub async fn find(
    session: &Session,
    zone_id: &str,
    name: &str,
    kind: &str,
) -> Result<Option<Recordset>> {
    let call = session.get(SERVICE, &["zones", zone_id, "recordsets"]).query("limit", PAGE);
    let call = call.query("name", name).query("type", kind);
    let found: Vec<Recordset> = call.all("recordsets").await?;
    Ok(found.into_iter().find(|one| one.name == name && one.kind == kind))
}

/// Returns the recordset with this id.
pub async fn show(session: &Session, zone_id: &str, id: &str) -> Result<Option<Recordset>> {
    let call = session.get(SERVICE, &["zones", zone_id, "recordsets", id]);
    if_found(async { call.send().await?.whole() }.await)
}

/// Lists all recordsets of a zone, including the zone's own SOA and NS.
pub async fn list(session: &Session, zone_id: &str) -> Result<Vec<Recordset>> {
    let call = session.get(SERVICE, &["zones", zone_id, "recordsets"]).query("limit", PAGE);
    call.all("recordsets").await
}

/// Replaces the records of a recordset.
pub async fn set_records(
    session: &Session,
    zone_id: &str,
    id: &str,
    records: &[String],
) -> Result<Recordset> {
    let path = ["zones", zone_id, "recordsets", id];
    session.put(SERVICE, &path, json!({"records": records})).send().await?.whole()
}

/// Requests the deletion of a recordset; Designate deletes it in the background.
pub async fn delete(session: &Session, zone_id: &str, id: &str) -> Result<()> {
    session.delete(SERVICE, &["zones", zone_id, "recordsets", id]).await
}
