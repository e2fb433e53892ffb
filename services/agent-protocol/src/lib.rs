#![doc = include_str!("../README.md")]

mod boot;
mod command;
mod heartbeat;
mod image;
mod inventory;
mod root_device;

pub use boot::{KernelParameters, parameter};
pub use command::{
    ArgumentInfo, Command, CommandError, CommandList, CommandRequest, CommandStatus, ListedStep,
    Progress, StepList, name, step,
};
pub use heartbeat::{AgentConfig, Heartbeat, LookupAnswer, LookupNode};
pub use image::{ChecksumAlgorithm, DiskFormat, DiskLabel, DiskLayout, ImageInfo, ImageType};
pub use inventory::{
    Boot, Configuration, Cpu, Disk, InspectionData, Interface, Inventory, Manager, Memory,
    PciDevice, SystemFirmware, SystemVendor,
};
pub use root_device::{HintRefused, RootDeviceHints};
