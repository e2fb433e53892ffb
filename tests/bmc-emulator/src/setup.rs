//! The settings of the machine's firmware: boot mode, secure boot and BIOS attributes, and the clock of its BMC.
//!
//! A change of a BIOS attribute waits in the settings resource until the machine starts again (`@Redfish.Settings`, DSP0266 §9.10).

use std::collections::BTreeMap;
use std::sync::LazyLock;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::clock::BmcClock;
use crate::spec::{Firmware, MachineSpec};

/// The attribute registry (DSP0268 `AttributeRegistry`) of every machine.
const REGISTRY: &str = include_str!("../documents/registry.json");

static ATTRIBUTES: LazyLock<Vec<Attribute>> = LazyLock::new(|| {
    let registry: Value = serde_json::from_str(REGISTRY).expect("a test reads the registry");
    let attributes = registry["RegistryEntries"]["Attributes"].clone();
    serde_json::from_value(attributes).expect("a test reads the registry")
});

/// A firmware setting, as the registry describes it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Attribute {
    #[serde(rename = "AttributeName")]
    pub(crate) name: String,
    #[serde(rename = "Type")]
    pub(crate) kind: AttributeKind,
    #[serde(default)]
    default_value: Value,
    #[serde(default)]
    pub(crate) read_only: bool,
    #[serde(rename = "Value", default)]
    values: Vec<AllowedValue>,
    lower_bound: Option<i64>,
    upper_bound: Option<i64>,
    min_length: Option<usize>,
    max_length: Option<usize>,
}

/// The types of attributes (DSP0268 `AttributeType`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub(crate) enum AttributeKind {
    Enumeration,
    String,
    Integer,
    Boolean,
    Password,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct AllowedValue {
    value_name: String,
}

/// Why an attribute cannot get a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AttributeProblem {
    Type,
    NotAllowed,
}

/// The settings of one machine's firmware.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Setup {
    boot_mode: Option<Firmware>,
    next_boot_mode: Option<Firmware>,
    pub(crate) secure_boot: bool,
    next_secure_boot: Option<bool>,
    /// Whether the firmware has no keys of secure boot.
    #[serde(default)]
    pub(crate) lacks_keys: bool,
    #[serde(default)]
    next_keys: Option<bool>,
    /// Whether secure boot was in force at the last start.
    pub(crate) secure_boot_now: bool,
    /// Values that differ from the defaults.
    attributes: Map<String, Value>,
    /// Values for the next start.
    pending: Map<String, Value>,
    /// When pending values were last applied.
    pub(crate) applied_at: Option<Timestamp>,
    /// The attributes whose pending values the firmware did not take at the last start.
    pub(crate) ignored: Vec<String>,
    #[serde(default)]
    pub(crate) clock: BmcClock,
    /// The versions of the components that were updated.
    #[serde(default)]
    pub(crate) firmware: BTreeMap<String, String>,
    /// The versions that the next start applies.
    #[serde(default)]
    pub(crate) staged_firmware: BTreeMap<String, String>,
}

/// When a change of the boot mode or of secure boot is visible.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ChangeTime {
    AtOnce,
    /// At the next start of the machine, because the BMC hands the change to the firmware.
    AtReset,
}

impl Setup {
    pub(crate) fn boot_mode(&self, spec: &MachineSpec) -> Firmware {
        self.boot_mode.unwrap_or(spec.firmware)
    }

    pub(crate) fn change_boot_mode(&mut self, mode: Firmware, time: ChangeTime) {
        match time {
            ChangeTime::AtOnce => self.boot_mode = Some(mode),
            ChangeTime::AtReset => self.next_boot_mode = Some(mode),
        }
    }

    pub(crate) fn change_secure_boot(&mut self, on: bool, time: ChangeTime) {
        match time {
            ChangeTime::AtOnce => self.secure_boot = on,
            ChangeTime::AtReset => self.next_secure_boot = Some(on),
        }
    }

    /// Without keys, the firmware starts every program.
    pub(crate) fn change_keys(&mut self, wanted: bool, time: ChangeTime) {
        match time {
            ChangeTime::AtOnce => self.set_keys(wanted),
            ChangeTime::AtReset => self.next_keys = Some(wanted),
        }
    }

    fn set_keys(&mut self, wanted: bool) {
        self.lacks_keys = !wanted;
        self.secure_boot &= wanted;
    }

    /// The values in force.
    pub(crate) fn attributes(&self, spec: &MachineSpec) -> Map<String, Value> {
        let value = |attribute: &Attribute| match attribute.name.as_str() {
            "SerialNumber" => spec.serial.clone().into(),
            name => self.attributes.get(name).unwrap_or(&attribute.default_value).clone(),
        };
        ATTRIBUTES.iter().map(|it| (it.name.clone(), value(it))).collect()
    }

    /// The values for the next start that differ from those in force.
    pub(crate) fn pending(&self) -> &Map<String, Value> {
        &self.pending
    }

    pub(crate) fn change_attributes(&mut self, values: Map<String, Value>) {
        self.pending.extend(values);
    }

    /// Requests the defaults of all attributes.
    pub(crate) fn reset_attributes(&mut self) {
        let writable = ATTRIBUTES.iter().filter(|attribute| !attribute.read_only);
        self.pending = writable.map(|it| (it.name.clone(), it.default_value.clone())).collect();
    }

    /// The machine starts: the firmware takes the pending values, or ignores them all.
    pub(crate) fn start(&mut self, ignores: bool) {
        let pending = std::mem::take(&mut self.pending);
        if !pending.is_empty() {
            self.applied_at = Some(Timestamp::now());
            self.ignored = Vec::new();
        }
        let staged = std::mem::take(&mut self.staged_firmware);
        let (mode, secure) = (self.next_boot_mode.take(), self.next_secure_boot.take());
        let keys = self.next_keys.take();
        if ignores {
            self.ignored = pending.into_iter().map(|(name, _)| name).collect();
        } else {
            self.attributes.extend(pending);
            self.firmware.extend(staged);
            self.boot_mode = mode.or(self.boot_mode);
            self.secure_boot = secure.unwrap_or(self.secure_boot);
            if let Some(wanted) = keys {
                self.set_keys(wanted);
            }
        }
        self.secure_boot_now = self.secure_boot;
    }
}

impl Attribute {
    pub(crate) fn find(name: &str) -> Option<&'static Attribute> {
        ATTRIBUTES.iter().find(|attribute| attribute.name == name)
    }

    pub(crate) fn check(&self, value: &Value) -> Result<(), AttributeProblem> {
        let within = |is: bool| if is { Ok(()) } else { Err(AttributeProblem::NotAllowed) };
        match (self.kind, value) {
            (AttributeKind::Enumeration, Value::String(word)) => {
                within(self.values.iter().any(|allowed| allowed.value_name == *word))
            }
            (AttributeKind::String | AttributeKind::Password, Value::String(text)) => {
                let length = text.chars().count();
                let (least, most) = (self.min_length, self.max_length);
                within(least.is_none_or(|it| length >= it) && most.is_none_or(|it| length <= it))
            }
            (AttributeKind::Integer, Value::Number(number)) => {
                let number = number.as_i64().ok_or(AttributeProblem::Type)?;
                let (least, most) = (self.lower_bound, self.upper_bound);
                within(least.is_none_or(|it| number >= it) && most.is_none_or(|it| number <= it))
            }
            (AttributeKind::Boolean, Value::Bool(_)) => Ok(()),
            _ => Err(AttributeProblem::Type),
        }
    }
}

pub(crate) fn registry_entries() -> Value {
    let registry: Value = serde_json::from_str(REGISTRY).unwrap_or_default();
    registry["RegistryEntries"].clone()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_default_is_a_value_that_the_registry_allows() {
        for attribute in ATTRIBUTES.iter().filter(|it| !it.read_only) {
            if attribute.kind != AttributeKind::Password {
                assert_eq!(attribute.check(&attribute.default_value), Ok(()), "{attribute:?}");
            }
        }
    }

    #[test]
    fn pending_values_take_effect_at_the_next_start() {
        let mut setup = Setup::default();
        let wanted = json!({"EmbeddedSata": "Raid"});
        setup.change_attributes(wanted.as_object().unwrap().clone());
        assert!(setup.attributes.is_empty());
        setup.start(false);
        assert_eq!((&setup.attributes["EmbeddedSata"], setup.pending.len()), (&json!("Raid"), 0));
        setup.reset_attributes();
        setup.start(true);
        assert_eq!(setup.attributes["EmbeddedSata"], "Raid");
        assert!(setup.ignored.contains(&"EmbeddedSata".to_owned()));
    }
}
