//! The size of a flavor.

use serde::{Deserialize, Serialize};

/// The resources that a flavor gives a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlavorSize {
    pub vcpus: u64,
    pub ram_mib: u64,
    /// The root disk, in GiB.
    pub disk_gib: u64,
    pub gpus: u64,
}
