//! Flavors: the kinds that load balancers come in.

use serde::Deserialize;

use super::SERVICE;
use crate::error::CloudError;
use crate::session::Session;

/// A kind that load balancers come in.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Flavor {
    /// Its id.
    pub id: String,
    /// Its name, which no other has.
    #[serde(default)]
    pub name: String,
    /// Whether it can be used.
    #[serde(default)]
    pub enabled: bool,
}

/// All that can be used. A cloud need not have any.
pub async fn list(session: &Session) -> Result<Vec<Flavor>, CloudError> {
    let mut flavors: Vec<Flavor> = session.get(SERVICE, &["flavors"]).all("flavors").await?;
    flavors.retain(|flavor| flavor.enabled);
    Ok(flavors)
}
