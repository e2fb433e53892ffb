//! Server groups: which servers share hosts, and which do not.

use serde::Deserialize;
use serde_json::json;

use super::{MICROVERSION, SERVICE};
use crate::error::CloudError;
use crate::lenient;
use crate::session::Session;

lenient::words! {
    /// How the servers of a group are spread.
    Policy {
        /// On one host.
        Affinity = "affinity",
        /// Each on a host of its own, or not at all.
        AntiAffinity = "anti-affinity",
        /// On one host if there is room.
        SoftAffinity = "soft-affinity",
        /// Each on a host of its own while there are enough.
        SoftAntiAffinity = "soft-anti-affinity",
    }
}

/// A group of servers.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct ServerGroup {
    /// Its id.
    pub id: String,
    /// Its name, which others may have as well.
    #[serde(default)]
    pub name: String,
    /// How its servers are spread.
    pub policy: Policy,
    /// The ids of its servers.
    #[serde(default)]
    pub members: Vec<String>,
}

/// Makes a group. After an error whose outcome is unknown look for it by [`find`].
pub async fn create(
    session: &Session,
    name: &str,
    policy: &Policy,
) -> Result<ServerGroup, CloudError> {
    let body = json!({"server_group": {"name": name, "policy": policy.as_str()}});
    let call = session.post(SERVICE, &["os-server-groups"], body).microversion(MICROVERSION);
    call.under("server_group").await
}

/// The group with this id.
pub async fn show(session: &Session, id: &str) -> Result<Option<ServerGroup>, CloudError> {
    let call = session.get(SERVICE, &["os-server-groups", id]).microversion(MICROVERSION);
    call.find_under("server_group").await
}

/// Those of this name.
pub async fn find(session: &Session, name: &str) -> Result<Vec<ServerGroup>, CloudError> {
    let all = list(session).await?;
    Ok(all.into_iter().filter(|group| group.name == name).collect())
}

/// All of our project.
pub async fn list(session: &Session) -> Result<Vec<ServerGroup>, CloudError> {
    // Nova filters groups by nothing, and links no next page: pages are counted off.
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
pub async fn delete(session: &Session, id: &str) -> Result<(), CloudError> {
    let call = session.deleting(SERVICE, &["os-server-groups", id]).microversion(MICROVERSION);
    call.done_or_gone().await
}
