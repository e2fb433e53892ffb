//! Boot overrides (DSP0268 `ComputerSystem`, `Boot`).

use async_trait::async_trait;
use bmc::{BmcError, Boot, Result};
use hardware::{BootDevice, BootMode, BootOverride, Persistence};
use serde_json::{Map, Value, json};

use crate::document::Document;
use crate::quirks;
use crate::service::{Resource, Service};

pub(crate) const TARGET: &str = "BootSourceOverrideTarget";
pub(crate) const ENABLED: &str = "BootSourceOverrideEnabled";
pub(crate) const MODE: &str = "BootSourceOverrideMode";

#[async_trait]
impl Boot for Service {
    async fn get(&self) -> Result<Option<BootOverride>> {
        let system = self.system().await?;
        // The settings resource, if there is one, shows an override that was requested but not yet applied.
        let pending = self.boot_settings(&system, TARGET).await?;
        let pending = pending.and_then(|settings| read(settings.body.at("Boot")));
        Ok(pending.or_else(|| read(system.body.at("Boot"))))
    }

    async fn set(&self, wanted: BootOverride) -> Result<()> {
        let system = self.system().await?;
        if wanted.device == BootDevice::Cdrom && self.boots_by_idrac(&system, wanted).await? {
            return Ok(());
        }
        let settings = self.boot_settings(&system, TARGET).await?;
        let resource = settings.as_ref().unwrap_or(&system);
        let boot = overriding(wanted, &system.body, resource.body.at("Boot"))?;
        let done = self.patch(resource, json!({"Boot": boot})).await;
        // The standard has dropped continuous overrides, and so have some vendors' BMCs, not all of which list the allowed values (ironic,
        // `_set_boot_device`).
        match done {
            Err(BmcError::Refused { answer, transient: false, .. }) if answer.contains(ENABLED) => {
                Err(unsupported_persistence(wanted))
            }
            done => done,
        }
    }

    async fn supported(&self) -> Result<Vec<BootDevice>> {
        let system = self.system().await?;
        let settings = self.boot_settings(&system, TARGET).await?;
        let pending = settings.as_ref().map_or(&Value::Null, |settings| settings.body.at("Boot"));
        let Some(listed) = listed(TARGET, &system.body, pending) else {
            return Ok(BootDevice::ALL.to_vec());
        };
        Ok(BootDevice::ALL.into_iter().filter(|d| listed.contains(&target(*d))).collect())
    }
}

impl Service {
    /// Makes the virtual CD the next boot by the iDRAC's own action; returns whether the BMC has that action.
    async fn boots_by_idrac(
        &self,
        system: &Resource,
        wanted: BootOverride,
    ) -> Result<bool, BmcError> {
        for manager in self.managers(&system.body).await? {
            let Some(manager) = self.find_unless_busy(&manager).await? else { continue };
            let asked = quirks::idrac_boots_virtual_cd(&manager.body, wanted.persistence);
            let Some((action, body)) = asked else { continue };
            let answer = self.post(&self.origin.follow(action)?, body).await?;
            self.finish(answer.accepted(&self.origin.host())?).await?;
            return Ok(true);
        }
        Ok(false)
    }

    /// Returns the resource that accepts changes of the boot property `name` of `system`, if that resource is not `system` itself.
    ///
    /// Nokia's servers and iDRAC10 require changes in `@Redfish.Settings` (DSP0266 §8.10). Other BMCs use their settings resource for other
    /// properties, so the resource must have the boot property (sushy, `check-for-boot-attrs-in-settingsuri`).
    pub(crate) async fn boot_settings(
        &self,
        system: &Resource,
        name: &str,
    ) -> Result<Option<Resource>> {
        let settings = self.link(system.body.at("@Redfish.Settings"), "SettingsObject");
        let Some(url) = settings else { return Ok(None) };
        let settings = self.find(&url).await?;
        Ok(settings.filter(|settings| settings.body.at("Boot").get(name).is_some()))
    }
}

/// Reads the override from a `Boot` property.
fn read(boot: &Value) -> Option<BootOverride> {
    let persistence = match boot.word(ENABLED) {
        "Once" => Persistence::Once,
        "Continuous" => Persistence::Continuous,
        _ => return None,
    };
    let device = match boot.word(TARGET) {
        // Supermicro's name for its virtual CD drive.
        "UsbCd" => BootDevice::Cdrom,
        word => BootDevice::ALL.into_iter().find(|device| target(*device) == word)?,
    };
    Some(BootOverride { device, persistence, mode: mode(boot) })
}

/// Reads the boot mode from a `Boot` property.
pub(crate) fn mode(boot: &Value) -> Option<BootMode> {
    match boot.word(MODE) {
        "UEFI" => Some(BootMode::Uefi),
        "Legacy" => Some(BootMode::Bios),
        _ => None,
    }
}

/// Returns the `Boot` property to write for `wanted`; `pending` is the `Boot` property that accepts changes.
fn overriding(wanted: BootOverride, system: &Value, pending: &Value) -> Result<Value> {
    let takes = |name: &str, value: &str| {
        listed(name, system, pending).is_none_or(|listed| listed.contains(&value))
    };
    let mut boot = Map::new();

    let mut device = target(wanted.device);
    let targets = listed(TARGET, system, pending).unwrap_or_default();
    if wanted.device == BootDevice::Cdrom
        && quirks::supermicro_boots_virtual_media_from_usb(system, &targets)
    {
        device = "UsbCd";
    }
    if !takes(TARGET, device) {
        return Err(BmcError::Unsupported { what: format!("boot from {}", wanted.device) });
    }
    boot.insert(TARGET.to_owned(), json!(device));

    // The persistence is always sent, even if it does not change: Supermicro's BMC falls back to Once otherwise (ironic,
    // `supermicro-redfish-override-enabled`).
    let enabled = match wanted.persistence {
        Persistence::Once => "Once",
        Persistence::Continuous => "Continuous",
    };
    if !takes(ENABLED, enabled) {
        return Err(unsupported_persistence(wanted));
    }
    boot.insert(ENABLED.to_owned(), json!(enabled));

    if let Some(mode) = wanted_mode(wanted, system) {
        if !takes(MODE, mode) {
            return Err(BmcError::Unsupported { what: format!("boot in {mode} mode") });
        }
        boot.insert(MODE.to_owned(), json!(mode));
    }
    Ok(Value::Object(boot))
}

fn unsupported_persistence(wanted: BootOverride) -> BmcError {
    let lasting = match wanted.persistence {
        Persistence::Once => "for one boot only",
        Persistence::Continuous => "for more than one boot",
    };
    BmcError::Unsupported { what: format!("boot from {} {lasting}", wanted.device) }
}

/// Returns the mode to write; `None` if the BMC has no boot modes, or if the caller did not ask for one.
fn wanted_mode(wanted: BootOverride, system: &Value) -> Option<&'static str> {
    let boot = system.at("Boot");
    if boot.at(MODE).is_null() && boot.words(&format!("{MODE}@Redfish.AllowableValues")).is_none() {
        return None;
    }
    let same = || mode(boot).filter(|_| quirks::ami_wants_the_boot_mode_too(system));
    wanted.mode.or_else(same).map(mode_word)
}

/// Returns Redfish's name of a boot mode.
pub(crate) const fn mode_word(mode: BootMode) -> &'static str {
    match mode {
        BootMode::Uefi => "UEFI",
        BootMode::Bios => "Legacy",
    }
}

/// Returns the allowed values of property `name`. iDRAC10 lists them only in its settings resource (sushy, `idrac10-settings-resource`).
pub(crate) fn listed<'a>(
    name: &str,
    system: &'a Value,
    pending: &'a Value,
) -> Option<Vec<&'a str>> {
    let name = format!("{name}@Redfish.AllowableValues");
    let listed = system.at("Boot").words(&name).or_else(|| pending.words(&name));
    listed.filter(|listed| !listed.is_empty())
}

const fn target(device: BootDevice) -> &'static str {
    match device {
        BootDevice::Pxe => "Pxe",
        BootDevice::Http => "UefiHttp",
        BootDevice::Disk => "Hdd",
        BootDevice::Cdrom => "Cd",
        BootDevice::Bios => "BiosSetup",
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    const UEFI_PXE_ONCE: BootOverride = BootOverride {
        device: BootDevice::Pxe,
        persistence: Persistence::Once,
        mode: Some(BootMode::Uefi),
    };

    #[track_caller]
    fn check(wanted: BootOverride, system: Value, want: Expect) {
        let boot = overriding(wanted, &system, system.at("Boot"));
        want.assert_eq(&boot.map_or_else(|e| e.to_string(), |boot| boot.to_string()));
    }

    #[test]
    fn a_mode_is_only_written_if_the_bmc_has_modes() {
        check(
            UEFI_PXE_ONCE,
            json!({"Boot": {MODE: "Legacy"}}),
            expect![[
                r#"{"BootSourceOverrideEnabled":"Once","BootSourceOverrideMode":"UEFI","BootSourceOverrideTarget":"Pxe"}"#
            ]],
        );
        check(
            UEFI_PXE_ONCE,
            json!({"Boot": {TARGET: "None"}}),
            expect![[r#"{"BootSourceOverrideEnabled":"Once","BootSourceOverrideTarget":"Pxe"}"#]],
        );
    }

    #[test]
    fn an_unlisted_value_is_not_sent() {
        let system = json!({"Boot": {
            "BootSourceOverrideTarget@Redfish.AllowableValues": ["Hdd", "Pxe"],
            "BootSourceOverrideEnabled@Redfish.AllowableValues": ["Disabled", "Once"],
            "BootSourceOverrideMode@Redfish.AllowableValues": ["Legacy"],
        }});
        let http = BootOverride { device: BootDevice::Http, ..UEFI_PXE_ONCE };
        check(http, system.clone(), expect!["this BMC cannot boot from uefihttp"]);
        let always = BootOverride { persistence: Persistence::Continuous, ..UEFI_PXE_ONCE };
        check(
            always,
            system.clone(),
            expect!["this BMC cannot boot from pxe for more than one boot"],
        );
        check(UEFI_PXE_ONCE, system, expect!["this BMC cannot boot in UEFI mode"]);
    }

    #[test]
    fn supermicro_boots_virtual_media_from_its_usb_cd() {
        let cdrom = BootOverride { device: BootDevice::Cdrom, mode: None, ..UEFI_PXE_ONCE };
        check(
            cdrom,
            json!({"Manufacturer": "Supermicro", "Model": "X12", "Boot": {
                "BootSourceOverrideTarget@Redfish.AllowableValues": ["Cd", "UsbCd"]}}),
            expect![[r#"{"BootSourceOverrideEnabled":"Once","BootSourceOverrideTarget":"UsbCd"}"#]],
        );
    }

    #[test]
    fn ami_gets_its_current_mode_again() {
        let any = BootOverride { mode: None, ..UEFI_PXE_ONCE };
        check(
            any,
            json!({"Manufacturer": "AMI", "Boot": {MODE: "UEFI"}}),
            expect![[
                r#"{"BootSourceOverrideEnabled":"Once","BootSourceOverrideMode":"UEFI","BootSourceOverrideTarget":"Pxe"}"#
            ]],
        );
    }

    #[test]
    fn an_override_is_read_back() {
        let boot = |enabled: &str, target: &str| read(&json!({ENABLED: enabled, TARGET: target}));
        assert_eq!(boot("Disabled", "Pxe"), None);
        assert_eq!(boot("Once", "None"), None);
        assert_eq!(boot("Once", "Usb"), None);
        let found = boot("Continuous", "UsbCd").unwrap();
        assert_eq!((found.device, found.persistence), (BootDevice::Cdrom, Persistence::Continuous));
        assert_eq!(read(&json!(null)), None);
    }
}
