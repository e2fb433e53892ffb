//! What belongs to no node: leases, machines nobody enrolled, conductors, racks.

use database::StoreError;
use std::net::Ipv4Addr;

use baremetal_core::Discovery;
use hardware::MacAddress;
use jiff::Timestamp;
use serde_json::Value;

use crate::table::{conductor, discovery, lease, rack};
use crate::{Leased, Pool, Store};
use database::Extent::{FirstDecides, OneStatement};

impl Store {
    /// The lease of `mac`, expired or not.
    pub async fn find_lease(&self, mac: MacAddress) -> Result<Option<Leased>, StoreError> {
        self.database.read(move |c| Box::pin(lease::find(c, mac))).await
    }

    /// Leases an address of the pool to `mac`: the one it has, or the lowest free one. `None` where there is none.
    ///
    /// A port keeps its lease as long as it lives; a stranger's expires. A port without a lease takes a stranger's where no
    /// address is free. An address that has come to lie outside the pool or to be reserved is given up for another.
    pub async fn lease(
        &self,
        mac: MacAddress,
        pool: &Pool,
        now: Timestamp,
    ) -> Result<Option<Leased>, StoreError> {
        let pool = pool.clone();
        self.database
            .write(FirstDecides, move |c| {
                Box::pin(async move { lease::lease(c, mac, &pool, now).await })
            })
            .await
    }

    /// Notes that no machine answered at the address that `mac` has leased.
    pub async fn mark_lease_probed(
        &self,
        mac: MacAddress,
        address: Ipv4Addr,
    ) -> Result<(), StoreError> {
        self.database
            .write(OneStatement, move |c| Box::pin(lease::mark_probed(c, mac, address)))
            .await
    }

    /// Takes `address` from `mac` and leases it to nobody before `until`, for another machine uses it. Nothing happens, and the
    /// answer is `false`, where `mac` has not leased it.
    pub async fn mark_address_in_use(
        &self,
        mac: MacAddress,
        address: Ipv4Addr,
        until: Timestamp,
    ) -> Result<bool, StoreError> {
        self.database
            .write(FirstDecides, move |c| Box::pin(lease::mark_in_use(c, mac, address, until)))
            .await
    }

    /// Notes that a machine nobody enrolled has asked for a boot.
    pub async fn touch_discovery(&self, mac: MacAddress, now: Timestamp) -> Result<(), StoreError> {
        self.database.write(FirstDecides, move |c| Box::pin(discovery::touch(c, mac, now))).await
    }

    /// Writes what is known of a machine nobody enrolled in place of what was; when it was first seen stays.
    pub async fn save_discovery(&self, found: &Discovery) -> Result<(), StoreError> {
        let found = found.clone();
        self.database
            .write(FirstDecides, |c| Box::pin(async move { discovery::save(c, &found).await }))
            .await
    }

    /// The machines nobody enrolled, the first seen first. Of more than 1024 the longest silent are forgotten.
    pub async fn list_discoveries(&self) -> Result<Vec<Discovery>, StoreError> {
        self.database.read(|c| Box::pin(discovery::list(c))).await
    }

    /// Forgets a machine nobody enrolled, if it is known.
    pub async fn delete_discovery(&self, mac: MacAddress) -> Result<(), StoreError> {
        self.database.write(OneStatement, move |c| Box::pin(discovery::delete(c, mac))).await
    }

    /// Notes that the conductor on `hostname` is alive.
    pub async fn touch_conductor(&self, hostname: &str, now: Timestamp) -> Result<(), StoreError> {
        let hostname = hostname.to_owned();
        self.database
            .write(OneStatement, move |c| {
                Box::pin(async move { conductor::touch(c, &hostname, now).await })
            })
            .await
    }

    /// The conductors by hostname, and when each was last alive.
    pub async fn list_conductors(&self) -> Result<Vec<(String, Timestamp)>, StoreError> {
        self.database.read(|c| Box::pin(conductor::list(c))).await
    }

    /// Adds a rack; its version is 1.
    pub async fn insert_rack(&self, name: &str, document: &Value) -> Result<(), StoreError> {
        self.admit_rack(name, document).await?;
        let (name, document) = (name.to_owned(), self.sealed_rack(name, document).await?);
        self.database
            .write(OneStatement, |c| {
                Box::pin(async move { rack::insert(c, &name, &document).await })
            })
            .await
    }

    /// A rack's document, and its version.
    pub async fn find_rack(&self, name: &str) -> Result<Option<(Value, i64)>, StoreError> {
        let name = name.to_owned();
        self.database.read(|c| Box::pin(async move { rack::find(c, &name).await })).await
    }

    /// All racks by name, with document and version.
    pub async fn list_racks(&self) -> Result<Vec<(String, Value, i64)>, StoreError> {
        self.database.read(|c| Box::pin(rack::list(c))).await
    }

    /// Writes a rack's document, if its version is still the one that was read.
    pub async fn update_rack(
        &self,
        name: &str,
        document: &Value,
        version: i64,
    ) -> Result<(), StoreError> {
        self.admit_rack(name, document).await?;
        let (name, document) = (name.to_owned(), self.sealed_rack(name, document).await?);
        self.database
            .write(OneStatement, move |c| {
                Box::pin(async move { rack::update(c, &name, &document, version).await })
            })
            .await
    }

    /// Forgets a rack, if it is known; its nodes stay.
    pub async fn delete_rack(&self, name: &str) -> Result<(), StoreError> {
        let name = name.to_owned();
        self.database
            .write(OneStatement, |c| Box::pin(async move { rack::delete(c, &name).await }))
            .await
    }
}
