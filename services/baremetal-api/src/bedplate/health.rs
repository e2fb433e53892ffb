//! The health of the service, for `/bedplate/v1/health`.

use openstack_api::{ApiError, DatabaseHealth, Health, HealthSource, Time};

use crate::app::App;
use crate::error::Error;

impl HealthSource for App {
    async fn health(&self) -> Result<Health, ApiError> {
        let (kind, version) = self.store.schema().await.map_err(Error::from)?;
        let (schema_found, schema_known) = (version.found, version.known);
        let database = DatabaseHealth { kind, schema_found, schema_known };
        Ok(Health { now: Time((self.clock)()), database })
    }
}
