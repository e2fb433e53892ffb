//! Recordsets: what a name in a zone leads to.

use serde::Deserialize;
use serde_json::json;

use super::{DnsStatus, PAGE, SERVICE};
use crate::body::without_nulls;
use crate::error::{CloudError, if_found};
use crate::lenient;
use crate::session::Session;

/// What a name leads to.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Recordset {
    /// Its id.
    pub id: String,
    /// The name, with a dot at the end.
    pub name: String,
    /// `A`, `AAAA`, `CNAME` … One zone has one recordset of a name and a type.
    #[serde(rename = "type")]
    pub kind: String,
    /// How far it is.
    pub status: DnsStatus,
    /// Where the name leads.
    #[serde(default)]
    pub records: Vec<String>,
    /// What it is for.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub description: String,
    /// How long answers may be kept, in seconds; the zone's if `None`.
    #[serde(default)]
    pub ttl: Option<u32>,
}

/// What a name is to lead to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewRecordset {
    /// The name, with a dot at the end.
    pub name: String,
    /// `A`, `AAAA`, `CNAME` …
    pub kind: String,
    /// Where it is to lead.
    pub records: Vec<String>,
    /// What it is for. Derive it from what it belongs to: it tells ours from those that were there before.
    pub description: String,
    /// How long answers may be kept, in seconds; the zone's if `None`.
    pub ttl: Option<u32>,
}

/// Names something. A conflict says that the name leads somewhere, as asked perhaps: look for it by [`find`].
pub async fn create(
    session: &Session,
    zone_id: &str,
    new: &NewRecordset,
) -> Result<Recordset, CloudError> {
    let body = without_nulls(json!({
        "name": new.name,
        "type": new.kind,
        "records": new.records,
        "description": new.description,
        "ttl": new.ttl,
    }));
    session.post(SERVICE, &["zones", zone_id, "recordsets"], body).send().await?.whole()
}

/// What this name and type lead to in a zone.
pub async fn find(
    session: &Session,
    zone_id: &str,
    name: &str,
    kind: &str,
) -> Result<Option<Recordset>, CloudError> {
    let call = session.get(SERVICE, &["zones", zone_id, "recordsets"]).query("limit", PAGE);
    let call = call.query("name", name).query("type", kind);
    let found: Vec<Recordset> = call.all("recordsets").await?;
    Ok(found.into_iter().find(|one| one.name == name && one.kind == kind))
}

/// The one with this id.
pub async fn show(
    session: &Session,
    zone_id: &str,
    id: &str,
) -> Result<Option<Recordset>, CloudError> {
    let call = session.get(SERVICE, &["zones", zone_id, "recordsets", id]);
    if_found(async { call.send().await?.whole() }.await)
}

/// All of a zone, what the zone itself needs (SOA, NS) among it.
pub async fn list(session: &Session, zone_id: &str) -> Result<Vec<Recordset>, CloudError> {
    let call = session.get(SERVICE, &["zones", zone_id, "recordsets"]).query("limit", PAGE);
    call.all("recordsets").await
}

/// Has a name lead elsewhere.
pub async fn set_records(
    session: &Session,
    zone_id: &str,
    id: &str,
    records: &[String],
) -> Result<Recordset, CloudError> {
    let path = ["zones", zone_id, "recordsets", id];
    session.put(SERVICE, &path, json!({"records": records})).send().await?.whole()
}

/// Deletes a recordset, which takes its time.
pub async fn delete(session: &Session, zone_id: &str, id: &str) -> Result<(), CloudError> {
    session.delete(SERVICE, &["zones", zone_id, "recordsets", id]).await
}
