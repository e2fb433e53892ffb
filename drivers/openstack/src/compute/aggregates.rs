//! Host aggregates, some of which are availability zones. Administrators only.

use serde::{Deserialize, Deserializer};
use serde_json::json;

use super::{MICROVERSION, SERVICE};
use crate::error::Result;
use crate::lenient;
use crate::session::Session;

/// A host aggregate.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Aggregate {
    /// Nova's id is a number.
    #[serde(deserialize_with = "number")]
    pub id: String,
    /// Unique among aggregates.
    pub name: String,
    #[serde(default)]
    pub availability_zone: Option<String>,
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub hosts: Vec<String>,
}

fn number<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    u64::deserialize(from).map(|id| id.to_string())
}

/// Lists all aggregates.
pub async fn list(session: &Session) -> Result<Vec<Aggregate>> {
    let call = session.get(SERVICE, &["os-aggregates"]).microversion(MICROVERSION);
    call.under("aggregates").await
}

/// Creates an aggregate, optionally with an availability zone. A conflict means that the name is in use.
pub async fn create(session: &Session, name: &str, zone: Option<&str>) -> Result<Aggregate> {
    let body = json!({"aggregate": {"name": name, "availability_zone": zone}});
    let call = session.post(SERVICE, &["os-aggregates"], body).microversion(MICROVERSION);
    call.under("aggregate").await
}

/// Adds a host to an aggregate. A conflict means that the host is in it already, or in another availability zone.
pub async fn add_host(session: &Session, id: &str, host: &str) -> Result<()> {
    act(session, id, json!({"add_host": {"host": host}})).await
}

/// Removes a host from an aggregate.
pub async fn remove_host(session: &Session, id: &str, host: &str) -> Result<()> {
    act(session, id, json!({"remove_host": {"host": host}})).await
}

async fn act(session: &Session, id: &str, body: serde_json::Value) -> Result<()> {
    let path = ["os-aggregates", id, "action"];
    session.post(SERVICE, &path, body).microversion(MICROVERSION).done().await
}

/// Deletes an aggregate, which must have no hosts.
pub async fn delete(session: &Session, id: &str) -> Result<()> {
    let call = session.deleting(SERVICE, &["os-aggregates", id]).microversion(MICROVERSION);
    call.done_or_gone().await
}
