//! Flavors of load balancers.

use serde::Deserialize;

use super::SERVICE;
use crate::error::Result;
use crate::session::Session;

/// A flavor of load balancers.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Flavor {
    pub id: String,
    /// Unique among these flavors.
    #[serde(default)]
    pub name: String,
    #[serde(default)]
    pub enabled: bool,
}

/// Lists all enabled flavors. A cloud may have none.
pub async fn list(session: &Session) -> Result<Vec<Flavor>> {
    let mut flavors: Vec<Flavor> = session.get(SERVICE, &["flavors"]).all("flavors").await?;
    flavors.retain(|flavor| flavor.enabled);
    Ok(flavors)
}
