//! How much of everything is measured, as the command line says.

use std::path::PathBuf;

use crate::clusters::real::RealCloud;
use crate::machines::MachinePace;

/// Sizes of the phases.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Sizes {
    /// Nodes in the database.
    #[arg(long, default_value_t = 10_000)]
    pub(crate) nodes: usize,
    /// Requests in each phase that requests single nodes.
    #[arg(long, default_value_t = 20_000)]
    pub(crate) requests: usize,
    /// Clients, each with one persistent connection.
    #[arg(long, default_value_t = 16)]
    pub(crate) clients: usize,
    /// Nodes of fake hardware to take from enroll to active.
    #[arg(long, default_value_t = 100)]
    pub(crate) lives: usize,
    /// Emulated machines to take from powered off to installed.
    #[arg(long, default_value_t = 1_000)]
    pub(crate) machines: usize,
    /// The speed of these machines, and of their BMCs.
    #[arg(long, value_enum, default_value_t = MachinePace::Fast)]
    pub(crate) pace: MachinePace,
    /// Machines of each rack of 40 that are in progress at the same time, at the real pace: with 8, a rack comes up in five waves.
    #[arg(long, default_value_t = 8)]
    pub(crate) rack_limit: usize,
    /// A smaller number of machines to measure first at the real pace: each machine must take the same time as among all machines.
    #[arg(long)]
    pub(crate) beside: Option<usize>,
    /// URL of an empty PostgreSQL database, for machines at the real pace. Give one for each measured number of machines.
    #[arg(long)]
    pub(crate) postgres: Vec<String>,
    /// MiB of kernel and ramdisk that such a machine loads at each boot.
    #[arg(long, default_value_t = 20)]
    pub(crate) boot_mib: usize,
    /// Emulated BMCs whose power states are refreshed.
    #[arg(long, default_value_t = 10_000)]
    pub(crate) bmcs: usize,
    /// Clusters of eight servers to create at once.
    #[arg(long, default_value_t = 100)]
    pub(crate) clusters: usize,
    /// Clusters of two servers to measure at rest.
    #[arg(long, default_value_t = 1_000)]
    pub(crate) resting: usize,
    #[command(flatten)]
    pub(crate) real: RealCloud,
    /// MiB of the image to write.
    #[arg(long, default_value_t = 1024)]
    pub(crate) image_mib: usize,
    /// Folder for the file that stands in for a disk. Must be on a disk.
    #[arg(long, default_value = ".")]
    pub(crate) disk: PathBuf,
    /// Path of the agent's image writer, built by `images/ramdisk/agent.sh --example write_image`.
    #[arg(long)]
    pub(crate) writer: Option<PathBuf>,
}
