//! Compute hosts and their servers. Administrators only.

use super::servers::{Server, exactly};
use super::{MICROVERSION, SERVICE, hypervisors};
use crate::error::Result;
use crate::session::Session;

/// Returns the host name of the hypervisor called `name`; `None` if there is no such hypervisor. The two may differ: a service's `host` is
/// configured, a hypervisor's name is its operating system's.
pub async fn host_of_hypervisor(session: &Session, name: &str) -> Result<Option<String>> {
    Ok(hypervisors::find(session, name).await?.map(|it| it.service.host))
}

/// Lists the servers of all projects that are on a host, or migrating away from it.
pub async fn servers(session: &Session, host: &str) -> Result<Vec<Server>> {
    of_all(session, "host", host).await
}

/// Lists the servers of all projects with this tag, including their hosts.
pub async fn tagged(session: &Session, tag: &str) -> Result<Vec<Server>> {
    of_all(session, "tags", tag).await
}

/// Lists the servers of all projects with this name.
pub async fn named(session: &Session, name: &str) -> Result<Vec<Server>> {
    let mut found = of_all(session, "name", &exactly(name)).await?;
    found.retain(|server| server.name == name);
    Ok(found)
}

async fn of_all(session: &Session, key: &str, value: &str) -> Result<Vec<Server>> {
    let call = session.get(SERVICE, &["servers", "detail"]).microversion(MICROVERSION);
    call.query("all_tenants", "true").query(key, value).all("servers").await
}
