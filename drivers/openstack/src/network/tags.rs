//! Tags of what is on networks, which come after it is made: Neutron takes none with a create, but for ports where an
//! extension is switched on that is not by default. So names are how a maker finds its own work, and not tags.

use serde_json::json;

use super::SERVICE;
use crate::error::CloudError;
use crate::session::Session;

/// What has tags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tagged {
    /// A network.
    Network,
    /// A subnet.
    Subnet,
    /// A router.
    Router,
    /// A port.
    Port,
    /// A security group.
    SecurityGroup,
    /// A floating IP.
    FloatingIp,
}

/// Sets all tags of something, each at most 60 characters: Neutron's database has that much for them.
pub async fn set(
    session: &Session,
    what: Tagged,
    id: &str,
    tags: &[String],
) -> Result<(), CloudError> {
    let path = match what {
        Tagged::Network => "networks",
        Tagged::Subnet => "subnets",
        Tagged::Router => "routers",
        Tagged::Port => "ports",
        Tagged::SecurityGroup => "security-groups",
        Tagged::FloatingIp => "floatingips",
    };
    session.put(SERVICE, &[path, id, "tags"], json!({"tags": tags})).done().await
}
