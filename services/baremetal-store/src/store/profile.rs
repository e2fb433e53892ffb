//! Hypervisor profiles, and the nodes that are joining or leaving an OpenStack.

use baremetal_core::Profile;
use database::WriteKind::OneStatement;
use database::{Result, StoreError, reading, writing};
use jiff::Timestamp;
use serde_json::Value;

use crate::table::profile;
use crate::{PagePart, PageRows, ProfileRow, Store, secrets};

impl Store {
    /// Adds a profile with version 1.
    pub async fn insert_profile(&self, profile: &Profile, now: Timestamp) -> Result<()> {
        self.admit_profile(profile).await?;
        let (name, document) = self.sealed_profile(profile).await?;
        writing!(self.database, OneStatement, |c| profile::insert(c, &name, &document, now).await)
    }

    /// Returns the profile with this name, with its secrets sealed.
    pub async fn find_profile(&self, name: &str) -> Result<Option<ProfileRow>> {
        let name = name.to_owned();
        reading!(self.database, |c| profile::find(c, &name).await)
    }

    /// Returns a part of all profiles sorted by name, with their secrets sealed.
    pub async fn list_profiles_part(
        &self,
        limit: u32,
        part: PagePart<String>,
    ) -> Result<PageRows<ProfileRow, String>> {
        reading!(self.database, |c| profile::list_part(c, limit, &part).await)
    }

    /// Writes the whole profile, if its version has not changed since it was read.
    pub async fn update_profile(
        &self,
        profile: &Profile,
        version: i64,
        now: Timestamp,
    ) -> Result<()> {
        self.admit_profile(profile).await?;
        let (name, document) = self.sealed_profile(profile).await?;
        writing!(self.database, OneStatement, |c| {
            profile::update(c, &name, &document, version, now).await
        })
    }

    /// Deletes a profile, if its version has not changed since it was read. Fails with `InUse` while the goal of a rack names the profile.
    pub async fn delete_profile(&self, name: &str, version: i64) -> Result<()> {
        let name = name.to_owned();
        writing!(self.database, OneStatement, |c| profile::delete(c, &name, version).await)
    }

    /// Returns the profile's name and its document with all secrets sealed.
    async fn sealed_profile(&self, profile: &Profile) -> Result<(String, Value)> {
        let name = profile.name.to_string();
        let document = serde_json::to_value(profile)
            .map_err(|why| StoreError::corrupt("hypervisor_profiles", &name, why))?;
        let document = self.sealed_as_profile(&name, &document).await?;
        Ok((name, document))
    }

    async fn sealed_as_profile(&self, name: &str, document: &Value) -> Result<Value> {
        let corrupt = |why| StoreError::corrupt("hypervisor_profiles", name, why);
        self.seal(document, |keys, document| {
            secrets::seal_profile(keys, name, document).map_err(corrupt)
        })
        .await
    }

    /// Re-encrypts the secrets of the profile's document.
    pub(super) async fn reseal_profile(
        &self,
        name: &str,
        document: &Value,
        version: i64,
    ) -> Result<()> {
        let (name, document) = (name.to_owned(), self.sealed_as_profile(name, document).await?);
        writing!(self.database, OneStatement, |c| {
            profile::reseal(c, &name, &document, version).await
        })
    }
}
