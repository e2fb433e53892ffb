//! What happens to a machine, one line each.

use std::fmt;
use std::net::Ipv4Addr;

use serde::Serialize;

/// Something that happened on a machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// It was switched on or reset.
    Started,
    /// It is off.
    Off,
    /// Its firmware begins to boot from there.
    Tries(BootSource),
    /// It could not boot from there, for this reason.
    CannotBoot(BootSource, String),
    /// It has a lease, and was told what to load.
    Leased(Ipv4Addr, Option<String>),
    /// It has loaded a boot loader of so many bytes.
    LoadedLoader(String, u64),
    /// It runs a boot script.
    RunsScript,
    /// The script says so.
    Echo(String),
    /// A kernel and a ramdisk of so many bytes were loaded; the kernel runs.
    KernelRuns(u64, u64),
    /// The operating system on the disk runs: the image it came from.
    DiskRuns(String),
    /// Its nova-compute runs: the host's name.
    Computes(String),
    /// It does nothing any more, for this reason.
    Hangs(String),
    /// Its agent said that it is there.
    Heartbeat,
    /// Its agent sent the inventory.
    SentInventory,
    /// Its agent began to carry out a command or, for steps, a step.
    Begins(String),
    /// Its agent has carried it out.
    Did(String),
    /// Its agent could not, for this reason.
    Failed(String, String),
}

/// Where an operating system was started from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BootSource {
    /// A disk.
    Disk,
    /// The network, beginning with TFTP.
    Network,
    /// The network, beginning with HTTP.
    Http,
    /// The virtual CD.
    Cd,
}

/// What a machine is doing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Nothing, it is off.
    Off,
    /// Its firmware runs, or a boot loader.
    Booting,
    /// A ramdisk runs that came from there.
    Ramdisk(BootSource),
    /// The operating system on its disk runs.
    Installed,
    /// It is on and does nothing, for this reason.
    Hung(String),
}

impl fmt::Display for BootSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            BootSource::Disk => "the disk",
            BootSource::Network => "the network",
            BootSource::Http => "the network by HTTP",
            BootSource::Cd => "the virtual CD",
        })
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Event::Started => f.write_str("power is on, firmware starts"),
            Event::Off => f.write_str("power is off"),
            Event::Tries(source) => write!(f, "boots from {source}"),
            Event::CannotBoot(source, why) => write!(f, "cannot boot from {source}: {why}"),
            Event::Leased(address, None) => {
                write!(f, "DHCP gave {address} and nothing to boot")
            }
            Event::Leased(address, Some(file)) => write!(f, "DHCP gave {address} and {file}"),
            Event::LoadedLoader(file, bytes) => write!(f, "loaded {file}, {bytes} bytes"),
            Event::RunsScript => f.write_str("runs its boot script"),
            Event::Echo(text) => write!(f, "the script says: {text}"),
            Event::KernelRuns(kernel, ramdisk) => {
                write!(f, "the kernel runs ({kernel} bytes, ramdisk {ramdisk} bytes)")
            }
            Event::DiskRuns(image) => write!(f, "the disk boots: {image}"),
            Event::Computes(host) => write!(f, "nova-compute runs as host {host}"),
            Event::Hangs(why) => write!(f, "hangs: {why}"),
            Event::Heartbeat => f.write_str("the agent reports"),
            Event::SentInventory => f.write_str("the agent sent its inventory"),
            Event::Begins(what) => write!(f, "the agent begins {what}"),
            Event::Did(what) => write!(f, "the agent did {what}"),
            Event::Failed(what, why) => write!(f, "the agent failed at {what}: {why}"),
        }
    }
}
