//! Regions of a cloud.

use serde::Deserialize;

use super::SERVICE;
use crate::error::CloudError;
use crate::session::Session;

/// A region.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Region {
    /// What it is called, everywhere.
    pub id: String,
}

/// All of them.
pub async fn list(session: &Session) -> Result<Vec<Region>, CloudError> {
    session.get(SERVICE, &["regions"]).all("regions").await
}
