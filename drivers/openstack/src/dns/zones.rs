//! Zones: the domains of a project.

use serde::Deserialize;
use serde_json::json;

use super::{DnsStatus, PAGE, SERVICE};
use crate::error::Result;
use crate::lenient;
use crate::session::Session;

/// A DNS zone.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Zone {
    pub id: String,
    /// The name with a final dot. Unique among zones.
    pub name: String,
    pub status: DnsStatus,
    #[serde(default)]
    pub project_id: Option<String>,
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub description: String,
    /// Time to live in seconds.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub ttl: u32,
}

/// Creates a zone. A conflict means that the name is in use, possibly by us: look with [`find`].
///
/// `name` has a final dot; `email` is the address of the zone's administrator.
pub async fn create(session: &Session, name: &str, email: &str, description: &str) -> Result<Zone> {
    let body = json!({"name": name, "email": email, "description": description, "type": "PRIMARY"});
    session.post(SERVICE, &["zones"], body).send().await?.whole()
}

/// Returns the zone with this id.
pub async fn show(session: &Session, id: &str) -> Result<Option<Zone>> {
    let shown = async { session.get(SERVICE, &["zones", id]).send().await?.whole() };
    crate::error::if_found(shown.await)
}

/// Returns our zone of this name, which has a final dot.
pub async fn find(session: &Session, name: &str) -> Result<Option<Zone>> {
    let call = session.get(SERVICE, &["zones"]).query("limit", PAGE).query("name", name);
    // Designate treats `*` in a name as a wildcard, so the names are compared here.
    let zones: Vec<Zone> = call.all("zones").await?;
    Ok(zones.into_iter().find(|zone| zone.name == name))
}

/// Requests the deletion of a zone with all its recordsets; Designate deletes it in the background.
pub async fn delete(session: &Session, id: &str) -> Result<()> {
    session.delete(SERVICE, &["zones", id]).await
}
