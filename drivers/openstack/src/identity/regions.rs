//! Regions of a cloud.

use serde::Deserialize;

use super::SERVICE;
use crate::error::Result;
use crate::session::Session;

/// A region of a cloud.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Region {
    /// Unique in the cloud; used as the name.
    pub id: String,
}

/// Lists all regions.
pub async fn list(session: &Session) -> Result<Vec<Region>> {
    session.get(SERVICE, &["regions"]).all("regions").await
}
