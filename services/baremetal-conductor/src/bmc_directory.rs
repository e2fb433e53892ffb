//! Answers the DHCP requests on the network of BMCs: each client gets an address and nothing to boot.

use std::net::IpAddr;

use async_trait::async_trait;
use baremetal_store::StoreError;
use hardware::MacAddress;
use pxe::{Client, ClientKind, Decision, Directory, Lease, Observation};
use tracing::debug;

use crate::conductor::Conductor;
use crate::directory::or_ignore;

/// The directory of the network of BMCs.
pub struct BmcDirectory(pub Conductor);

#[async_trait]
impl Directory for BmcDirectory {
    async fn decide(&self, client: &Client) -> Decision {
        or_ignore(self.answer(client).await, client)
    }

    async fn declined(&self, client: MacAddress, address: IpAddr) {
        self.0.declined(client, address).await;
    }

    /// Observations explain the boots of machines, and a BMC boots nothing here.
    fn saw(&self, client: MacAddress, sighting: Observation) {
        debug!(mac = %client, ?sighting, "a client on the network of BMCs uses DHCP");
    }
}

impl BmcDirectory {
    async fn answer(&self, client: &Client) -> Result<Decision, StoreError> {
        let context = &self.0.context;
        let Some(leases) = &context.settings.bmc_leases else {
            return Ok(Decision::Ignore { reason: "no range is configured".to_owned() });
        };
        let ignore = |reason: &str| Ok(Decision::Ignore { reason: reason.to_owned() });
        if client.kind != ClientKind::Other {
            return ignore("no machine boots from the network of BMCs");
        }
        // A MAC address has one lease: an address of this network would replace that of the provisioning network.
        if context.store.find_port_by_address(client.mac).await?.is_some() {
            return ignore("this is the port of a node and not a BMC");
        }
        let address = context.lease_of(leases, client.mac).await?;
        let lease = address.map(|address| Lease { address, hostname: None });
        Ok(Decision::Answer { lease, boot: None })
    }
}
