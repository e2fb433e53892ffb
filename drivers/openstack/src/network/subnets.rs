//! Subnets: the addresses of networks.

use std::net::IpAddr;

use serde::Deserialize;
use serde_json::json;

use super::Kind;
use crate::body::without_nulls;
use crate::error::CloudError;
use crate::lenient;
use crate::session::Session;

const KIND: Kind = Kind { path: "subnets", one: "subnet", many: "subnets" };

/// A subnet.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Subnet {
    /// Its id.
    pub id: String,
    /// Its name, which others may have as well.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub name: String,
    /// The network whose addresses these are.
    #[serde(default)]
    pub network_id: String,
    /// The project that it is of.
    #[serde(default)]
    pub project_id: Option<String>,
    /// Which addresses: `10.0.0.0/24`.
    #[serde(default)]
    pub cidr: String,
    /// Where packets for elsewhere go.
    #[serde(default)]
    pub gateway_ip: Option<IpAddr>,
    /// Who answers questions of names.
    #[serde(default)]
    pub dns_nameservers: Vec<IpAddr>,
    /// Its tags.
    #[serde(default)]
    pub tags: Vec<String>,
}

/// A subnet to be made.
#[derive(Clone, Debug)]
pub struct NewSubnet {
    /// Its name. Derive it from what the subnet is: it is how it is found again.
    pub name: String,
    /// The network whose addresses these are.
    pub network_id: String,
    /// Which addresses: `10.0.0.0/24`.
    pub cidr: String,
    /// Who answers questions of names.
    pub dns_nameservers: Vec<IpAddr>,
}

/// Makes a subnet, with DHCP and a gateway. After an error whose outcome is unknown look for it by [`find`].
pub async fn create(session: &Session, new: &NewSubnet) -> Result<Subnet, CloudError> {
    let version = if new.cidr.contains(':') { 6 } else { 4 };
    // Addresses given by ports alone would leave a machine without a way to learn its own.
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

/// The subnet with this id.
pub async fn show(session: &Session, id: &str) -> Result<Option<Subnet>, CloudError> {
    KIND.show(session, id).await
}

/// Those of this name that we may see.
pub async fn find(session: &Session, name: &str) -> Result<Vec<Subnet>, CloudError> {
    KIND.list(session, &[("name", name.to_owned())]).await
}

/// Deletes a subnet. One whose addresses are in use is a conflict.
pub async fn delete(session: &Session, id: &str) -> Result<(), CloudError> {
    KIND.delete(session, id).await
}
