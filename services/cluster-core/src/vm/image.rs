//! The image of a VM, and the check whether a flavor is large enough for it.

use serde::{Deserialize, Serialize};

use super::VmFlavor;

/// The image that a VM boots.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VmImage {
    /// The id of the image in the cloud.
    pub id: String,
    /// The name that the owner gave in the request.
    pub name: String,
    /// The format of user-data that the system of the image reads.
    #[serde(alias = "told")]
    pub user_data_format: UserDataFormat,
    /// The smallest disk that the image needs, in GiB.
    pub min_disk_gib: u64,
    /// The smallest memory that the image needs, in MiB.
    pub min_ram_mib: u64,
}

words::words! {
    /// The format of user-data that a system reads, which also carries the SSH keys. The words are those of the API.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum UserDataFormat {
        #[default]
        CloudInit = "cloud-init",
        /// Fedora CoreOS.
        Ignition = "ignition",
    }
}

/// The flavor is smaller than the image allows.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("image {image} needs at least {needs} {of}, and the VM would have {given}: request more")]
pub struct FlavorTooSmall {
    pub image: String,
    /// In units of `of`.
    pub needs: u64,
    /// The resource that is too small, with its unit: `GiB of disk`.
    pub of: &'static str,
    /// In units of `of`.
    pub given: u64,
}

impl VmImage {
    /// Checks whether the flavor and the boot volume are large enough for the image.
    ///
    /// # Errors
    ///
    /// The disk or the memory, when it is too small.
    pub fn check(&self, flavor: &VmFlavor, root_volume: Option<u32>) -> Result<(), FlavorTooSmall> {
        let disk = root_volume.map_or(flavor.size.disk_gib, u64::from);
        let few = |needs: u64, of, given: u64| FlavorTooSmall {
            image: self.name.clone(),
            needs,
            of,
            given,
        };
        // Nova gives a server of a flavor without a disk one that is as large as the image.
        let as_large = root_volume.is_none() && disk == 0;
        if disk < self.min_disk_gib && !as_large {
            return Err(few(self.min_disk_gib, "GiB of disk", disk));
        }
        if flavor.size.ram_mib < self.min_ram_mib {
            return Err(few(self.min_ram_mib, "MiB of memory", flavor.size.ram_mib));
        }
        Ok(())
    }
}
