//! Updates of firmware: the argument of the step `update`, and how far one update is.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::Step;
use crate::image_url::check_url;

/// The most components of one step.
const MOST_UPDATES: usize = 32;

/// The longest time to wait after an update, in seconds.
const LONGEST_WAIT: u32 = 7200;

/// An update of one component, as a client requests it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FirmwareUpdate {
    /// `bios`, `bmc`, or a network adapter as `nic:` with its serial number or its id.
    pub component: String,
    pub url: String,
    /// How long to wait after the update, in seconds; for a BMC, how long to wait for its new version.
    pub wait: Option<u32>,
}

/// The kinds of components, which differ in what makes new firmware effective.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ComponentKind {
    Bios,
    Bmc,
    Nic,
}

/// Why the argument `settings` of a step is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {problem}")]
pub struct FirmwareRefused {
    /// The path of the wrong field, such as `settings[1].url`.
    pub field: String,
    pub problem: String,
}

/// One update in progress.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UpdateInProgress {
    pub step: Step,
    /// The place of the update in the argument `settings` of the step, from 0.
    pub number: usize,
    pub stage: UpdateStage,
}

/// How far an update is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UpdateStage {
    /// The BMC was not asked, or refused because it was busy.
    Ready,
    /// The BMC is about to be asked. After an interruption, a new task or another version tells whether it was.
    Asking {
        /// The tasks that the BMC had before; `None` if it lists no tasks.
        known: Option<Vec<String>>,
        version: Option<String>,
        at: Timestamp,
    },
    Accepted(AcceptedUpdate),
}

/// An update that the BMC accepted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AcceptedUpdate {
    /// The task of the BMC; `None` if the BMC has none.
    pub task: Option<String>,
    pub version: Option<String>,
    pub at: Timestamp,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub restarted: bool,
}

impl FirmwareUpdate {
    /// Returns the kind of the component. Every other name than `bios` and `bmc` was parsed as a network adapter.
    pub fn kind(&self) -> ComponentKind {
        match self.component.as_str() {
            "bios" => ComponentKind::Bios,
            "bmc" => ComponentKind::Bmc,
            _ => ComponentKind::Nic,
        }
    }
}

impl UpdateInProgress {
    /// Returns the requested update.
    ///
    /// # Errors
    ///
    /// Fails if the argument of the step is wrong, which was checked before the first update.
    pub fn wanted(&self) -> Result<FirmwareUpdate, FirmwareRefused> {
        let mut updates = parse_firmware_updates(&self.step.args)?;
        if self.number < updates.len() {
            return Ok(updates.swap_remove(self.number));
        }
        let problem = "has no such element".to_owned();
        Err(FirmwareRefused { field: format!("settings[{}]", self.number), problem })
    }

    /// Returns whether the step has a later update.
    pub fn has_more(&self) -> bool {
        let settings = self.step.args.get("settings").and_then(Value::as_array);
        settings.is_some_and(|settings| self.number + 1 < settings.len())
    }
}

/// Parses the argument `settings` of the step `update`: a list of objects with `component`, `url`, and optionally `wait` (ironic,
/// `_FIRMWARE_INTERFACE_UPDATE_SCHEMA`).
pub fn parse_firmware_updates(
    arguments: &Map<String, Value>,
) -> Result<Vec<FirmwareUpdate>, FirmwareRefused> {
    let refuse = |field: &str, problem: &str| FirmwareRefused {
        field: field.to_owned(),
        problem: problem.to_owned(),
    };
    let settings = arguments.get("settings").ok_or_else(|| refuse("settings", "is required"))?;
    let settings = settings.as_array().ok_or_else(|| refuse("settings", "must be a list"))?;
    if !(1..=MOST_UPDATES).contains(&settings.len()) {
        return Err(refuse("settings", "must have 1 to 32 elements"));
    }
    let (mut components, mut updates) = (BTreeSet::new(), Vec::new());
    for (number, setting) in settings.iter().enumerate() {
        let refuse =
            |name: &str, problem: &str| refuse(&format!("settings[{number}]{name}"), problem);
        let setting = setting.as_object().ok_or_else(|| refuse("", "must be an object"))?;
        let known = ["component", "url", "wait"];
        if let Some(name) = setting.keys().find(|name| !known.contains(&name.as_str())) {
            let name: String = name.chars().take(64).collect();
            return Err(refuse(&format!(".{name}"), "is not a field of an update"));
        }
        let component = setting.get("component").and_then(Value::as_str);
        let component = component.filter(|name| is_component(name));
        let wrong = "must be bios, bmc, or nic: with the serial number or the id of an adapter";
        let component = component.ok_or_else(|| refuse(".component", wrong))?;
        if !components.insert(component) {
            return Err(refuse(".component", "another element updates the same component"));
        }
        let url = setting.get("url").and_then(Value::as_str);
        let url = url.ok_or_else(|| refuse(".url", "must be text"))?;
        check_url(url).map_err(|problem| refuse(".url", problem))?;
        let wait = match setting.get("wait") {
            None => None,
            Some(wait) => Some(read_wait(wait).ok_or_else(|| {
                refuse(".wait", "must be a whole number of seconds from 1 to 7200")
            })?),
        };
        updates.push(FirmwareUpdate { component: component.to_owned(), url: url.to_owned(), wait });
    }
    Ok(updates)
}

fn is_component(name: &str) -> bool {
    let is_nic = name.strip_prefix("nic:").is_some_and(|adapter| !adapter.is_empty());
    let is_clean = name.len() <= 255 && !name.contains(|c: char| c.is_control());
    matches!(name, "bios" | "bmc") || (is_nic && is_clean)
}

fn read_wait(wait: &Value) -> Option<u32> {
    let seconds = u32::try_from(wait.as_u64()?).ok()?;
    (1..=LONGEST_WAIT).contains(&seconds).then_some(seconds)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{Interface, StepKind, StepName, StepRunner};

    #[track_caller]
    fn check(settings: Value, want: &str) {
        let arguments = Map::from_iter([("settings".to_owned(), settings)]);
        let refused = parse_firmware_updates(&arguments).map_err(|why| why.to_string());
        assert_eq!(refused, Err(want.to_owned()));
    }

    #[test]
    fn updates_are_parsed_in_their_order() {
        let settings = json!([
            {"component": "bmc", "url": "http://h/bmc.bin", "wait": 300},
            {"component": "nic:5CED8C", "url": "https://h/nic.bin"},
        ]);
        let arguments = Map::from_iter([("settings".to_owned(), settings)]);
        let parsed = parse_firmware_updates(&arguments).unwrap();
        assert_eq!((parsed[0].kind(), parsed[0].wait), (ComponentKind::Bmc, Some(300)));
        assert_eq!((parsed[1].kind(), parsed[1].wait), (ComponentKind::Nic, None));
        assert_eq!(parsed[1].url, "https://h/nic.bin");
    }

    #[test]
    fn wrong_settings_are_refused_by_name() {
        let url = "http://h/x";
        check(json!({}), "settings: must be a list");
        check(json!([]), "settings: must have 1 to 32 elements");
        check(json!([7]), "settings[0]: must be an object");
        let component = "settings[0].component: must be bios, bmc, or nic: with the serial number or the id of an adapter";
        check(json!([{"url": url}]), component);
        check(json!([{"component": "gpu", "url": url}]), component);
        for adapter in ["", "a\nb", &"a".repeat(252)] {
            check(json!([{"component": format!("nic:{adapter}"), "url": url}]), component);
        }
        check(json!([{"component": "bios"}]), "settings[0].url: must be text");
        check(
            json!([{"component": "bios", "url": "file:///x"}]),
            "settings[0].url: must be an http or https URL",
        );
        let more = json!([{"component": "bios", "url": url, "checksum": "x"}]);
        check(more, "settings[0].checksum: is not a field of an update");
        for wait in [json!(0), json!("5"), json!(7201), Value::Null] {
            let wait = json!([{"component": "bios", "url": url, "wait": wait}]);
            check(wait, "settings[0].wait: must be a whole number of seconds from 1 to 7200");
        }
        let twice = json!([{"component": "bmc", "url": url}, {"component": "bmc", "url": url}]);
        check(twice, "settings[1].component: another element updates the same component");
    }

    #[test]
    fn an_update_in_progress_is_one_of_the_step() {
        let settings = json!([{"component": "bmc", "url": "http://h/x"}]);
        let name = StepName { interface: Interface::Firmware, step: "update".to_owned() };
        let step = Step {
            kind: StepKind::Clean,
            runner: StepRunner::Conductor,
            name,
            args: Map::from_iter([("settings".to_owned(), settings)]),
            priority: 0,
            reboots: false,
            children: None,
        };
        let at =
            |number| UpdateInProgress { step: step.clone(), number, stage: UpdateStage::Ready };
        assert_eq!(at(0).wanted().unwrap().component, "bmc");
        assert_eq!(at(1).wanted().unwrap_err().to_string(), "settings[1]: has no such element");
    }
}
