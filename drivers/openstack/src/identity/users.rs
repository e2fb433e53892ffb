//! Users of the cloud. Administrators only.

use super::SERVICE;
use super::projects::Named;
use crate::error::Result;
use crate::session::Session;

/// Lists the users of this name: each domain may have one.
pub async fn named(session: &Session, name: &str) -> Result<Vec<Named>> {
    let call = session.get(SERVICE, &["users"]).query("name", name);
    let mut found: Vec<Named> = call.all("users").await?;
    found.retain(|one| one.name == name);
    Ok(found)
}

/// Returns the user with this id.
pub async fn show(session: &Session, id: &str) -> Result<Option<Named>> {
    session.get(SERVICE, &["users", id]).find_under("user").await
}
