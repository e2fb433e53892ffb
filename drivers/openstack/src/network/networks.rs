//! Networks.

use serde::Deserialize;
use serde_json::json;

use super::Kind;
use crate::body::without_nulls;
use crate::error::CloudError;
use crate::lenient;
use crate::session::Session;

const KIND: Kind = Kind { path: "networks", one: "network", many: "networks" };

/// A network.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Network {
    /// Its id.
    pub id: String,
    /// Its name, which others may have as well.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub name: String,
    /// `ACTIVE`, `DOWN`, `BUILD` or `ERROR`.
    #[serde(default)]
    pub status: String,
    /// The ids of its subnets.
    #[serde(default)]
    pub subnets: Vec<String>,
    /// Whether floating IPs come from it.
    #[serde(default, rename = "router:external")]
    pub is_external: bool,
    /// Whether other projects may use it.
    #[serde(default, rename = "shared")]
    pub is_shared: bool,
    /// The project that it is of.
    #[serde(default)]
    pub project_id: Option<String>,
    /// The largest packet it carries, in bytes.
    #[serde(default)]
    pub mtu: Option<u32>,
    /// Its tags.
    #[serde(default)]
    pub tags: Vec<String>,
}

/// A network to be made.
#[derive(Clone, Debug, Default)]
pub struct NewNetwork {
    /// Its name. Derive it from what the network is: it is how it is found again.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// The largest packet it carries; what the cloud likes if `None`.
    pub mtu: Option<u32>,
}

/// Makes a network. After an error whose outcome is unknown look for it by [`find`].
pub async fn create(session: &Session, new: &NewNetwork) -> Result<Network, CloudError> {
    let body = json!({"name": new.name, "description": new.description, "mtu": new.mtu});
    KIND.create(session, without_nulls(body)).await
}

/// The network with this id.
pub async fn show(session: &Session, id: &str) -> Result<Option<Network>, CloudError> {
    KIND.show(session, id).await
}

/// Those of this name that we may see.
pub async fn find(session: &Session, name: &str) -> Result<Vec<Network>, CloudError> {
    KIND.list(session, &[("name", name.to_owned())]).await
}

/// Those that floating IPs come from.
pub async fn external(session: &Session) -> Result<Vec<Network>, CloudError> {
    KIND.list(session, &[("router:external", "true".to_owned())]).await
}

/// Deletes a network with its subnets. One with ports on it is a conflict.
pub async fn delete(session: &Session, id: &str) -> Result<(), CloudError> {
    KIND.delete(session, id).await
}
