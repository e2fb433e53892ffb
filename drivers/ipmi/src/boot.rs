//! Sets the boot device by system boot options.

use async_trait::async_trait;
use bmc::{BmcError, Boot};
use hardware::{BootDevice, BootOverride};
use tracing::debug;

use crate::client::Client;
use crate::commands::boot_options::{GetBootFlags, SetBootOptions};

#[async_trait]
impl Boot for Client {
    async fn get(&self) -> Result<Option<BootOverride>, BmcError> {
        match self.call(&GetBootFlags).await? {
            Ok(flags) => Ok(flags),
            Err(code) if code.is_unknown_command() => Ok(None),
            Err(code) => Err(self.refusal(code, "Get System Boot Options")),
        }
    }

    /// IPMI has one bit for UEFI and none for "leave the mode as it is". Without a mode the bit is clear, as in ipmitool; firmware that
    /// knows only UEFI ignores the bit.
    async fn set(&self, wanted: BootOverride) -> Result<(), BmcError> {
        let unsupported =
            || BmcError::Unsupported { what: format!("boot from {} over IPMI", wanted.device) };
        let flags = SetBootOptions::flags(wanted).ok_or_else(unsupported)?;

        // Only the flags must be accepted. Many BMCs refuse the other options, and setting the flags works without them.
        self.try_set_option(SetBootOptions::InProgress).await?;
        self.try_set_option(SetBootOptions::KeepFlags).await?;
        self.try_set_option(SetBootOptions::Acknowledge).await?;
        let taken = self.run(&flags).await;
        self.try_set_option(SetBootOptions::Complete).await?;
        taken
    }

    async fn supported(&self) -> Result<Vec<BootDevice>, BmcError> {
        let has_number = |device: &BootDevice| *device != BootDevice::Http;
        Ok(BootDevice::ALL.into_iter().filter(has_number).collect())
    }
}

impl Client {
    /// Sets an option that BMCs may refuse.
    async fn try_set_option(&self, option: SetBootOptions) -> Result<(), BmcError> {
        if let Err(code) = self.call(&option).await? {
            debug!(?option, "the BMC does not take a boot option: {code}");
        }
        Ok(())
    }
}
