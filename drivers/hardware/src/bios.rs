//! Settings of the firmware by name, as a BMC describes them (DSP0268 `Bios` and `AttributeRegistry`).

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// The value of a setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BiosValue {
    /// The BMC does not tell the value, such as a password.
    Unknown,
    Boolean(bool),
    Integer(i64),
    /// A text, a word of an enumeration, or a number with a fraction.
    Text(String),
}

/// The settings of a machine by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BiosValues {
    /// The values in force.
    pub current: BTreeMap<String, BiosValue>,
    /// The values that the firmware takes at its next start. Some BMCs list only the settings that change, and others all.
    pub pending: BTreeMap<String, BiosValue>,
    /// The messages of the BMC about the last values that it gave to the firmware.
    pub messages: Vec<String>,
}

/// The description of a setting: a subset of Redfish's attribute registry. Empty if the BMC gives none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BiosAttribute {
    /// The type of the value, such as `Enumeration` or `Integer`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attribute_type: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allowable_values: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lower_bound: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upper_bound: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_length: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_length: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
    /// Whether a change takes effect after a restart of the machine only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reset_required: Option<bool>,
    /// Whether the value differs between machines, as a serial number does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unique: Option<bool>,
}

impl BiosValue {
    /// Returns the value as the Bare Metal API shows it: Ironic stores booleans in Python's words.
    pub fn shown(&self) -> Option<String> {
        match self {
            BiosValue::Unknown => None,
            BiosValue::Boolean(true) => Some("True".to_owned()),
            BiosValue::Boolean(false) => Some("False".to_owned()),
            BiosValue::Integer(number) => Some(number.to_string()),
            BiosValue::Text(text) => Some(text.clone()),
        }
    }

    /// Returns whether both are the same value. BMCs report numbers and booleans as text too.
    pub fn is(&self, other: &BiosValue) -> bool {
        let word = |value: &BiosValue| match value {
            BiosValue::Unknown => None,
            BiosValue::Boolean(on) => Some(on.to_string()),
            BiosValue::Integer(number) => Some(number.to_string()),
            BiosValue::Text(text) => Some(text.clone()),
        };
        match (self, other) {
            (BiosValue::Text(one), BiosValue::Text(other)) => one == other,
            (one, other) => match (word(one), word(other)) {
                (Some(one), Some(other)) => one.eq_ignore_ascii_case(&other),
                (_, _) => false,
            },
        }
    }
}

impl fmt::Display for BiosValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown().unwrap_or_else(|| "unknown".to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_the_same_as_text() {
        let text = |text: &str| BiosValue::Text(text.to_owned());
        for (one, other) in [
            (BiosValue::Boolean(true), "true"),
            (BiosValue::Boolean(false), "False"),
            (BiosValue::Integer(-7), "-7"),
        ] {
            assert!(one.is(&text(other)) && text(other).is(&one), "{one:?}");
        }
        assert!(!text("Enabled").is(&text("enabled")), "words of an enumeration differ by case");
        assert!(!BiosValue::Integer(1).is(&BiosValue::Boolean(true)));
        assert!(!BiosValue::Unknown.is(&BiosValue::Unknown));
    }

    #[test]
    fn booleans_are_shown_as_ironic_shows_them() {
        assert_eq!(BiosValue::Boolean(true).shown().as_deref(), Some("True"));
        assert_eq!(BiosValue::Integer(3).shown().as_deref(), Some("3"));
        assert_eq!(BiosValue::Unknown.shown(), None);
    }
}
