//! The settings of a machine's firmware by name.

use std::collections::BTreeMap;

use async_trait::async_trait;
use hardware::{BiosAttribute, BiosValue, BiosValues};

use crate::BmcError;

/// The settings of the firmware of one machine. The firmware takes requested values at the next start of the machine.
#[async_trait]
pub trait Bios: Send + Sync {
    /// Reads the values in force and those of the next start.
    async fn values(&self) -> Result<BiosValues, BmcError>;

    /// Reads the descriptions of the settings; empty if the BMC has none.
    async fn attributes(&self) -> Result<BTreeMap<String, BiosAttribute>, BmcError>;

    /// Requests values for the next start.
    ///
    /// Idempotent: the same request twice has the effect of one.
    async fn request(&self, values: &BTreeMap<String, BiosValue>) -> Result<(), BmcError>;

    /// Requests the values of the factory for the next start. Idempotent.
    async fn request_reset(&self) -> Result<(), BmcError>;
}
