//! Events of a machine, one line each.

use std::fmt;
use std::net::Ipv4Addr;

use serde::Serialize;

/// An event of a machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// Power on, or reset.
    Started,
    Off,
    /// The firmware starts to boot from this source.
    Tries(BootSource),
    /// Booting from the source failed, with the reason.
    CannotBoot(BootSource, String),
    /// The machine got an address and perhaps a boot file.
    Leased(Ipv4Addr, Option<String>),
    /// A boot loader was loaded, with its size in bytes.
    LoadedLoader(String, u64),
    RunsScript,
    /// A line that the script printed.
    Echo(String),
    /// The kernel runs; the sizes of kernel and ramdisk in bytes.
    KernelRuns(u64, u64),
    /// The operating system on the disk runs; the name of its image.
    DiskRuns(String),
    /// nova-compute runs; the name of the host.
    Computes(String),
    /// The machine hangs, with the reason.
    Hangs(String),
    Heartbeat,
    SentInventory,
    /// The agent starts a command or, for steps, a step.
    Begins(String),
    /// The command or step succeeded.
    Did(String),
    /// The command or step failed, with the reason.
    Failed(String, String),
}

/// The source of the running operating system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BootSource {
    Disk,
    /// The network, starting with TFTP.
    Network,
    /// The network, starting with HTTP.
    Http,
    Cd,
}

/// The current activity of a machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    Off,
    /// The firmware or a boot loader runs.
    Booting,
    /// A ramdisk from this source runs.
    Ramdisk(BootSource),
    /// The ramdisk from this source is a rescue system without an agent; the hash of its password.
    Rescue(BootSource, String),
    /// A system without an agent and without a disk runs from this source; the kernel's command line, if the source has one.
    Live(BootSource, String),
    /// The operating system on the disk runs.
    Installed,
    /// The machine is on and hangs, with the reason.
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
