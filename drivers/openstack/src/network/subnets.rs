//! Subnets: the address ranges of networks.

use std::net::IpAddr;

use serde::Deserialize;
use serde_json::json;

use super::Kind;
use crate::body::without_nulls;
use crate::error::Result;
use crate::lenient;
use crate::session::Session;

const KIND: Kind = Kind { path: "subnets", one: "subnet", many: "subnets" };

/// A subnet of a network.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Subnet {
    pub id: String,
    /// Names are not unique.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub name: String,
    #[serde(default)]
    pub network_id: String,
    #[serde(default)]
    pub project_id: Option<String>,
    /// The address range: `10.0.0.0/24`.
    #[serde(default)]
    pub cidr: String,
    #[serde(default)]
    pub gateway_ip: Option<IpAddr>,
    #[serde(default)]
    pub dns_nameservers: Vec<IpAddr>,
    #[serde(default)]
    pub tags: Vec<String>,
}

/// A subnet to create.
#[derive(Clone, Debug)]
pub struct NewSubnet {
    /// Derive the name from the subnet's purpose: the subnet is found again by its name.
    pub name: String,
    pub network_id: String,
    /// The address range: `10.0.0.0/24`.
    pub cidr: String,
    pub dns_nameservers: Vec<IpAddr>,
}

/// Creates a subnet with DHCP and a gateway. After an error with unknown outcome, look for the subnet with [`find`].
pub async fn create(session: &Session, new: &NewSubnet) -> Result<Subnet> {
    let version = if new.cidr.contains(':') { 6 } else { 4 };
    // Without DHCPv6, a server could not learn the IPv6 address that its port has.
    let learns = (version == 6).then_some("dhcpv6-stateful");
    let body = json!({
        "name": new.name,
        "network_id": new.network_id,
        "ip_version": version,
        "cidr": new.cidr,
        "dns_nameservers": new.dns_nameservers,
        "enable_dhcp": true,
        "ipv6_address_mode": learns,
        "ipv6_ra_mode": learns,
    });
    KIND.create(session, without_nulls(body)).await
}

/// Returns the subnet with this id.
pub async fn show(session: &Session, id: &str) -> Result<Option<Subnet>> {
    KIND.show(session, id).await
}

/// Returns the visible subnets with this name.
pub async fn find(session: &Session, name: &str) -> Result<Vec<Subnet>> {
    KIND.list(session, &[("name", name.to_owned())]).await
}

/// Deletes a subnet. A conflict means that its addresses are in use.
pub async fn delete(session: &Session, id: &str) -> Result<()> {
    KIND.delete(session, id).await
}
