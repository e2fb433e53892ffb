#![doc = include_str!("../README.md")]

mod allowed;
mod bios;
mod bmc_task;
mod boot;
mod boot_setting;
mod cpu_architecture;
mod health;
mod indicator;
mod inventory;
mod mac_address;
mod media;
mod power;
mod raid;
mod subscription;

pub use allowed::{AllowedHost, AllowedHosts, HostRefused, InvalidHost, InvalidNetwork, Network};
pub use bios::{BiosAttribute, BiosValue, BiosValues};
pub use bmc_task::BmcTask;
pub use boot::{BootDevice, BootMode, BootOverride, Persistence, UnknownBootDevice};
pub use boot_setting::{BootSetting, BootSettings, PowerAndBootSettings, SecureBootKeys};
pub use cpu_architecture::CpuArchitecture;
pub use health::Health;
pub use indicator::{Indicator, IndicatorComponent, IndicatorState};
pub use inventory::{Disk, Firmware, Inventory, Nic, Processor};
pub use mac_address::{InvalidMacAddress, MacAddress};
pub use media::MediaKind;
pub use power::{PowerChange, PowerState};
pub use raid::{
    ApplyTime, DriveMedia, NewVolume, RaidDrive, RaidLevel, RaidVolume, StorageController,
};
pub use subscription::{NewSubscription, Subscription, SubscriptionList};
