#![doc = include_str!("../README.md")]

mod addresses;
mod config;
mod dhcp_service;
mod dhcp_v6_service;
mod directory;
pub mod ipxe;
mod loader;
mod prober;
mod router_advertisements;
mod running;
mod socket;
mod tftp_service;

pub use config::{
    Config, DhcpConfig, DhcpV6Config, Listen, RouterAdvertisementConfig, TftpConfig, TftpFiles,
};
pub use dhcp::{Architecture, BootFile, Client, ClientKind, Decision, Lease, Mode};
pub use directory::{Directory, Observation};
pub use loader::Loader;
pub use prober::Prober;
pub use running::{Running, start};
pub use socket::StartError;
