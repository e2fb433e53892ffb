//! Projects of the cloud.

use serde::Deserialize;
use serde_json::Value;

use super::SERVICE;
use crate::error::{CloudError, Result};
use crate::session::Session;

/// An object with a name that is unique in its domain.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Named {
    pub id: String,
    /// Another domain may have the same name.
    #[serde(default)]
    pub name: String,
    #[serde(default)]
    pub domain_id: Option<String>,
}

/// Lists the projects of this name: each domain may have one. Administrators only.
pub async fn named(session: &Session, name: &str) -> Result<Vec<Named>> {
    let call = session.get(SERVICE, &["projects"]).query("name", name);
    let mut found: Vec<Named> = call.all("projects").await?;
    found.retain(|one| one.name == name);
    Ok(found)
}

/// Returns the project with this id.
pub async fn show(session: &Session, id: &str) -> Result<Option<Named>> {
    session.get(SERVICE, &["projects", id]).find_under("project").await
}

/// Whether a project with this id exists. Only for administrators and system-wide readers: others are refused whether or not the project
/// exists.
pub async fn exists(session: &Session, id: &str) -> Result<bool> {
    let found = session.get(SERVICE, &["projects", id]).find_under::<Value>("project").await;
    match found {
        Err(CloudError::InvalidId { .. }) => Ok(false),
        found => found.map(|found| found.is_some()),
    }
}
