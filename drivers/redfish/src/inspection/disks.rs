//! Disks (DSP0268 `Drive`, `SimpleStorage`).

use bmc::Result;
use hardware::Disk;
use serde_json::Value;

use crate::document::Document;
use crate::inspection::is_present;
use crate::service::Service;

impl Service {
    /// Returns the drives of every storage subsystem or, if there are none, the devices of `SimpleStorage`.
    pub(super) async fn disks(&self, system: &Value) -> Result<Vec<Disk>> {
        let mut disks = Vec::new();
        for subsystem in self.parts(system, "Storage").await? {
            let drives = self.each(subsystem.items("Drives")).await?;
            disks.extend(drives.iter().filter(|drive| is_present(drive)).map(disk));
        }
        if disks.is_empty() {
            for controller in self.parts(system, "SimpleStorage").await? {
                let devices =
                    controller.items("Devices").iter().filter(|device| is_present(device));
                disks.extend(devices.map(disk));
            }
        }
        Ok(disks)
    }
}

fn disk(drive: &Value) -> Disk {
    Disk {
        name: drive.text("Name").or_else(|| drive.text("Id")).unwrap_or_default(),
        size_bytes: drive.count("CapacityBytes").filter(|bytes| *bytes > 0),
        model: drive.text("Model"),
        serial_number: drive.text("SerialNumber"),
        rotational: match drive.word("MediaType") {
            "HDD" | "SMR" => Some(true),
            "SSD" => Some(false),
            _ => None,
        },
    }
}
