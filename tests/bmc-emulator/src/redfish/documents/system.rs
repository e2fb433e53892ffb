//! The computer system: power, boot override, and links to its parts.

use serde_json::{Value, json};

use crate::boot::{BootOverride, OverrideDuration};
use crate::machine::Identify;
use crate::profile::{BootTarget, Part, ResetValuesSource};
use crate::redfish::RedfishFace;
use crate::redfish::resource::Resource;
use crate::spec::Firmware;

impl RedfishFace {
    pub(super) fn system(&self) -> Value {
        let spec = self.machine.spec();
        let profile = self.profile;
        let mut system = json!({
            "@odata.type": "#ComputerSystem.v1_16_0.ComputerSystem",
            "Id": profile.ids.system,
            "Name": "System",
            "SystemType": "Physical",
            "HostName": "",
            "Manufacturer": spec.manufacturer,
            "Model": spec.model,
            "SerialNumber": spec.serial,
            "UUID": spec.uuid,
            "BiosVersion": profile.bios_version,
            "Status": super::healthy_status(),
            "PowerState": if self.machine.reported_on() { "On" } else { "Off" },
            "Boot": self.boot(),
            "ProcessorSummary": {
                "Count": self.processor_count(),
                "LogicalProcessorCount": spec.cpus,
                "Model": super::inventory::PROCESSOR,
                "Status": super::healthy_status(),
            },
            "MemorySummary": {
                "TotalSystemMemoryGiB": gibibytes(spec.memory_mib),
                "Status": super::healthy_status(),
            },
            "Actions": {"#ComputerSystem.Reset": self.reset_action()},
        });
        if profile.has(Part::IndicatorLed) {
            let lit = self.machine.identify() != Identify::Off;
            system["IndicatorLED"] = json!(if lit { "Blinking" } else { "Off" });
            system["LocationIndicatorActive"] = json!(lit);
        }
        if profile.boot.settings.is_some() {
            system["@Redfish.Settings"] = json!({
                "@odata.type": "#Settings.v1_3_5.Settings",
                "SettingsObject": self.link(Resource::SystemSettings),
                "SupportedApplyTimes": ["OnReset"],
            });
        }
        self.add_links(
            &mut system,
            &[
                ("Processors", Resource::Processors),
                ("Memory", Resource::Dimms),
                ("Storage", Resource::StorageUnits),
                ("EthernetInterfaces", Resource::Nics),
            ],
        );
        if self.media_is_under_system() {
            system["VirtualMedia"] = self.link(Resource::MediaDrives);
        }
        self.add_relations(
            &mut system,
            &[("Chassis", Resource::Chassis), ("ManagedBy", Resource::Manager)],
        );
        system
    }

    /// The settings resource, which takes boot changes if the system itself does not.
    pub(super) fn system_settings(&self) -> Value {
        json!({
            "@odata.type": "#ComputerSystem.v1_16_0.ComputerSystem",
            "Id": self.profile.boot.settings,
            "Name": "System Settings",
            "Boot": self.boot(),
        })
    }

    pub(super) fn reset_action_info(&self) -> Value {
        json!({
            "@odata.type": "#ActionInfo.v1_2_0.ActionInfo",
            "Id": "ResetActionInfo",
            "Name": "Reset Action Info",
            "Parameters": [{
                "Name": "ResetType",
                "Required": true,
                "DataType": "String",
                "AllowableValues": self.reset_values(),
            }],
        })
    }

    /// The boot modes of this machine's firmware.
    pub(crate) fn boot_modes(&self) -> &'static [&'static str] {
        match self.machine.spec().firmware {
            Firmware::Bios => &["Legacy"],
            Firmware::Uefi => &["UEFI"],
        }
    }

    /// The targets of a boot override on this machine. Only UEFI has HTTP boot.
    pub(crate) fn boot_targets(&self) -> impl Iterator<Item = BootTarget> {
        let uefi = self.machine.spec().firmware == Firmware::Uefi;
        self.profile
            .boot
            .targets
            .iter()
            .copied()
            .filter(move |target| uefi || *target != BootTarget::UefiHttp)
    }

    fn reset_action(&self) -> Value {
        let mut action = json!({"target": Resource::Reset.path(self.profile)});
        match self.profile.reset.told_by {
            ResetValuesSource::AllowableValues => {
                action["ResetType@Redfish.AllowableValues"] = self.reset_values()
            }
            ResetValuesSource::ActionInfo => {
                action["@Redfish.ActionInfo"] = json!(Resource::ResetActionInfo.path(self.profile));
            }
            ResetValuesSource::Nowhere => {}
        }
        action
    }

    fn reset_values(&self) -> Value {
        self.profile.reset.types.iter().map(|reset| reset.as_str()).collect()
    }

    /// The `Boot` object of DSP2046's ComputerSystem.
    fn boot(&self) -> Value {
        let rules = &self.profile.boot;
        let found = self.machine.boot_override();
        let target = found.as_ref().map_or(BootTarget::None, |boot| BootTarget::of(boot.device));
        let mut boot = json!({
            "BootSourceOverrideEnabled": enabled(found.as_ref()),
            "BootSourceOverrideTarget": target.as_str(),
        });
        if rules.tells_allowable {
            boot["BootSourceOverrideTarget@Redfish.AllowableValues"] =
                self.boot_targets().map(BootTarget::as_str).collect();
        }
        if rules.has_mode {
            let asked =
                found.as_ref().and_then(|boot| boot.mode).unwrap_or(self.machine.spec().firmware);
            boot["BootSourceOverrideMode"] = json!(mode_name(asked));
            if rules.tells_allowable {
                boot["BootSourceOverrideMode@Redfish.AllowableValues"] = json!(self.boot_modes());
            }
        }
        if rules.http_uri {
            boot["HttpBootUri"] = json!(found.and_then(|boot| boot.http_uri));
        }
        boot
    }
}

/// The value of `BootSourceOverrideEnabled`.
fn enabled(boot: Option<&BootOverride>) -> &'static str {
    match boot.map(|boot| boot.lasting) {
        None => "Disabled",
        Some(OverrideDuration::Once) => "Once",
        Some(OverrideDuration::Always) => "Continuous",
    }
}

fn mode_name(mode: Firmware) -> &'static str {
    match mode {
        Firmware::Bios => "Legacy",
        Firmware::Uefi => "UEFI",
    }
}

/// Whole gibibytes as an integer, anything else as a fraction.
fn gibibytes(mib: u64) -> Value {
    match mib % 1024 {
        0 => json!(mib / 1024),
        _ => json!(mib as f64 / 1024.0),
    }
}
