//! Where to boot from (DSP0268 `ComputerSystem`, `Boot`).

use async_trait::async_trait;
use bmc::{BmcError, Boot};
use hardware::{BootDevice, BootMode, BootOverride, Persistence};
use serde_json::{Map, Value, json};

use crate::document::Document;
use crate::quirks;
use crate::service::{Resource, Service};

const TARGET: &str = "BootSourceOverrideTarget";
const ENABLED: &str = "BootSourceOverrideEnabled";
const MODE: &str = "BootSourceOverrideMode";

#[async_trait]
impl Boot for Service {
    async fn get(&self) -> Result<Option<BootOverride>, BmcError> {
        let system = self.system().await?;
        // What is asked for but not yet applied stands in the settings, if there are any.
        let pending = self.boot_settings(&system).await?;
        let pending = pending.and_then(|settings| read(settings.body.at("Boot")));
        Ok(pending.or_else(|| read(system.body.at("Boot"))))
    }

    async fn set(&self, wanted: BootOverride) -> Result<(), BmcError> {
        let system = self.system().await?;
        let settings = self.boot_settings(&system).await?;
        let resource = settings.as_ref().unwrap_or(&system);
        let boot = overriding(wanted, &system.body, resource.body.at("Boot"))?;
        let done = self.patch(resource, json!({"Boot": boot})).await;
        // Continuous overrides have left the standard, and some makers' BMCs, without every list
        // telling so (ironic, `_set_boot_device`).
        match done {
            Err(BmcError::Refused { answer, transient: false, .. }) if answer.contains(ENABLED) => {
                Err(not_for_so_long(wanted))
            }
            done => done,
        }
    }

    async fn supported(&self) -> Result<Vec<BootDevice>, BmcError> {
        let system = self.system().await?;
        let settings = self.boot_settings(&system).await?;
        let pending = settings.as_ref().map_or(&Value::Null, |settings| settings.body.at("Boot"));
        let Some(listed) = listed(TARGET, &system.body, pending) else {
            return Ok(BootDevice::ALL.to_vec());
        };
        Ok(BootDevice::ALL.into_iter().filter(|d| listed.contains(&target(*d))).collect())
    }
}

impl Service {
    /// The resource that takes changes of `system`'s boot override, if that is not `system`.
    ///
    /// Nokia's servers and iDRAC10 want changes in `@Redfish.Settings` (DSP0266 §8.10); others
    /// have such a resource for other things, so it must have the property (sushy,
    /// `check-for-boot-attrs-in-settingsuri`).
    async fn boot_settings(&self, system: &Resource) -> Result<Option<Resource>, BmcError> {
        let settings = self.link(system.body.at("@Redfish.Settings"), "SettingsObject");
        let Some(url) = settings else { return Ok(None) };
        let settings = self.find(&url).await?;
        Ok(settings.filter(|settings| settings.body.at("Boot").get(TARGET).is_some()))
    }
}

/// The override a `Boot` property tells of.
fn read(boot: &Value) -> Option<BootOverride> {
    let persistence = match boot.word(ENABLED) {
        "Once" => Persistence::Once,
        "Continuous" => Persistence::Continuous,
        _ => return None,
    };
    let device = match boot.word(TARGET) {
        // Supermicro's name for its virtual CD.
        "UsbCd" => BootDevice::Cdrom,
        word => BootDevice::ALL.into_iter().find(|device| target(*device) == word)?,
    };
    Some(BootOverride { device, persistence, mode: mode(boot) })
}

/// The mode a `Boot` property tells of.
pub(crate) fn mode(boot: &Value) -> Option<BootMode> {
    match boot.word(MODE) {
        "UEFI" => Some(BootMode::Uefi),
        "Legacy" => Some(BootMode::Bios),
        _ => None,
    }
}

/// What to write into `Boot` to have `wanted`; `pending` is the `Boot` that takes it.
fn overriding(wanted: BootOverride, system: &Value, pending: &Value) -> Result<Value, BmcError> {
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

    // Always told, also if it does not change: Supermicro's falls back to Once (ironic,
    // `supermicro-redfish-override-enabled`).
    let enabled = match wanted.persistence {
        Persistence::Once => "Once",
        Persistence::Continuous => "Continuous",
    };
    if !takes(ENABLED, enabled) {
        return Err(not_for_so_long(wanted));
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

fn not_for_so_long(wanted: BootOverride) -> BmcError {
    let lasting = match wanted.persistence {
        Persistence::Once => "for one boot only",
        Persistence::Continuous => "for more than one boot",
    };
    BmcError::Unsupported { what: format!("boot from {} {lasting}", wanted.device) }
}

/// The mode to write; none where the machine knows no modes, or nobody cares.
fn wanted_mode(wanted: BootOverride, system: &Value) -> Option<&'static str> {
    let boot = system.at("Boot");
    if boot.at(MODE).is_null() && boot.words(&format!("{MODE}@Redfish.AllowableValues")).is_none() {
        return None;
    }
    let same = || mode(boot).filter(|_| quirks::ami_wants_the_boot_mode_too(system));
    match wanted.mode.or_else(same)? {
        BootMode::Uefi => Some("UEFI"),
        BootMode::Bios => Some("Legacy"),
    }
}

/// The values listed for `name`. iDRAC10 lists them only in the settings (sushy,
/// `idrac10-settings-resource`).
fn listed<'a>(name: &str, system: &'a Value, pending: &'a Value) -> Option<Vec<&'a str>> {
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
    fn a_mode_is_only_written_where_modes_are_known() {
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
    fn what_is_not_listed_is_not_asked_for() {
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
    fn ami_is_told_the_mode_it_has() {
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
