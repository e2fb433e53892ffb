//! Services in the catalogue. Only administrators can change them.

use serde::Deserialize;
use serde_json::json;

use super::SERVICE;
use crate::error::Result;
use crate::lenient;
use crate::session::Session;

/// A service in the catalogue.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct RegisteredService {
    pub id: String,
    /// The type of the service's API.
    #[serde(rename = "type", default)]
    pub kind: String,
    /// Names are not unique.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub name: String,
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub description: String,
    /// Whether tokens list the service.
    #[serde(default = "yes")]
    pub enabled: bool,
}

/// The default of `enabled`, which Keystone may leave out.
pub(super) fn yes() -> bool {
    true
}

/// Lists the services of a type. Keystone accepts several.
pub async fn find(session: &Session, kind: &str) -> Result<Vec<RegisteredService>> {
    let call = session.get(SERVICE, &["services"]).query("type", kind);
    let mut found: Vec<RegisteredService> = call.all("services").await?;
    found.retain(|one| one.kind == kind);
    Ok(found)
}

/// Creates a service. Keystone accepts a second service of a type, so look first with [`find`].
pub async fn create(
    session: &Session,
    kind: &str,
    name: &str,
    description: &str,
) -> Result<RegisteredService> {
    let body = json!({"service": {"type": kind, "name": name, "description": description}});
    session.post(SERVICE, &["services"], body).under("service").await
}

/// Enables a service, so that tokens list it again.
pub async fn enable(session: &Session, id: &str) -> Result<()> {
    let body = json!({"service": {"enabled": true}});
    session.patch(SERVICE, &["services", id], body).done().await
}

/// Deletes a service with its endpoints.
pub async fn delete(session: &Session, id: &str) -> Result<()> {
    session.delete(SERVICE, &["services", id]).await
}
