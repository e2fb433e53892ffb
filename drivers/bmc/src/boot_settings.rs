//! The boot mode and secure boot of a machine.

use async_trait::async_trait;
use hardware::{BootSetting, PowerAndBootSettings, SecureBootKeys};

use crate::BmcError;

/// The boot mode and secure boot of one machine.
#[async_trait]
pub trait BootSettings: Send + Sync {
    /// Reads the settings, and the power state with them.
    async fn read(&self) -> Result<PowerAndBootSettings, BmcError>;

    /// Like [`BootSettings::read`], for a caller that sends no further request soon: the driver keeps no connection open.
    async fn read_once(&self) -> Result<PowerAndBootSettings, BmcError> {
        self.read().await
    }

    /// Like [`BootSettings::read_once`], but tells the settings only if they cost no further request.
    async fn read_power_once(&self) -> Result<PowerAndBootSettings, BmcError> {
        self.read_once().await
    }

    /// Asks for a change. Some BMCs apply the change at the next restart of the machine; [`BootSettings::read`] tells whether it is applied.
    ///
    /// Idempotent: asking for the current value succeeds.
    async fn request(&self, wanted: BootSetting) -> Result<(), BmcError>;

    /// Asks for these keys of Secure Boot in place of all others. Some BMCs replace them at the next restart of the machine.
    ///
    /// Idempotent: asking for the current keys succeeds.
    async fn request_keys(&self, wanted: SecureBootKeys) -> Result<(), BmcError>;
}
