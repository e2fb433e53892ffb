//! The out-of-band inventory: read from the BMC without booting the machine.
//!
//! Every part may be missing in a BMC, and a missing part is left out of the inventory. The inventory fails only if the BMC does not answer
//! or refuses our login.

mod disks;
pub(crate) mod firmware;
mod nics;
mod processor;

use async_trait::async_trait;
use bmc::{Inspection, Result};
use hardware::{Firmware, Inventory};
use serde_json::Value;

use crate::boot;
use crate::document::Document;
use crate::service::Service;

#[async_trait]
impl Inspection for Service {
    async fn inventory(&self) -> Result<Inventory> {
        let system = self.system().await?.body;
        Ok(Inventory {
            manufacturer: system.text("Manufacturer"),
            model: system.text("Model"),
            serial_number: system.text("SerialNumber"),
            system_uuid: system.text("UUID"),
            processor: self.processor(&system).await?,
            memory_mib: self.memory_mib(&system).await?,
            nics: self.nics(&system).await?,
            disks: self.disks(&system).await?,
            firmware: self.firmware(&system).await?,
            boot_mode: boot::mode(system.at("Boot")),
        })
    }

    async fn main_firmware(&self) -> Result<Vec<Firmware>> {
        let system = self.system().await?.body;
        self.firmware_of(&system).await
    }
}

impl Service {
    /// Returns the summary or, because some BMCs round the summary down to 0, the sum of the memory modules.
    async fn memory_mib(&self, system: &Value) -> Result<Option<u64>> {
        let summary = system.at("MemorySummary").number("TotalSystemMemoryGiB");
        if let Some(gib) = summary.filter(|gib| *gib > 0.0) {
            return Ok(Some((gib * 1024.0).round() as u64));
        }
        let Some(modules) = self.link(system, "Memory") else { return Ok(None) };
        let modules = self.members(&modules).await?;
        let sizes = modules.iter().filter(|m| is_present(m)).filter_map(|m| m.count("CapacityMiB"));
        Ok(Some(sizes.fold(0, u64::saturating_add)).filter(|mib| *mib > 0))
    }

    /// Returns the members of the collection that `of` links to as `name`, without empty slots.
    pub(crate) async fn parts(&self, of: &Value, name: &str) -> Result<Vec<Value>> {
        let Some(url) = self.link(of, name) else { return Ok(Vec::new()) };
        let mut parts = self.members(&url).await?;
        parts.retain(is_present);
        Ok(parts)
    }
}

/// Whether the part exists: collections also list empty slots and sockets.
pub(crate) fn is_present(part: &Value) -> bool {
    part.at("Status").word("State") != "Absent"
}
