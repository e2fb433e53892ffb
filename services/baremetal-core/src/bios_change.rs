//! Changes of BIOS settings: which values the firmware of a machine can get, and whether it took them.

use std::collections::BTreeMap;
use std::fmt;

use hardware::{BiosAttribute, BiosValue, BiosValues};

use crate::NewBiosSetting;

/// The names of settings with their values.
pub type NamedValues = BTreeMap<String, BiosValue>;

/// The descriptions of settings by their names.
pub type NamedAttributes = BTreeMap<String, BiosAttribute>;

/// Why wanted settings are refused: one problem for each wrong setting.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", .problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
pub struct BiosValuesRefused {
    pub problems: Vec<BiosProblem>,
}

/// The problem of one wanted setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BiosProblem {
    pub name: String,
    pub problem: String,
}

impl fmt::Display for BiosProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BIOS setting {:?} {}", self.name, self.problem)
    }
}

/// Converts the wanted settings to values of the types that the machine has, given its settings and their descriptions.
///
/// # Errors
///
/// Names each setting that the machine does not have, that is read only, or whose value is out of range.
pub fn bios_values(
    wanted: &[NewBiosSetting],
    known: &BiosValues,
    attributes: &NamedAttributes,
) -> Result<NamedValues, BiosValuesRefused> {
    let (mut values, mut problems) = (NamedValues::new(), Vec::new());
    for setting in wanted {
        let described = attributes.get(&setting.name);
        let converted = match (known.current.get(&setting.name), described) {
            (None, None) => Err("is not a setting of this machine".to_owned()),
            (current, None) => typed_as(current.unwrap_or(&BiosValue::Unknown), setting),
            (_, Some(described)) => described_value(described, setting),
        };
        match converted {
            Ok(value) => drop(values.insert(setting.name.clone(), value)),
            Err(problem) => problems.push(BiosProblem { name: setting.name.clone(), problem }),
        }
    }
    if problems.is_empty() { Ok(values) } else { Err(BiosValuesRefused { problems }) }
}

fn text(setting: &NewBiosSetting) -> Result<&str, String> {
    setting.value.as_deref().ok_or_else(|| "needs a value".to_owned())
}

fn described_value(
    attribute: &BiosAttribute,
    setting: &NewBiosSetting,
) -> Result<BiosValue, String> {
    if attribute.read_only == Some(true) {
        return Err("is read only".to_owned());
    }
    let text = text(setting)?;
    match attribute.attribute_type.as_deref() {
        Some("Enumeration") => {
            let allowed = &attribute.allowable_values;
            match allowed.is_empty() || allowed.iter().any(|allowed| allowed == text) {
                true => Ok(BiosValue::Text(text.to_owned())),
                false => Err(format!("must be one of {}", allowed.join(", "))),
            }
        }
        Some("Integer") => {
            let number = integer(text)?;
            let (least, most) = (attribute.lower_bound, attribute.upper_bound);
            within(number, least, most, "must be").map(|()| BiosValue::Integer(number))
        }
        Some("Boolean") => boolean(text),
        Some("Password") => Err("is a password, which this step cannot change".to_owned()),
        Some(_) | None => {
            let length = i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
            let (least, most) = (attribute.min_length, attribute.max_length);
            within(length, least, most, "must have a length of")
                .map(|()| BiosValue::Text(text.to_owned()))
        }
    }
}

/// Converts a value to the type of the current value, for a machine that does not describe its settings.
fn typed_as(current: &BiosValue, setting: &NewBiosSetting) -> Result<BiosValue, String> {
    let text = text(setting)?;
    match current {
        BiosValue::Boolean(_) => boolean(text),
        BiosValue::Integer(_) => integer(text).map(BiosValue::Integer),
        BiosValue::Text(_) | BiosValue::Unknown => Ok(BiosValue::Text(text.to_owned())),
    }
}

fn integer(text: &str) -> Result<i64, String> {
    text.trim().parse().map_err(|_| "must be a whole number".to_owned())
}

fn boolean(text: &str) -> Result<BiosValue, String> {
    match text.to_ascii_lowercase().as_str() {
        "true" => Ok(BiosValue::Boolean(true)),
        "false" => Ok(BiosValue::Boolean(false)),
        _ => Err("must be true or false".to_owned()),
    }
}

fn within(number: i64, least: Option<i64>, most: Option<i64>, must: &str) -> Result<(), String> {
    let is_within = least.is_none_or(|it| number >= it) && most.is_none_or(|it| number <= it);
    match (least, most) {
        _ if is_within => Ok(()),
        (Some(least), Some(most)) => Err(format!("{must} {least} to {most}")),
        (Some(least), None) => Err(format!("{must} {least} or more")),
        (None, most) => Err(format!("{must} {} or less", most.unwrap_or(i64::MAX))),
    }
}

/// Returns the names of the `wanted` settings that the firmware does not have in force, or that it will change at its next start.
pub fn bios_not_applied(wanted: &NamedValues, known: &BiosValues) -> Vec<String> {
    let is_applied = |name: &String, value: &BiosValue| {
        let is_current = known.current.get(name).is_some_and(|current| current.is(value));
        is_current && known.pending.get(name).is_none_or(|pending| pending.is(value))
    };
    let missing = wanted.iter().filter(|(name, value)| !is_applied(name, value));
    missing.map(|(name, _)| name.clone()).collect()
}

/// Returns the settings of a machine as the node records them.
pub fn recorded_bios_settings(
    known: &BiosValues,
    attributes: &NamedAttributes,
) -> Vec<NewBiosSetting> {
    let record = |(name, value): (&String, &BiosValue)| NewBiosSetting {
        name: name.clone(),
        value: value.shown(),
        attribute: attributes.get(name).cloned().unwrap_or_default(),
    };
    known.current.iter().map(record).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(name: &str, value: &str) -> NewBiosSetting {
        let attribute = BiosAttribute::default();
        NewBiosSetting { name: name.to_owned(), value: Some(value.to_owned()), attribute }
    }

    fn machine() -> (BiosValues, NamedAttributes) {
        let text = |text: &str| BiosValue::Text(text.to_owned());
        let current = [
            ("Sata", text("Ahci")),
            ("Delay", BiosValue::Integer(0)),
            ("Quiet", BiosValue::Boolean(true)),
            ("Tag", text("")),
            ("Serial", text("S1")),
            ("Password", BiosValue::Unknown),
            ("Plain", BiosValue::Integer(1)),
            ("Switch", BiosValue::Boolean(true)),
            ("Word", text("x")),
        ];
        let kind = |kind: &str| BiosAttribute {
            attribute_type: Some(kind.to_owned()),
            ..BiosAttribute::default()
        };
        let words = vec!["Ata".to_owned(), "Ahci".to_owned()];
        let attributes = [
            ("Sata", BiosAttribute { allowable_values: words, ..kind("Enumeration") }),
            (
                "Delay",
                BiosAttribute { lower_bound: Some(0), upper_bound: Some(255), ..kind("Integer") },
            ),
            ("Quiet", kind("Boolean")),
            ("Tag", BiosAttribute { min_length: Some(1), max_length: Some(4), ..kind("String") }),
            ("Serial", BiosAttribute { read_only: Some(true), ..kind("String") }),
            ("Password", kind("Password")),
        ];
        let current = current.map(|(name, value)| (name.to_owned(), value)).into();
        let values = BiosValues { current, ..BiosValues::default() };
        (values, attributes.map(|(name, it)| (name.to_owned(), it)).into())
    }

    #[track_caller]
    fn check(name: &str, value: &str, want: Result<BiosValue, &str>) {
        let (known, attributes) = machine();
        let got = bios_values(&[wanted(name, value)], &known, &attributes);
        let got = got.map(|values| values[name].clone()).map_err(|why| why.to_string());
        let want = want.map_err(|problem| format!("BIOS setting {name:?} {problem}"));
        assert_eq!(got, want);
    }

    #[test]
    fn a_value_gets_the_type_of_the_setting() {
        check("Sata", "Ata", Ok(BiosValue::Text("Ata".to_owned())));
        check("Delay", "7", Ok(BiosValue::Integer(7)));
        check("Quiet", "False", Ok(BiosValue::Boolean(false)));
        check("Tag", "abcd", Ok(BiosValue::Text("abcd".to_owned())));
        check("Plain", "-3", Ok(BiosValue::Integer(-3)));
        check("Switch", "true", Ok(BiosValue::Boolean(true)));
        check("Word", "y", Ok(BiosValue::Text("y".to_owned())));
    }

    #[test]
    fn a_wrong_setting_is_refused_by_its_name() {
        check("Nothing", "x", Err("is not a setting of this machine"));
        check("Serial", "x", Err("is read only"));
        check("Password", "x", Err("is a password, which this step cannot change"));
        check("Sata", "ahci", Err("must be one of Ata, Ahci"));
        check("Delay", "256", Err("must be 0 to 255"));
        check("Delay", "-1", Err("must be 0 to 255"));
        check("Delay", "x", Err("must be a whole number"));
        check("Quiet", "yes", Err("must be true or false"));
        check("Tag", "", Err("must have a length of 1 to 4"));
        check("Tag", "abcde", Err("must have a length of 1 to 4"));
        check("Plain", "1.5", Err("must be a whole number"));
        let (known, attributes) = machine();
        let none = NewBiosSetting { value: None, ..wanted("Sata", "") };
        let both = bios_values(&[none, wanted("Serial", "x")], &known, &attributes).unwrap_err();
        let words = "BIOS setting \"Sata\" needs a value; BIOS setting \"Serial\" is read only";
        assert_eq!(both.to_string(), words);
    }

    #[test]
    fn a_bound_on_one_side_is_a_bound() {
        assert_eq!(within(3, Some(4), None, "must be"), Err("must be 4 or more".to_owned()));
        assert_eq!(within(3, None, Some(2), "must be"), Err("must be 2 or less".to_owned()));
        assert_eq!(within(3, Some(3), Some(3), "must be"), Ok(()));
    }

    #[test]
    fn a_setting_is_applied_when_it_is_in_force_and_stays() {
        let (mut known, _) = machine();
        let wanted: NamedValues = [("Delay".to_owned(), BiosValue::Integer(7))].into();
        assert_eq!(bios_not_applied(&wanted, &known), ["Delay"]);
        known.current.insert("Delay".to_owned(), BiosValue::Text("7".to_owned()));
        assert!(bios_not_applied(&wanted, &known).is_empty());
        known.pending.insert("Delay".to_owned(), BiosValue::Integer(7));
        assert!(bios_not_applied(&wanted, &known).is_empty());
        known.pending.insert("Delay".to_owned(), BiosValue::Integer(8));
        assert_eq!(bios_not_applied(&wanted, &known), ["Delay"]);
        known.current.remove("Delay");
        assert_eq!(bios_not_applied(&wanted, &known), ["Delay"]);
    }

    #[test]
    fn a_machine_without_descriptions_is_recorded_with_its_values() {
        let (known, attributes) = machine();
        let recorded = recorded_bios_settings(&known, &attributes);
        let found = |name: &str| recorded.iter().find(|it| it.name == name).unwrap();
        assert_eq!(found("Quiet").value.as_deref(), Some("True"));
        assert_eq!(found("Password").value, None);
        assert_eq!(found("Delay").attribute.upper_bound, Some(255));
        assert_eq!(found("Plain").attribute, BiosAttribute::default());
    }
}
