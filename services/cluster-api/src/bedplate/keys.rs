//! The keys that seal secrets in the database.

use openstack_api::{ApiError, KeyRotation};
use sealing::KeyUsage;

use crate::app::App;
use crate::error::Error;

impl KeyRotation for App {
    async fn keys(&self) -> Result<Vec<KeyUsage>, ApiError> {
        Ok(self.conductor.keys().await.map_err(Error::from)?)
    }

    async fn rotate(&self) -> Result<String, ApiError> {
        Ok(self.conductor.rotate_keys().await.map_err(Error::from)?)
    }

    async fn retire(&self, id: &str) -> Result<(), ApiError> {
        Ok(self.conductor.retire_key(id).await.map_err(Error::from)?)
    }
}
