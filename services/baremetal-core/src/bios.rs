//! The settings of a machine's firmware, as the node records them.

use std::collections::{BTreeMap, BTreeSet};

use hardware::BiosAttribute;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The most settings of a node. Machines have some hundred.
pub const MOST_BIOS_SETTINGS: usize = 4096;

/// A setting of the firmware, with the description that the BMC gives.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BiosSetting {
    pub name: String,
    pub value: Option<String>,
    pub created_at: Timestamp,
    /// When the value last changed; `None` before the first change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<Timestamp>,
    #[serde(flatten)]
    pub attribute: BiosAttribute,
}

/// A setting that a step applies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewBiosSetting {
    pub name: String,
    pub value: Option<String>,
    pub attribute: BiosAttribute,
}

/// Why the argument `settings` of a step is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {problem}")]
pub struct BiosRefused {
    /// The path of the wrong field, such as `settings[1].name`.
    pub field: String,
    pub problem: &'static str,
}

/// Parses the argument `settings` of the step `apply_configuration`: a list of objects with `name` and `value`.
pub fn parse_bios_settings(
    arguments: &Map<String, Value>,
) -> Result<Vec<NewBiosSetting>, BiosRefused> {
    let refuse = |field: &str, problem| BiosRefused { field: field.to_owned(), problem };
    let settings = arguments.get("settings").ok_or_else(|| refuse("settings", "is required"))?;
    let settings = settings.as_array().ok_or_else(|| refuse("settings", "must be a list"))?;
    if settings.len() > MOST_BIOS_SETTINGS {
        return Err(refuse("settings", "a node has 4096 at most"));
    }
    let (mut names, mut parsed) = (BTreeSet::new(), Vec::new());
    for (number, setting) in settings.iter().enumerate() {
        let field = |name: &str| format!("settings[{number}].{name}");
        let name = setting["name"].as_str().filter(|name| is_name(name));
        let name = name.ok_or_else(|| refuse(&field("name"), "must be text of 1 to 255 bytes"))?;
        if !names.insert(name) {
            return Err(refuse(&field("name"), "another setting has the same name"));
        }
        let value = match &setting["value"] {
            Value::Null => None,
            Value::String(text) => Some(text.clone()),
            simple @ (Value::Bool(_) | Value::Number(_)) => Some(simple.to_string()),
            Value::Array(_) | Value::Object(_) => {
                return Err(refuse(&field("value"), "must be text, a number or a boolean"));
            }
        };
        let attribute = BiosAttribute::default();
        parsed.push(NewBiosSetting { name: name.to_owned(), value, attribute });
    }
    Ok(parsed)
}

/// Whether a setting can have this name. PostgreSQL stores no NUL, and the name is a part of URLs.
fn is_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= 255 && !name.contains(|c: char| c.is_control())
}

/// Returns the settings of a node after `wanted` were applied to `present`. Settings that `wanted` does not name are dropped, as in Ironic:
/// the record holds what was applied last. A setting that did not change keeps its times.
pub fn apply_bios_settings(
    present: Vec<BiosSetting>,
    wanted: Vec<NewBiosSetting>,
    now: Timestamp,
) -> Vec<BiosSetting> {
    let mut present: BTreeMap<String, BiosSetting> =
        present.into_iter().map(|setting| (setting.name.clone(), setting)).collect();
    let apply = |NewBiosSetting { name, value, attribute }: NewBiosSetting| {
        let before = present.remove(&name);
        let (created_at, updated_at) = match &before {
            None => (now, None),
            Some(old) if old.value == value && old.attribute == attribute => {
                (old.created_at, old.updated_at)
            }
            Some(old) => (old.created_at, Some(now)),
        };
        BiosSetting { name, value, created_at, updated_at, attribute }
    };
    wanted.into_iter().map(apply).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn wanted(name: &str, value: &str) -> NewBiosSetting {
        let attribute = BiosAttribute::default();
        NewBiosSetting { name: name.to_owned(), value: Some(value.to_owned()), attribute }
    }

    #[test]
    fn settings_are_created_changed_kept_and_dropped() {
        let first = vec![wanted("a", "1"), wanted("b", "1"), wanted("c", "1")];
        let first = apply_bios_settings(Vec::new(), first, at(1));
        let second = vec![wanted("b", "2"), wanted("c", "1"), wanted("d", "1")];
        let second = apply_bios_settings(first, second, at(2));
        let told: Vec<_> = second
            .iter()
            .map(|it| (it.name.as_str(), it.value.as_deref(), it.created_at, it.updated_at))
            .collect();
        let want = [
            ("b", Some("2"), at(1), Some(at(2))),
            ("c", Some("1"), at(1), None),
            ("d", Some("1"), at(2), None),
        ];
        assert_eq!(told, want);
    }

    #[track_caller]
    fn check(arguments: Value, want: Result<&[(&str, Option<&str>)], &str>) {
        let parsed = parse_bios_settings(arguments.as_object().unwrap());
        let parsed = parsed.map_err(|why| why.to_string());
        let told = parsed.as_ref().map(|settings| {
            let pairs = settings.iter().map(|it| (it.name.as_str(), it.value.as_deref()));
            pairs.collect::<Vec<_>>()
        });
        assert_eq!(told.map_err(String::as_str), want.map(<[_]>::to_vec));
    }

    #[test]
    fn the_argument_of_a_step_is_parsed() {
        let settings = json!({"settings": [
            {"name": "a", "value": "on"}, {"name": "b", "value": 3}, {"name": "c", "value": null}, {"name": "d"}
        ]});
        check(settings, Ok(&[("a", Some("on")), ("b", Some("3")), ("c", None), ("d", None)]));
        check(json!({"settings": []}), Ok(&[]));
        check(json!({}), Err("settings: is required"));
        check(json!({"settings": {}}), Err("settings: must be a list"));
        let name = "settings[0].name: must be text of 1 to 255 bytes";
        check(json!({"settings": [1]}), Err(name));
        check(json!({"settings": [{"value": "on"}]}), Err(name));
        check(json!({"settings": [{"name": ""}]}), Err(name));
        let value = "settings[0].value: must be text, a number or a boolean";
        check(json!({"settings": [{"name": "a", "value": []}]}), Err(value));
        let twice = "settings[1].name: another setting has the same name";
        check(json!({"settings": [{"name": "a"}, {"name": "a"}]}), Err(twice));
    }

    #[test]
    fn a_step_has_at_most_as_many_settings_as_a_node() {
        let parsed = |count: usize| {
            let settings: Vec<Value> = (0..count).map(|n| json!({"name": n.to_string()})).collect();
            parse_bios_settings(&Map::from_iter([("settings".to_owned(), settings.into())]))
        };
        assert_eq!(parsed(4096).unwrap().len(), 4096);
        assert_eq!(parsed(4097).unwrap_err().to_string(), "settings: a node has 4096 at most");
    }
}
