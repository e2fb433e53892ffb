//! Versions of firmware (DSP0268 `SoftwareInventory`).

use bmc::Result;
use hardware::Firmware;
use serde_json::Value;

use crate::document::Document;
use crate::service::Service;

impl Service {
    /// Returns the firmware of BIOS and BMC as `bios` and `bmc`, then every component that the update service lists.
    pub(super) async fn firmware(&self, system: &Value) -> Result<Vec<Firmware>> {
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

    /// Returns the firmware of BIOS, BMC and network adapters.
    pub(super) async fn firmware_of(&self, system: &Value) -> Result<Vec<Firmware>> {
        let mut firmware = Vec::new();
        firmware.extend(version(Some("bios".to_owned()), system.text("BiosVersion")));
        firmware.extend(self.bmc_firmware(system).await?);
        firmware.extend(self.adapter_firmware(system).await?);
        Ok(firmware)
    }

    pub(crate) async fn bmc_firmware(&self, system: &Value) -> Result<Option<Firmware>> {
        for manager in self.managers(system).await? {
            let Some(manager) = self.find(&manager).await? else { continue };
            let found = version(Some("bmc".to_owned()), manager.body.text("FirmwareVersion"));
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// Returns the firmware of network adapters.
    pub(crate) async fn adapter_firmware(&self, system: &Value) -> Result<Vec<Firmware>> {
        let adapters = self.adapters(system).await?;
        let firmware = adapters.iter().filter_map(|adapter| {
            let mut controllers = adapter.items("Controllers").iter();
            let found = controllers.find_map(|it| it.text("FirmwarePackageVersion"));
            version(adapter_name(adapter), found)
        });
        Ok(firmware.collect())
    }

    /// Reads the network adapters in the chassis of `system`.
    pub(crate) async fn adapters(&self, system: &Value) -> Result<Vec<Value>> {
        let mut adapters = Vec::new();
        for chassis in self.chassis(system).await? {
            let Some(chassis) = self.find(&chassis).await? else { continue };
            adapters.extend(self.parts(&chassis.body, "NetworkAdapters").await?);
        }
        Ok(adapters)
    }
}

/// The name of a network adapter as a component (ironic, `retrieve_nic_components`).
pub(crate) fn adapter_name(adapter: &Value) -> Option<String> {
    let id = adapter.text("SerialNumber").or_else(|| adapter.text("Id"))?;
    Some(format!("nic:{id}"))
}

fn version(component: Option<String>, version: Option<String>) -> Option<Firmware> {
    Some(Firmware { component: component?, version: version? })
}
