//! Endpoints: where the services of the catalogue are. To change them takes an administrator.

use serde::Deserialize;
use serde_json::json;

use super::SERVICE;
use super::services::yes;
use crate::config::Interface;
use crate::error::CloudError;
use crate::lenient;
use crate::session::Session;

/// Where a service is, for some of its clients.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Endpoint {
    /// Its id.
    pub id: String,
    /// Whose it is.
    #[serde(default)]
    pub service_id: String,
    /// For whom: `public`, `internal` or `admin`.
    #[serde(default)]
    pub interface: String,
    /// The region it is in, if in one.
    #[serde(default)]
    pub region_id: Option<String>,
    /// The address, in which `%(project_id)s` may stand for the project.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub url: String,
    /// Whether tokens show it.
    #[serde(default = "yes")]
    pub enabled: bool,
}

/// An endpoint to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewEndpoint {
    /// Whose it is.
    pub service_id: String,
    /// For whom.
    pub interface: Interface,
    /// The region it is in, which has to be there.
    pub region_id: String,
    /// The address, of at most 225 characters.
    pub url: String,
}

/// Those of a service, in all regions.
pub async fn list(session: &Session, service_id: &str) -> Result<Vec<Endpoint>, CloudError> {
    let call = session.get(SERVICE, &["endpoints"]).query("service_id", service_id);
    let mut found: Vec<Endpoint> = call.all("endpoints").await?;
    found.retain(|one| one.service_id == service_id);
    Ok(found)
}

/// Makes one. Keystone does not mind two of an interface in a region: look first, by [`list`].
pub async fn create(session: &Session, new: &NewEndpoint) -> Result<Endpoint, CloudError> {
    let body = json!({"endpoint": {
        "service_id": new.service_id,
        "interface": new.interface.as_str(),
        "region_id": new.region_id,
        "url": new.url,
    }});
    session.post(SERVICE, &["endpoints"], body).under("endpoint").await
}

/// Has one lead elsewhere, and be shown.
pub async fn lead(session: &Session, id: &str, url: &str) -> Result<(), CloudError> {
    let body = json!({"endpoint": {"url": url, "enabled": true}});
    session.patch(SERVICE, &["endpoints", id], body).done().await
}

/// Removes one.
pub async fn delete(session: &Session, id: &str) -> Result<(), CloudError> {
    session.delete(SERVICE, &["endpoints", id]).await
}
