//! Changes of BIOS attributes and of secure boot.

use serde_json::{Map, Value};

use crate::log::Protocol;
use crate::redfish::face::RedfishFace;
use crate::redfish::problem::{Message, Problem};
use crate::setup::{Attribute, AttributeProblem};
use crate::spec::Firmware;

const ATTRIBUTES: &str = "Attributes";
/// The annotation by which a client chooses when a change takes effect (DSP0266 §9.10).
const APPLY_TIME: &str = "@Redfish.SettingsApplyTime";
const SECURE_BOOT: &str = "SecureBootEnable";
const RESET_KEYS: &str = "SecureBoot.ResetKeys";
const RESET_KEYS_TYPE: &str = "ResetKeysType";

impl RedfishFace {
    /// A PATCH of the settings resource: the attributes for the next start. A request with one wrong attribute changes nothing.
    pub(super) fn patch_bios(&self, form: &Map<String, Value>) -> Result<(), Problem> {
        for (name, value) in form.iter().filter(|(name, _)| *name != ATTRIBUTES) {
            if name != APPLY_TIME {
                return Err(Problem::property(Message::PROPERTY_NOT_WRITABLE, name));
            }
            if value["ApplyTime"] != "OnReset" {
                let name = format!("{APPLY_TIME}/ApplyTime");
                return Err(Problem::value(
                    Message::PROPERTY_NOT_IN_LIST,
                    &name,
                    &value["ApplyTime"],
                ));
            }
        }
        let missing = || Problem::property(Message::PROPERTY_MISSING, ATTRIBUTES);
        let wanted = form.get(ATTRIBUTES).ok_or_else(missing)?;
        let wrong = || Problem::value(Message::PROPERTY_TYPE, ATTRIBUTES, wanted);
        let wanted = wanted.as_object().ok_or_else(wrong)?;
        for (name, value) in wanted {
            let path = format!("{ATTRIBUTES}/{name}");
            let unknown = || Problem::property(Message::PROPERTY_UNKNOWN, &path);
            let attribute = Attribute::find(name).ok_or_else(unknown)?;
            if attribute.read_only {
                return Err(Problem::property(Message::PROPERTY_NOT_WRITABLE, &path));
            }
            attribute.check(value).map_err(|problem| match problem {
                AttributeProblem::Type => Problem::value(Message::PROPERTY_TYPE, &path, value),
                AttributeProblem::NotAllowed => {
                    Problem::value(Message::PROPERTY_NOT_IN_LIST, &path, value)
                }
            })?;
        }
        self.machine.change_bios(Protocol::Redfish, wanted.clone());
        Ok(())
    }

    /// DSP0268 `SecureBoot`: secure boot can be switched on in UEFI mode only, and needs keys.
    pub(super) fn patch_secure_boot(&self, form: &Map<String, Value>) -> Result<(), Problem> {
        if let Some(name) = form.keys().find(|name| *name != SECURE_BOOT) {
            return Err(Problem::property(Message::PROPERTY_NOT_WRITABLE, name));
        }
        let Some(value) = form.get(SECURE_BOOT) else { return Ok(()) };
        let wrong = || Problem::value(Message::PROPERTY_TYPE, SECURE_BOOT, value);
        let on = value.as_bool().ok_or_else(wrong)?;
        if on
            && (self.machine.boot_mode() == Firmware::Bios || !self.machine.has_secure_boot_keys())
        {
            return Err(Problem::property(Message::PROPERTY_NOT_WRITABLE, SECURE_BOOT));
        }
        let time = self.profile.bios.secure_boot_changes;
        self.machine.change_secure_boot(Protocol::Redfish, on, time);
        Ok(())
    }

    /// DSP0268 `SecureBoot`, action `ResetKeys`.
    pub(super) fn reset_keys(&self, form: &Map<String, Value>) -> Result<(), Problem> {
        if let Some(name) = form.keys().find(|name| *name != RESET_KEYS_TYPE) {
            return Err(Problem::parameter(Message::PARAMETER_UNKNOWN, RESET_KEYS, name));
        }
        let missing =
            || Problem::parameter(Message::PARAMETER_MISSING, RESET_KEYS, RESET_KEYS_TYPE);
        let value = form.get(RESET_KEYS_TYPE).ok_or_else(missing)?;
        let wrong = |message| Problem::argument(message, RESET_KEYS, RESET_KEYS_TYPE, value);
        let wanted = match value.as_str().ok_or_else(|| wrong(Message::PARAMETER_TYPE))? {
            "ResetAllKeysToDefault" => true,
            "DeleteAllKeys" => false,
            _ => return Err(wrong(Message::PARAMETER_NOT_IN_LIST)),
        };
        let time = self.profile.bios.secure_boot_changes;
        self.machine.reset_secure_boot_keys(Protocol::Redfish, wanted, time);
        Ok(())
    }
}
