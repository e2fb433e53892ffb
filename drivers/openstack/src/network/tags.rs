//! Tags of Neutron objects. Neutron accepts no tags in a create request, except for ports with an extension that is off by default. So an
//! object is found again by its name, not by its tags.

use serde_json::json;

use super::SERVICE;
use crate::error::Result;
use crate::session::Session;

/// The kinds of objects that have tags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaggedKind {
    Network,
    Subnet,
    Router,
    Port,
    SecurityGroup,
    FloatingIp,
}

/// Replaces all tags of an object. A tag has at most 60 characters, the size of Neutron's database column.
pub async fn set(session: &Session, what: TaggedKind, id: &str, tags: &[String]) -> Result<()> {
    let path = match what {
        TaggedKind::Network => "networks",
        TaggedKind::Subnet => "subnets",
        TaggedKind::Router => "routers",
        TaggedKind::Port => "ports",
        TaggedKind::SecurityGroup => "security-groups",
        TaggedKind::FloatingIp => "floatingips",
    };
    session.put(SERVICE, &[path, id, "tags"], json!({"tags": tags})).done().await
}
