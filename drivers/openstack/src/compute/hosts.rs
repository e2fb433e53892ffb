//! Compute hosts: which servers they have, and on which one a server is. For administrators.

use super::servers::{Server, exactly};
use super::{MICROVERSION, SERVICE, hypervisors};
use crate::error::CloudError;
use crate::session::Session;

/// The name by which servers are said to be on the hypervisor of this name, which may be another: a service's `host` is configured, a
/// hypervisor's name is its system's. `None` where there is no such hypervisor.
pub async fn of_hypervisor(session: &Session, name: &str) -> Result<Option<String>, CloudError> {
    Ok(hypervisors::find(session, name).await?.map(|it| it.service.host))
}

/// The servers of all projects that are on a host, or on their way from it.
pub async fn servers(session: &Session, host: &str) -> Result<Vec<Server>, CloudError> {
    of_all(session, "host", host).await
}

/// The servers of all projects with this tag, which say on which host they are.
pub async fn tagged(session: &Session, tag: &str) -> Result<Vec<Server>, CloudError> {
    of_all(session, "tags", tag).await
}

/// The servers of all projects of this name.
pub async fn named(session: &Session, name: &str) -> Result<Vec<Server>, CloudError> {
    let mut found = of_all(session, "name", &exactly(name)).await?;
    found.retain(|server| server.name == name);
    Ok(found)
}

async fn of_all(session: &Session, key: &str, value: &str) -> Result<Vec<Server>, CloudError> {
    let call = session.get(SERVICE, &["servers", "detail"]).microversion(MICROVERSION);
    call.query("all_tenants", "true").query(key, value).all("servers").await
}
