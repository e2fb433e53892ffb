//! Power control and the diagnostic interrupt, by chassis commands.

use async_trait::async_trait;
use bmc::{BmcError, Interrupt, Power};
use hardware::{PowerChange, PowerState};
use tokio::time::sleep;
use tracing::debug;

use crate::client::Client;
use crate::commands::CompletionCode;
use crate::commands::chassis::{ChassisControl, GetChassisStatus};
use crate::quirks;

#[async_trait]
impl Power for Client {
    async fn state(&self) -> Result<PowerState, BmcError> {
        self.run(&GetChassisStatus).await
    }

    async fn request(&self, change: PowerChange) -> Result<(), BmcError> {
        match change {
            PowerChange::On => self.reach(ChassisControl::PowerUp, PowerState::On).await,
            PowerChange::ForceOff => self.reach(ChassisControl::PowerDown, PowerState::Off).await,
            PowerChange::SoftOff => self.reach(ChassisControl::SoftShutdown, PowerState::Off).await,
            PowerChange::ForceRestart => self.restart().await,
            // Chassis Control has no soft restart. A caller can request `SoftOff`, wait, and request `On`.
            PowerChange::SoftRestart => Err(BmcError::Unsupported {
                what: "restart the operating system softly".to_owned(),
            }),
        }
    }
}

#[async_trait]
impl Interrupt for Client {
    async fn inject_nmi(&self) -> Result<(), BmcError> {
        match self.call(&ChassisControl::DiagnosticInterrupt).await? {
            Ok(()) => Ok(()),
            // A BMC that does not implement this optional control knows the command, but not the value of its field.
            Err(CompletionCode::INVALID_FIELD | CompletionCode::OUT_OF_RANGE) => {
                Err(BmcError::Unsupported { what: "inject an NMI".to_owned() })
            }
            Err(code) => Err(self.refusal(code, "Chassis Control")),
        }
    }
}

impl Client {
    /// Sends `control`; ignores a refusal if the machine is already in the state `wanted`.
    async fn reach(&self, control: ChassisControl, wanted: PowerState) -> Result<(), BmcError> {
        let Err(code) = self.call(&control).await? else { return Ok(()) };
        if self.state().await? == wanted {
            debug!("the BMC refused a change to the state that the machine is already in: {code}");
            return Ok(());
        }
        Err(self.refusal(code, "Chassis Control"))
    }

    async fn restart(&self) -> Result<(), BmcError> {
        if self.state().await? == PowerState::Off {
            return self.reach(ChassisControl::PowerUp, PowerState::On).await;
        }
        let Err(code) = self.call(&ChassisControl::HardReset).await? else { return Ok(()) };
        debug!("the BMC refused to reset, so the power goes off and on: {code}");
        self.reach(ChassisControl::PowerDown, PowerState::Off).await?;
        for wait in quirks::waits_for_power_off() {
            if self.state().await? == PowerState::Off {
                return self.reach(ChassisControl::PowerUp, PowerState::On).await;
            }
            sleep(wait).await;
        }
        Err(self.refusal(code, "Chassis Control"))
    }
}
