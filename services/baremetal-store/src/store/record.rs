//! Records that belong to no node: leases of addresses, unknown machines and racks.

use database::{Result, reading, writing};
use std::net::IpAddr;

use baremetal_core::{Discovery, DiscoveryId, NamedMachine};
use hardware::MacAddress;
use jiff::Timestamp;
use serde_json::Value;

use crate::table::{discovery, lease, rack};
use crate::{AddressPool, DhcpLease, PagePart, PageRows, Seen, Store};
use database::WriteKind::{OneStatement, OnlyFirstStatementCanFail};

impl Store {
    /// Returns whether `mac` has a lease, expired or not.
    pub async fn has_lease(&self, mac: MacAddress) -> Result<bool> {
        reading!(self.database, |c| lease::exists(c, mac).await)
    }

    /// Leases an address of the pool to `mac`: its current address, or else the lowest free one. Returns `None` if no address is left.
    ///
    /// The lease of a port lasts as long as the port; the lease of an unknown machine expires. If no address is free, a port gets the
    /// address of an unknown machine. An address that is no longer in the pool, or is reserved now, is replaced.
    pub async fn lease(
        &self,
        mac: MacAddress,
        pool: &AddressPool,
        now: Timestamp,
    ) -> Result<Option<DhcpLease>> {
        let pool = pool.clone();
        writing!(self.database, OnlyFirstStatementCanFail, |c| {
            lease::lease(c, mac, &pool, now).await
        })
    }

    /// Returns the leased addresses of the pool, in their order, without those of expired leases.
    pub async fn leased_addresses(
        &self,
        pool: &AddressPool,
        now: Timestamp,
    ) -> Result<Vec<IpAddr>> {
        let pool = pool.clone();
        reading!(self.database, |c| lease::leased(c, &pool, now).await)
    }

    /// Returns the nodes with a name whose ports have addresses of the pool, in the order of the names.
    pub async fn named_machines(&self, pool: &AddressPool) -> Result<Vec<NamedMachine>> {
        let pool = pool.clone();
        reading!(self.database, |c| lease::named_machines(c, &pool).await)
    }

    /// Records that no machine answered at the address that is leased to `mac`.
    pub async fn mark_lease_probed(&self, mac: MacAddress, address: IpAddr) -> Result<()> {
        writing!(self.database, OneStatement, |c| lease::mark_probed(c, mac, address).await)
    }

    /// Takes `address` from `mac` and leases it to nobody before `until`, because another machine uses it. Returns `false` and changes
    /// nothing if `mac` does not have this lease.
    pub async fn mark_address_in_use(
        &self,
        mac: MacAddress,
        address: IpAddr,
        until: Timestamp,
    ) -> Result<bool> {
        writing!(self.database, OnlyFirstStatementCanFail, |c| {
            lease::mark_in_use(c, mac, address, until).await
        })
    }

    /// Records that a machine or BMC that nobody has enrolled was seen.
    pub async fn touch_discovery(&self, id: DiscoveryId, now: Timestamp) -> Result<()> {
        writing!(self.database, OnlyFirstStatementCanFail, |c| discovery::touch(c, id, now).await)
    }

    /// Writes the record of a machine or BMC that nobody has enrolled, keeping the time at which it was seen first.
    pub async fn save_discovery(&self, found: &Discovery) -> Result<()> {
        let found = found.clone();
        writing!(self.database, OnlyFirstStatementCanFail, |c| discovery::save(c, &found).await)
    }

    /// Writes the data of a discovery, unless the discovery was accepted, deleted or seen again meanwhile.
    pub async fn update_discovery_data(&self, found: &Discovery) -> Result<()> {
        let found = found.clone();
        writing!(self.database, OneStatement, |c| discovery::update_data(c, &found).await)
    }

    /// Returns a discovery, accepted or not.
    pub async fn find_discovery(&self, id: DiscoveryId) -> Result<Option<Discovery>> {
        reading!(self.database, |c| discovery::find(c, id).await)
    }

    /// Returns a part of the discoveries that were not accepted, the first seen first. Only the 1024 that were seen last are kept.
    pub async fn list_discoveries_part(
        &self,
        limit: u32,
        part: PagePart<Seen>,
    ) -> Result<PageRows<Discovery, Seen>> {
        reading!(self.database, |c| discovery::list_part(c, limit, part).await)
    }

    /// Deletes a discovery, if there is one.
    pub async fn delete_discovery(&self, id: DiscoveryId) -> Result<()> {
        writing!(self.database, OneStatement, |c| discovery::delete(c, id).await)
    }

    /// Adds a rack with version 1.
    pub async fn insert_rack(&self, name: &str, document: &Value) -> Result<()> {
        self.admit_rack(name, document).await?;
        let (name, document) = (name.to_owned(), self.sealed_rack(name, document).await?);
        writing!(self.database, OneStatement, |c| rack::insert(c, &name, &document).await)
    }

    /// Returns a rack's document and its version.
    pub async fn find_rack(&self, name: &str) -> Result<Option<(Value, i64)>> {
        let name = name.to_owned();
        reading!(self.database, |c| rack::find(c, &name).await)
    }

    /// Returns all racks sorted by name, with document and version.
    pub async fn list_racks(&self) -> Result<Vec<(String, Value, i64)>> {
        reading!(self.database, |c| rack::list(c).await)
    }

    /// Returns a part of all racks sorted by name, with document and version.
    pub async fn list_racks_part(
        &self,
        limit: u32,
        part: PagePart<String>,
    ) -> Result<PageRows<(String, Value, i64), String>> {
        reading!(self.database, |c| rack::list_part(c, limit, &part).await)
    }

    /// Writes a rack's document, if its version has not changed since it was read.
    pub async fn update_rack(&self, name: &str, document: &Value, version: i64) -> Result<()> {
        self.admit_rack(name, document).await?;
        let (name, document) = (name.to_owned(), self.sealed_rack(name, document).await?);
        writing!(self.database, OneStatement, |c| rack::update(c, &name, &document, version).await)
    }

    /// Deletes a rack, if it exists. Its nodes stay.
    pub async fn delete_rack(&self, name: &str) -> Result<()> {
        let name = name.to_owned();
        writing!(self.database, OneStatement, |c| rack::delete(c, &name).await)
    }
}
