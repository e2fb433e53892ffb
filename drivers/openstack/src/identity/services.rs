//! Services as the catalogue has them. To change them takes an administrator.

use serde::Deserialize;
use serde_json::json;

use super::SERVICE;
use crate::error::CloudError;
use crate::lenient;
use crate::session::Session;

/// A service in the catalogue.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct RegisteredService {
    /// Its id.
    pub id: String,
    /// Its type: what its API is.
    #[serde(rename = "type", default)]
    pub kind: String,
    /// Its name, which others may have too.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub name: String,
    /// Whether tokens show it.
    #[serde(default = "yes")]
    pub enabled: bool,
}

/// What is not said to be hidden is shown.
pub(super) fn yes() -> bool {
    true
}

/// Those of a type. Keystone does not mind several.
pub async fn find(session: &Session, kind: &str) -> Result<Vec<RegisteredService>, CloudError> {
    let call = session.get(SERVICE, &["services"]).query("type", kind);
    let mut found: Vec<RegisteredService> = call.all("services").await?;
    found.retain(|one| one.kind == kind);
    Ok(found)
}

/// Makes one. To make two of a type is possible: look first, by [`find`].
pub async fn create(
    session: &Session,
    kind: &str,
    name: &str,
    description: &str,
) -> Result<RegisteredService, CloudError> {
    let body = json!({"service": {"type": kind, "name": name, "description": description}});
    session.post(SERVICE, &["services"], body).under("service").await
}

/// Has tokens show one again.
pub async fn enable(session: &Session, id: &str) -> Result<(), CloudError> {
    let body = json!({"service": {"enabled": true}});
    session.patch(SERVICE, &["services", id], body).done().await
}

/// Removes one, and its endpoints with it.
pub async fn delete(session: &Session, id: &str) -> Result<(), CloudError> {
    session.delete(SERVICE, &["services", id]).await
}
