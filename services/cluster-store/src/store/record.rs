//! Rows that belong to no cluster: Magnum's quotas, and the services that work on the database.

use database::WriteKind::OneStatement;
use database::{Result, reading, writing};
use jiff::Timestamp;

use crate::table::{quota, service};
use crate::{Quota, Scope, ServiceSeen, Store};

impl Store {
    /// Adds a quota.
    pub async fn insert_quota(&self, new: &Quota) -> Result<()> {
        let new = new.clone();
        writing!(self.database, OneStatement, |c| quota::insert(c, &new).await)
    }

    /// Returns the quotas in `scope`; only those of `resource`, when it is given.
    pub async fn list_quotas(&self, scope: &Scope, resource: Option<&str>) -> Result<Vec<Quota>> {
        let (scope, resource) = (scope.clone(), resource.map(str::to_owned));
        reading!(self.database, |c| quota::list(c, &scope, resource.as_deref()).await)
    }

    /// Writes the limit of a quota.
    pub async fn update_quota(&self, changed: &Quota) -> Result<()> {
        let changed = changed.clone();
        writing!(self.database, OneStatement, |c| quota::update(c, &changed).await)
    }

    /// Deletes a quota.
    pub async fn delete_quota(&self, old: &Quota) -> Result<()> {
        let old = old.clone();
        writing!(self.database, OneStatement, |c| quota::delete(c, &old).await)
    }

    /// Records that the clusterd on `hostname` is alive.
    pub async fn touch_service(&self, hostname: &str, now: Timestamp) -> Result<()> {
        let hostname = hostname.to_owned();
        writing!(self.database, OneStatement, |c| service::touch(c, &hostname, now).await)
    }

    /// Returns the services that work on this database, sorted by hostname.
    pub async fn list_services(&self) -> Result<Vec<ServiceSeen>> {
        reading!(self.database, |c| service::list(c).await)
    }
}
