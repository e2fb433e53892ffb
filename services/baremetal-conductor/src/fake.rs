//! `fake-hardware`: a BMC that does as asked at once, for clients and benchmarks.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use bmc::{Bmc, BmcError, Boot, Power};
use hardware::{BootDevice, BootOverride, PowerChange, PowerState};

/// A machine that is not there.
struct Fake {
    power: Mutex<PowerState>,
    boot: Mutex<Option<BootOverride>>,
}

/// A BMC over nothing; its power begins as it was last seen.
pub(crate) fn bmc(power: Option<PowerState>) -> Bmc {
    let fake = Arc::new(Fake {
        power: Mutex::new(power.unwrap_or(PowerState::Off)),
        boot: Mutex::new(None),
    });
    Bmc {
        power: fake.clone(),
        boot: fake,
        media: None,
        inspection: None,
        sensors: None,
        serial: None,
    }
}

#[async_trait]
impl Power for Fake {
    async fn state(&self) -> Result<PowerState, BmcError> {
        Ok(*self.power.lock().unwrap_or_else(PoisonError::into_inner))
    }

    async fn request(&self, change: PowerChange) -> Result<(), BmcError> {
        *self.power.lock().unwrap_or_else(PoisonError::into_inner) = change.leads_to();
        Ok(())
    }
}

#[async_trait]
impl Boot for Fake {
    async fn get(&self) -> Result<Option<BootOverride>, BmcError> {
        Ok(*self.boot.lock().unwrap_or_else(PoisonError::into_inner))
    }

    async fn set(&self, wanted: BootOverride) -> Result<(), BmcError> {
        *self.boot.lock().unwrap_or_else(PoisonError::into_inner) = Some(wanted);
        Ok(())
    }

    async fn supported(&self) -> Result<Vec<BootDevice>, BmcError> {
        Ok(BootDevice::ALL.to_vec())
    }
}
