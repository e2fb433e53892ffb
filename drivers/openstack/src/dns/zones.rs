//! Zones: what a project may name.

use serde::Deserialize;
use serde_json::json;

use super::{DnsStatus, PAGE, SERVICE};
use crate::error::CloudError;
use crate::lenient;
use crate::session::Session;

/// A zone.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Zone {
    /// Its id.
    pub id: String,
    /// Its name, with a dot at the end. No other zone has it.
    pub name: String,
    /// How far it is.
    pub status: DnsStatus,
    /// The project that it is of.
    #[serde(default)]
    pub project_id: Option<String>,
    /// What it is for.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub description: String,
    /// How long answers may be kept, in seconds.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub ttl: u32,
}

/// Makes a zone. A conflict says that somebody has it, ourselves perhaps: look for it by [`find`].
///
/// `name` ends with a dot; `email` is who answers for the zone.
pub async fn create(
    session: &Session,
    name: &str,
    email: &str,
    description: &str,
) -> Result<Zone, CloudError> {
    let body = json!({"name": name, "email": email, "description": description, "type": "PRIMARY"});
    session.post(SERVICE, &["zones"], body).send().await?.whole()
}

/// The zone with this id.
pub async fn show(session: &Session, id: &str) -> Result<Option<Zone>, CloudError> {
    let shown = async { session.get(SERVICE, &["zones", id]).send().await?.whole() };
    crate::error::if_found(shown.await)
}

/// Ours of this name, which ends with a dot.
pub async fn find(session: &Session, name: &str) -> Result<Option<Zone>, CloudError> {
    let call = session.get(SERVICE, &["zones"]).query("limit", PAGE).query("name", name);
    // Designate takes `*` in a name for anything.
    let zones: Vec<Zone> = call.all("zones").await?;
    Ok(zones.into_iter().find(|zone| zone.name == name))
}

/// Deletes a zone with all names in it, which takes its time.
pub async fn delete(session: &Session, id: &str) -> Result<(), CloudError> {
    session.delete(SERVICE, &["zones", id]).await
}
