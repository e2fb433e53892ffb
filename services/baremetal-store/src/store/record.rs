//! What belongs to no node: leases, machines nobody enrolled, conductors, racks.

use database::StoreError;
use std::net::Ipv4Addr;

use baremetal_core::Discovery;
use hardware::MacAddress;
use jiff::Timestamp;
use serde_json::Value;

use crate::Store;
use crate::table::{conductor, discovery, lease, rack};
use database::Extent::{FirstDecides, OneStatement};

impl Store {
    /// The address leased to `mac`.
    pub async fn find_lease(&self, mac: MacAddress) -> Result<Option<Ipv4Addr>, StoreError> {
        self.database.read(move |c| Box::pin(lease::find(c, mac))).await
    }

    /// The address of `mac`, for ever: the one it has, or the lowest from `first` to `last` that no other has and that
    /// is not `taken`. `None` where none is free.
    ///
    /// An address that has come to lie outside the range or to be taken is given up for another.
    pub async fn lease(
        &self,
        mac: MacAddress,
        first: Ipv4Addr,
        last: Ipv4Addr,
        taken: &[Ipv4Addr],
    ) -> Result<Option<Ipv4Addr>, StoreError> {
        let taken = taken.to_vec();
        self.database
            .write(FirstDecides, move |c| {
                Box::pin(async move { lease::lease(c, mac, (first, last), &taken).await })
            })
            .await
    }

    /// Notes that a machine nobody enrolled has asked for a boot.
    pub async fn touch_discovery(&self, mac: MacAddress, now: Timestamp) -> Result<(), StoreError> {
        self.database.write(FirstDecides, move |c| Box::pin(discovery::touch(c, mac, now))).await
    }

    /// Writes what is known of a machine nobody enrolled in place of what was.
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
