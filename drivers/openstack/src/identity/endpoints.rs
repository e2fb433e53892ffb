//! Endpoints of the services in the catalogue. Only administrators can change them.

use serde::Deserialize;
use serde_json::json;

use super::SERVICE;
use super::services::yes;
use crate::config::Interface;
use crate::error::Result;
use crate::lenient;
use crate::session::Session;

/// An endpoint: the URL of a service for one kind of clients.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Endpoint {
    pub id: String,
    #[serde(default)]
    pub service_id: String,
    /// `public`, `internal` or `admin`.
    #[serde(default)]
    pub interface: String,
    #[serde(default)]
    pub region_id: Option<String>,
    /// The URL; `%(project_id)s` in it is replaced by the project's id.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub url: String,
    /// Whether tokens list the endpoint.
    #[serde(default = "yes")]
    pub enabled: bool,
}

/// An endpoint to create.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewEndpoint {
    pub service_id: String,
    pub interface: Interface,
    /// The region must exist.
    pub region_id: String,
    /// At most 225 characters.
    pub url: String,
}

/// Lists the endpoints of a service in all regions.
pub async fn list(session: &Session, service_id: &str) -> Result<Vec<Endpoint>> {
    let call = session.get(SERVICE, &["endpoints"]).query("service_id", service_id);
    let mut found: Vec<Endpoint> = call.all("endpoints").await?;
    found.retain(|one| one.service_id == service_id);
    Ok(found)
}

/// Creates an endpoint. Keystone accepts duplicates of interface and region, so look first with [`list`].
pub async fn create(session: &Session, new: &NewEndpoint) -> Result<Endpoint> {
    let body = json!({"endpoint": {
        "service_id": new.service_id,
        "interface": new.interface.as_str(),
        "region_id": new.region_id,
        "url": new.url,
    }});
    session.post(SERVICE, &["endpoints"], body).under("endpoint").await
}

/// Changes the URL of an endpoint and enables it.
pub async fn set_url(session: &Session, id: &str, url: &str) -> Result<()> {
    let body = json!({"endpoint": {"url": url, "enabled": true}});
    session.patch(SERVICE, &["endpoints", id], body).done().await
}

/// Deletes an endpoint.
pub async fn delete(session: &Session, id: &str) -> Result<()> {
    session.delete(SERVICE, &["endpoints", id]).await
}
