#![doc = include_str!("../README.md")]

mod run;

mod catch_up;
mod crawler;
mod machine_names;
mod racks;
mod replica;
mod sensing;
mod sweep;
mod turn;

mod conductor_step;

mod bios;
mod boot_device;
mod firmware_updates;
mod joining;
mod leaving;
mod lending;
mod perform;
mod raid_volumes;

mod agent_reports;

mod acceptance;
mod bmc_directory;
mod bmc_password;
mod bootc;
mod boots;
mod directory;
mod glance;
mod networks;
mod oci;
mod seal_keys;
mod served_image;
mod take_out;
mod vendor;
mod vifs;

mod conductor;

mod cloud;
mod inventory;
mod leases;
mod node_consoles;
mod observe;
mod record;

mod context;

mod agent_command;
mod agents;
mod allowed;
mod bmcs;
mod checksum_file;
mod clusterd;
mod consoles;
mod fake;
mod gate;
mod image_folder;
mod observations;
mod rack_changes;
mod registry;
mod secrets;
mod settings;
mod turn_versions;
mod vendors;

mod config_drive;
mod image_stream;
mod text_file;

mod image_client;
mod problem;

#[cfg(test)]
mod samples;

pub use agent_reports::Heartbeat;
pub use bmc_directory::BmcDirectory;
pub use boots::{BootError, Medium, firmware_of_script};
pub use clusterd::ClusterdClient;
pub use conductor::{Conductor, StartError};
pub use consoles::{
    ConsoleEnd, ConsoleError, ConsoleSettings, ConsoleViewer, GraphicalOutcome, GraphicalViewer,
};
pub use glance::GlanceError;
pub use observations::{LastSeen, TimedObservation};
pub use oci::{OciBlob, OciImageError};
pub use replicas::now;
pub use run::RunError;
pub use secrets::ServiceKey;
pub use settings::{
    AcceptedBy, BmcSettings, ConductorMetrics, CrawlSettings, DiscoverySettings, FailedBinding,
    Leases, LendingSettings, NameSettings, NetworkSettings, SensorSettings, Settings,
    SweepSettings, UnknownMachines,
};
pub use vendor::{VendorCallError, VendorResult};
pub use vifs::{VifLookupError, VifSeen};
