//! DHCP leases of the provisioning network and of the network of BMCs: an address is probed before its first lease, and is skipped while
//! another machine uses it.

use std::io::ErrorKind;
use std::net::IpAddr;
use std::time::Duration;

use agent_protocol::parameter;
use baremetal_store::StoreError;
use hardware::MacAddress;
use tracing::{error, warn};

use crate::Leases;
use crate::context::TurnContext;
use crate::problem::chain;

/// How long an address is skipped that another machine uses.
const IN_USE_FOR: Duration = Duration::from_mins(10);

/// How many addresses are probed for one request. A DHCP client does not wait longer, and repeats its request.
const MAX_PROBES: usize = 4;

/// The name of a kernel parameter, and its value if it has one.
pub(crate) type KernelParameter = (String, Option<String>);

impl TurnContext {
    /// Returns the address for a machine's `mac`, or `None` if another server assigns addresses or no address is left.
    pub(crate) async fn lease(&self, mac: MacAddress) -> Result<Option<IpAddr>, StoreError> {
        match &self.settings.leases {
            Some(leases) => self.lease_of(leases, mac).await,
            None => Ok(None),
        }
    }

    /// Returns the address of these leases for `mac`, or `None` if no address is left.
    pub(crate) async fn lease_of(
        &self,
        leases: &Leases,
        mac: MacAddress,
    ) -> Result<Option<IpAddr>, StoreError> {
        for _ in 0..MAX_PROBES {
            let leased = self.store.lease(mac, &leases.pool, self.now()).await?;
            let Some(leased) = leased else {
                let (first, last) = (leases.pool.first, leases.pool.last);
                error!(%mac, "no free address is left between {first} and {last}");
                return Ok(None);
            };
            if leased.is_probed {
                return Ok(Some(leased.address));
            }
            if !self.is_used(leases, leased.address).await {
                self.store.mark_lease_probed(mac, leased.address).await?;
                return Ok(Some(leased.address));
            }
            warn!(%mac, address = %leased.address, "a machine without a lease answers at {}", leased.address);
            self.skip_address(mac, leased.address).await?;
        }
        Ok(None)
    }

    /// Returns the leased address as kernel parameters, for a ramdisk that configures it itself.
    pub(crate) async fn static_address(&self, mac: MacAddress) -> Vec<KernelParameter> {
        let Some(leases) = &self.settings.leases else { return Vec::new() };
        let Some(address) = self.lease(mac).await.ok().flatten() else { return Vec::new() };
        let router = leases.router.map_or(String::new(), |router| format!(",{router}"));
        let address = format!("{address}/{}{router}", leases.prefix);
        let mut parameters = vec![(parameter::STATIC_ADDRESS.to_owned(), Some(address))];
        if !leases.dns.is_empty() {
            let dns: Vec<String> = leases.dns.iter().map(ToString::to_string).collect();
            parameters.push((parameter::DNS.to_owned(), Some(dns.join(","))));
        }
        parameters
    }

    /// Stops leasing `address` for a while if `mac` had it; returns whether `mac` had it.
    pub(crate) async fn skip_address(
        &self,
        mac: MacAddress,
        address: IpAddr,
    ) -> Result<bool, StoreError> {
        self.store.mark_address_in_use(mac, address, self.now() + IN_USE_FOR).await
    }

    /// Probes an address. If probing fails, the address counts as free, because machines have to boot.
    async fn is_used(&self, leases: &Leases, address: IpAddr) -> bool {
        match leases.prober.is_used(address).await {
            Ok(is_used) => is_used,
            Err(error) => {
                let not_permitted = error.kind() == ErrorKind::PermissionDenied;
                let needs = if not_permitted { " (CAP_NET_RAW is needed)" } else { "" };
                warn!(error = chain(&error), "cannot probe the address {address}{needs}");
                false
            }
        }
    }
}
