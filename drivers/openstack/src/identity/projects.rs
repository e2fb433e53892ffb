//! Projects of others.

use serde_json::Value;

use super::SERVICE;
use crate::error::CloudError;
use crate::session::Session;

/// Whether there is a project of this id. To be told takes an administrator, or a reader in the whole cloud: others are refused,
/// whether there is one or not.
pub async fn exists(session: &Session, id: &str) -> Result<bool, CloudError> {
    let found = session.get(SERVICE, &["projects", id]).find_under::<Value>("project").await;
    match found {
        Err(CloudError::InvalidId { .. }) => Ok(false),
        found => found.map(|found| found.is_some()),
    }
}
