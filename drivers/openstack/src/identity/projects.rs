//! Projects of others.

use serde::Deserialize;
use serde_json::Value;

use super::SERVICE;
use crate::error::CloudError;
use crate::session::Session;

/// Something that has a name in a domain.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Named {
    /// Its id.
    pub id: String,
    /// Its name, which another one may have in another domain.
    #[serde(default)]
    pub name: String,
    /// The id of its domain.
    #[serde(default)]
    pub domain_id: Option<String>,
}

/// Those of this name: each domain may have one. To be told takes an administrator.
pub async fn named(session: &Session, name: &str) -> Result<Vec<Named>, CloudError> {
    let call = session.get(SERVICE, &["projects"]).query("name", name);
    let mut found: Vec<Named> = call.all("projects").await?;
    found.retain(|one| one.name == name);
    Ok(found)
}

/// The one of this id.
pub async fn show(session: &Session, id: &str) -> Result<Option<Named>, CloudError> {
    session.get(SERVICE, &["projects", id]).find_under("project").await
}

/// Whether there is a project of this id. To be told takes an administrator, or a reader in the whole cloud: others are refused,
/// whether there is one or not.
pub async fn exists(session: &Session, id: &str) -> Result<bool, CloudError> {
    let found = session.get(SERVICE, &["projects", id]).find_under::<Value>("project").await;
    match found {
        Err(CloudError::InvalidId { .. }) => Ok(false),
        found => found.map(|found| found.is_some()),
    }
}
