//! Versions of firmware (DSP0268 `SoftwareInventory`).

use bmc::BmcError;
use hardware::Firmware;
use serde_json::Value;

use crate::document::Document;
use crate::service::Service;

impl Service {
    /// Returns the firmware of BIOS and BMC as `bios` and `bmc`, then every component that the update service lists.
    pub(super) async fn firmware(&self, system: &Value) -> Result<Vec<Firmware>, BmcError> {
        let mut firmware = self.firmware_of(system).await?;
        if let Some(updates) = self.root().await?.update_service.clone()
            && let Some(updates) = self.find(&updates).await?
        {
            let listed = self.parts(&updates.body, "FirmwareInventory").await?;
            firmware.extend(listed.iter().filter_map(|component| {
                let name = component.text("Name").or_else(|| component.text("Id"));
                version(name, component.text("Version"))
            }));
        }
        Ok(firmware)
    }

    /// Returns the firmware of BIOS and BMC.
    pub(super) async fn firmware_of(&self, system: &Value) -> Result<Vec<Firmware>, BmcError> {
        let mut firmware = Vec::new();
        firmware.extend(version(Some("bios".to_owned()), system.text("BiosVersion")));
        for manager in self.managers(system).await? {
            let Some(manager) = self.find(&manager).await? else { continue };
            if let Some(found) =
                version(Some("bmc".to_owned()), manager.body.text("FirmwareVersion"))
            {
                firmware.push(found);
                break;
            }
        }
        Ok(firmware)
    }
}

fn version(component: Option<String>, version: Option<String>) -> Option<Firmware> {
    Some(Firmware { component: component?, version: version? })
}
