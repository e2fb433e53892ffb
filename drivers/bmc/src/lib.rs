#![doc = include_str!("../README.md")]

mod error;
mod sensors;
mod serial;

use std::sync::Arc;

use async_trait::async_trait;
use hardware::{BootDevice, BootOverride, Inventory, PowerChange, PowerState};
use url::Url;

pub use error::BmcError;
pub use sensors::{LogEntry, Reading, ReadingHealth};
pub use serial::{SerialConsole, SerialSession};

/// Power control of one machine, over whatever its BMC speaks.
#[async_trait]
pub trait Power: Send + Sync {
    /// The state the BMC reports now.
    async fn state(&self) -> Result<PowerState, BmcError>;

    /// The same for one who asks nothing more soon: no connection is kept for a next request.
    async fn glance(&self) -> Result<PowerState, BmcError> {
        self.state().await
    }

    /// Asks for `change` and returns once the BMC has accepted it; `state` tells when it has happened.
    ///
    /// Idempotent for `On` and `ForceOff`: asking for the state a machine is already in succeeds.
    async fn request(&self, change: PowerChange) -> Result<(), BmcError>;
}

/// Where the machine boots from.
#[async_trait]
pub trait Boot: Send + Sync {
    /// The override that holds now; `None` when the firmware's own order does, or the BMC does not tell.
    async fn get(&self) -> Result<Option<BootOverride>, BmcError>;

    /// Imposes `wanted` from the next boot on. Does not restart the machine.
    async fn set(&self, wanted: BootOverride) -> Result<(), BmcError>;

    /// The devices this BMC can be asked for.
    async fn supported(&self) -> Result<Vec<BootDevice>, BmcError>;
}

/// The virtual CD drive of a machine.
#[async_trait]
pub trait VirtualMedia: Send + Sync {
    /// Puts the ISO image at `url` into the drive, taking out what was there.
    ///
    /// Idempotent: the same image twice succeeds.
    async fn insert(&self, url: &Url) -> Result<(), BmcError>;

    /// Empties the drive. Idempotent: an empty drive stays empty.
    async fn eject(&self) -> Result<(), BmcError>;
}

/// What the BMC knows of the machine without booting it.
#[async_trait]
pub trait Inspection: Send + Sync {
    /// The out-of-band inventory, without what the BMC leaves out.
    async fn inventory(&self) -> Result<Inventory, BmcError>;
}

/// Health of the machine, and the light that finds it in the aisle.
#[async_trait]
pub trait Sensors: Send + Sync {
    /// Every sensor's reading.
    async fn readings(&self) -> Result<Vec<Reading>, BmcError>;

    /// The newest `limit` entries of the system event log, oldest first.
    async fn event_log(&self, limit: usize) -> Result<Vec<LogEntry>, BmcError>;

    /// Switches the identify light on or off.
    async fn identify(&self, light: IdentifyLight) -> Result<(), BmcError>;
}

/// The state of the light on the machine's front.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdentifyLight {
    /// Lit or blinking.
    On,
    /// Dark.
    Off,
}

/// What one BMC can do. A capability it lacks is `None`, never a method that fails.
#[derive(Clone)]
pub struct Bmc {
    /// Switching on and off.
    pub power: Arc<dyn Power>,
    /// Choosing what to boot.
    pub boot: Arc<dyn Boot>,
    /// The virtual CD drive.
    pub media: Option<Arc<dyn VirtualMedia>>,
    /// Inventory without booting.
    pub inspection: Option<Arc<dyn Inspection>>,
    /// Sensors, event log, identify light.
    pub sensors: Option<Arc<dyn Sensors>>,
    /// The machine's serial port.
    pub serial: Option<Arc<dyn SerialConsole>>,
}
