//! The next boot of a machine: the ramdisk, the disk, or the image of the machine's user. Each may be set again without harm.

use baremetal_core::{
    BootInterface, Driver, Node, OwnImage, check_agent_ramdisk, declared_boot_mode, own_image,
};
use bmc::{Bmc, BmcError};
use hardware::{BootDevice, BootMode, BootOverride, Persistence};
use serde_json::Value;
use url::Url;

use crate::allowed::{check_agent_images, check_image};
use crate::context::TurnContext;
use crate::observations::ObservedPart;
use crate::problem::{ActionError, Result, bad_request, cannot};

impl TurnContext {
    /// Makes the ramdisk the machine's next boot.
    pub(crate) async fn boot_ramdisk(&self, node: &Node, bmc: &Bmc) -> Result<()> {
        let device = match node.boot_interface() {
            BootInterface::Ipxe => BootDevice::Pxe,
            BootInterface::HttpIpxe => BootDevice::Http,
            BootInterface::VirtualMedia | BootInterface::IdracVirtualMedia => BootDevice::Cdrom,
            BootInterface::Fake => return self.await_foreign_boot(node).await,
        };
        let checked = check_agent_ramdisk(node)
            .and_then(|()| check_agent_images(&self.settings.image_hosts, node));
        checked.map_err(|refusal| bad_request(refusal.to_string()))?;
        if node.boot_interface().is_redfish() {
            let url = self.ramdisk_medium(node).await?;
            self.insert(node, bmc, &url).await?;
        }
        self.set_boot(node, bmc, device, persistence(node, Persistence::Once)).await?;
        if node.sets_boot_device() {
            let accepted = format!("accepted {device} as the next boot");
            self.sightings.note(node.id, ObservedPart::Bmc, accepted);
        }
        Ok(())
    }

    /// Makes the disk the machine's boot device, and ejects the virtual CD of the service or of the machine's user.
    pub(crate) async fn boot_disk(&self, node: &Node, bmc: &Bmc) -> Result<()> {
        if node.boot_interface().is_redfish()
            && let Some(media) = &bmc.media
            && let Err(error) = media.eject().await
        {
            return Err(self.note_bmc(node, &error).into());
        }
        self.set_lasting_boot(node, bmc, BootDevice::Disk).await
    }

    /// Makes the image of the machine's user the boot of all its starts.
    pub(crate) async fn boot_own_image(&self, node: &Node, bmc: &Bmc) -> Result<()> {
        let checked = self.with_instance(node).and_then(|node| {
            check_image(&self.settings.image_hosts, &node.instance_info)?;
            own_image(&node)
        });
        let image = checked.map_err(|refusal| bad_request(refusal.to_string()))?;
        let device = match (node.boot_interface(), image) {
            (
                BootInterface::VirtualMedia | BootInterface::IdracVirtualMedia,
                OwnImage::Iso(iso),
            ) => {
                let url = Url::parse(&iso);
                let url =
                    url.map_err(|why| bad_request(format!("instance_info.boot_iso: {why}")))?;
                self.insert(node, bmc, &url).await?;
                BootDevice::Cdrom
            }
            // The directory of the boot services names the image when the machine asks.
            (BootInterface::HttpIpxe, _) => BootDevice::Http,
            (
                BootInterface::Ipxe
                | BootInterface::Fake
                | BootInterface::VirtualMedia
                | BootInterface::IdracVirtualMedia,
                _,
            ) => BootDevice::Pxe,
        };
        self.set_lasting_boot(node, bmc, device).await
    }

    /// Returns the URL of the virtual CD with the ramdisk: the node's own ISO image, or the CD of the service for this boot.
    async fn ramdisk_medium(&self, node: &Node) -> Result<Url> {
        let Some(iso) = node.agent_iso() else { return self.medium(node).await };
        let url = Url::parse(iso).map_err(|why| bad_request(format!("the ISO image: {why}")))?;
        self.await_foreign_boot(node).await?;
        Ok(url)
    }

    async fn insert(&self, node: &Node, bmc: &Bmc, url: &Url) -> Result<()> {
        let Some(media) = &bmc.media else { return Err(cannot("insert a virtual CD").into()) };
        let inserted = media.insert(url).await;
        inserted.map_err(|error| self.note_bmc(node, &error).into())
    }

    /// Sets the boot device of all boots.
    async fn set_lasting_boot(&self, node: &Node, bmc: &Bmc, device: BootDevice) -> Result<()> {
        let wanted = persistence(node, Persistence::Continuous);
        self.set_boot(node, bmc, device, wanted).await
    }

    /// Sets the boot device. Some BMCs support overrides for the next boot only. Their firmware's own boot order begins with the disk.
    async fn set_boot(
        &self,
        node: &Node,
        bmc: &Bmc,
        device: BootDevice,
        persistence: Persistence,
    ) -> Result<()> {
        if !node.sets_boot_device() {
            return Ok(());
        }
        let set = async |persistence| {
            bmc.boot.set(BootOverride { device, persistence, mode: boot_mode(node) }).await
        };
        let answer = match set(persistence).await {
            Err(BmcError::Unsupported { .. }) if persistence == Persistence::Continuous => {
                set(Persistence::Once).await
            }
            answered => answered,
        };
        answer.map_err(|error| ActionError::from(self.note_bmc(node, &error)))
    }
}

/// Returns how long a boot device lasts: as the service needs it, unless the node forces another persistence (ironic,
/// `node_set_boot_device`).
fn persistence(node: &Node, needed: Persistence) -> Persistence {
    match node.driver_info.get("force_persistent_boot_device") {
        Some(Value::Bool(true)) => Persistence::Continuous,
        Some(Value::String(word)) if word == "Always" || word.eq_ignore_ascii_case("true") => {
            Persistence::Continuous
        }
        Some(Value::String(word)) if word == "Never" => Persistence::Once,
        _ => needed,
    }
}

/// Returns the boot mode to set together with the boot device.
///
/// IPMI sets the mode with every boot device (IPMI 2.0 §28.13): without the mode, a UEFI machine would boot by BIOS. IPMI does not report
/// the mode, so the declared mode goes before the one of the last inspection. Redfish keeps the mode unless a request names one.
fn boot_mode(node: &Node) -> Option<BootMode> {
    match node.driver {
        Driver::Ipmi => declared_boot_mode(node).or(node.boot_mode),
        Driver::Idrac | Driver::Redfish | Driver::FakeHardware | Driver::ManualManagement => None,
    }
}

#[cfg(test)]
mod tests;
