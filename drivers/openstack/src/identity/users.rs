//! Users of others. To be told of them takes an administrator.

use super::SERVICE;
use super::projects::Named;
use crate::error::CloudError;
use crate::session::Session;

/// Those of this name: each domain may have one.
pub async fn named(session: &Session, name: &str) -> Result<Vec<Named>, CloudError> {
    let call = session.get(SERVICE, &["users"]).query("name", name);
    let mut found: Vec<Named> = call.all("users").await?;
    found.retain(|one| one.name == name);
    Ok(found)
}

/// The one of this id.
pub async fn show(session: &Session, id: &str) -> Result<Option<Named>, CloudError> {
    session.get(SERVICE, &["users", id]).find_under("user").await
}
