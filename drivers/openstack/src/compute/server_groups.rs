//! Server groups, which decide whether servers share hosts.

use serde::Deserialize;
use serde_json::json;

use super::{MICROVERSION, SERVICE};
use crate::error::Result;
use crate::lenient;
use crate::session::Session;

lenient::words! {
    /// The placement policy of a server group.
    Policy {
        /// All servers on one host.
        Affinity = "affinity",
        /// Each server on a separate host; otherwise the creation fails.
        AntiAffinity = "anti-affinity",
        /// All servers on one host if it has space.
        SoftAffinity = "soft-affinity",
        /// Each server on a separate host if there are enough hosts.
        SoftAntiAffinity = "soft-anti-affinity",
    }
}

/// A group of servers with a placement policy.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct ServerGroup {
    pub id: String,
    /// Names are not unique.
    #[serde(default)]
    pub name: String,
    pub policy: Policy,
    /// The ids of the group's servers.
    #[serde(default)]
    pub members: Vec<String>,
}

/// Creates a group. After an error with unknown outcome, look for the group with [`find`].
pub async fn create(session: &Session, name: &str, policy: &Policy) -> Result<ServerGroup> {
    let body = json!({"server_group": {"name": name, "policy": policy.as_str()}});
    let call = session.post(SERVICE, &["os-server-groups"], body).microversion(MICROVERSION);
    call.under("server_group").await
}

/// Returns the group with this id.
pub async fn show(session: &Session, id: &str) -> Result<Option<ServerGroup>> {
    let call = session.get(SERVICE, &["os-server-groups", id]).microversion(MICROVERSION);
    call.find_under("server_group").await
}

/// Returns the groups with this name.
pub async fn find(session: &Session, name: &str) -> Result<Vec<ServerGroup>> {
    let all = list(session).await?;
    Ok(all.into_iter().filter(|group| group.name == name).collect())
}

/// Lists all groups of our project.
pub async fn list(session: &Session) -> Result<Vec<ServerGroup>> {
    // Nova cannot filter groups and does not link to a next page, so the offset is counted here.
    const PAGE: usize = 1000;
    let mut found = Vec::new();
    for page in 0.. {
        let offset = (page * PAGE).to_string();
        let call = session.get(SERVICE, &["os-server-groups"]).microversion(MICROVERSION);
        let call = call.query("limit", PAGE.to_string()).query("offset", offset);
        let groups: Vec<ServerGroup> = call.under("server_groups").await?;
        let last = groups.len() < PAGE;
        found.extend(groups);
        if last {
            break;
        }
    }
    Ok(found)
}

/// Deletes a group. Its servers stay where they are.
pub async fn delete(session: &Session, id: &str) -> Result<()> {
    let call = session.deleting(SERVICE, &["os-server-groups", id]).microversion(MICROVERSION);
    call.done_or_gone().await
}
