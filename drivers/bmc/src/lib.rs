#![doc = include_str!("../README.md")]

mod account;
mod bios;
mod boot_settings;
mod clock;
mod error;
mod events;
mod firmware;
mod indicators;
mod raid;
mod sensors;
mod serial;

use std::sync::Arc;

use async_trait::async_trait;
use hardware::{BootDevice, BootOverride, Firmware, Inventory, MediaKind, PowerChange, PowerState};
use url::Url;

pub use account::Account;
pub use bios::Bios;
pub use boot_settings::BootSettings;
pub use clock::Clock;
pub use error::{BmcError, Result};
pub use events::EventSubscriptions;
pub use firmware::{FirmwareImage, FirmwareUpdates, ImageStream, ImageTransfer};
pub use indicators::Indicators;
pub use raid::RaidVolumes;
pub use sensors::{LogEntry, Reading, ReadingHealth, Sensor, SensorKind};
pub use serial::{SerialConsole, SerialSession};

/// Power control of one machine, by whatever protocol its BMC speaks.
#[async_trait]
pub trait Power: Send + Sync {
    /// Returns the state that the BMC reports now.
    async fn state(&self) -> Result<PowerState, BmcError>;

    /// Like [`Power::state`], for a caller that sends no further request soon: the driver keeps no connection open.
    async fn state_once(&self) -> Result<PowerState, BmcError> {
        self.state().await
    }

    /// Asks for `change` and returns once the BMC has accepted it; [`Power::state`] tells when the change has happened.
    ///
    /// Idempotent for `On` and `ForceOff`: a request for the state that the machine is already in succeeds.
    async fn request(&self, change: PowerChange) -> Result<(), BmcError>;
}

/// The diagnostic interrupt of one machine.
#[async_trait]
pub trait Interrupt: Send + Sync {
    /// Sends a non-maskable interrupt (NMI) to the processors, and returns once the BMC has accepted it.
    ///
    /// Not idempotent: most operating systems write a dump of their memory and restart.
    async fn inject_nmi(&self) -> Result<(), BmcError>;
}

/// The boot device of one machine.
#[async_trait]
pub trait Boot: Send + Sync {
    /// Returns the override in force; `None` when the firmware's own boot order applies or the BMC does not report an override.
    async fn get(&self) -> Result<Option<BootOverride>, BmcError>;

    /// Overrides the boot order from the next boot on. Does not restart the machine.
    async fn set(&self, wanted: BootOverride) -> Result<(), BmcError>;

    /// Returns the devices that can be set on this BMC.
    async fn supported(&self) -> Result<Vec<BootDevice>, BmcError>;
}

/// The virtual CD drive of a machine, and the other virtual drives as far as they are emptied.
#[async_trait]
pub trait VirtualMedia: Send + Sync {
    /// Inserts the ISO image at `url`, and ejects another image that is in the drive.
    ///
    /// Idempotent: inserting the same image twice succeeds.
    async fn insert(&self, url: &Url) -> Result<(), BmcError>;

    /// Empties the drive. Idempotent: ejecting from an empty drive succeeds.
    async fn eject(&self) -> Result<(), BmcError>;

    /// Empties every virtual drive, or every one that takes media of `kind`. Idempotent, as `eject`.
    async fn eject_all(&self, kind: Option<MediaKind>) -> Result<(), BmcError>;

    /// Reads what is in the drive.
    async fn content(&self) -> Result<VirtualDrive, BmcError>;
}

/// The state of a virtual drive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VirtualDrive {
    /// The kinds of media that the drive takes, such as `CD`.
    pub media_types: Vec<String>,
    pub inserted: bool,
    /// The URL or the name of the image, as the BMC shows it.
    pub image: Option<String>,
}

/// The inventory that the BMC has of the machine, read without booting the machine.
#[async_trait]
pub trait Inspection: Send + Sync {
    /// Returns the out-of-band inventory; parts that the BMC leaves out are `None` or empty.
    async fn inventory(&self) -> Result<Inventory, BmcError>;

    /// Returns the versions of BIOS and BMC as `bios` and `bmc`, and of network adapters as `nic:` with the serial number or the id of the
    /// adapter, for a few requests. Versions that the BMC does not tell are left out.
    async fn main_firmware(&self) -> Result<Vec<Firmware>, BmcError>;
}

/// Sensors, event log and identify light of the machine.
#[async_trait]
pub trait Sensors: Send + Sync {
    async fn readings(&self) -> Result<Vec<Reading>, BmcError>;

    /// Returns the readings of the sensors that work, for monitoring: also the health of power supplies and drives, which takes a Redfish
    /// BMC more requests.
    async fn monitored(&self) -> Result<Vec<Reading>, BmcError>;

    /// Returns the newest `limit` entries of the system event log, oldest first.
    async fn event_log(&self, limit: usize) -> Result<Vec<LogEntry>, BmcError>;

    /// Switches the identify light on or off.
    async fn identify(&self, light: IdentifyLight) -> Result<(), BmcError>;
}

/// The state of the light by which a person finds the machine in a rack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdentifyLight {
    /// Lit, or blinking.
    On,
    Off,
}

/// The capabilities of one BMC. A capability that the BMC lacks is `None`, never a method that fails.
#[derive(Clone)]
pub struct Bmc {
    pub power: Arc<dyn Power>,
    pub interrupt: Option<Arc<dyn Interrupt>>,
    pub boot: Arc<dyn Boot>,
    pub boot_settings: Option<Arc<dyn BootSettings>>,
    pub bios: Option<Arc<dyn Bios>>,
    pub clock: Option<Arc<dyn Clock>>,
    pub firmware: Option<Arc<dyn FirmwareUpdates>>,
    pub raid: Option<Arc<dyn RaidVolumes>>,
    pub media: Option<Arc<dyn VirtualMedia>>,
    pub inspection: Option<Arc<dyn Inspection>>,
    pub sensors: Option<Arc<dyn Sensors>>,
    pub indicators: Option<Arc<dyn Indicators>>,
    pub events: Option<Arc<dyn EventSubscriptions>>,
    pub serial: Option<Arc<dyn SerialConsole>>,
    pub account: Option<Arc<dyn Account>>,
}
