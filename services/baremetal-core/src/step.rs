//! Steps: the parts of cleaning, deployment and service, and the checks of their arguments.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use hardware::PowerChange;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::bmc_clock::{ClockRefused, SET_BMC_CLOCK, parse_clock_setting};
use crate::{Interface, NodeUuid};

/// The step that erases the disks completely.
const ERASE_DEVICES: &str = "erase_devices";

/// The deploy steps that every deployment has, by Ironic's names. A request cannot change them.
const CORE_STEPS: [&str; 6] = [
    "deploy",
    "write_image",
    "prepare_instance_boot",
    "tear_down_agent",
    "switch_to_tenant_network",
    "boot_instance",
];

/// The argument of the step `wait`.
const WAIT_TIME: &str = "seconds";

/// The longest time that a step `wait` may name, in seconds. The end of a lease waits for it.
const MAX_WAIT: u32 = 3600;

words::words! {
    /// The work that a step belongs to.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum StepKind {
        Clean = "clean",
        Deploy = "deploy",
        Service = "service",
    }
}

/// The program that runs a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepRunner {
    #[default]
    Agent,
    Conductor,
}

/// The name of a step: an interface, and the name within the interface.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct StepName {
    pub interface: Interface,
    pub step: String,
}

/// The child nodes on which a step runs, instead of the node itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChildNodes {
    All,
    Named(Vec<NodeUuid>),
}

/// A step of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    pub kind: StepKind,
    #[serde(default, skip_serializing_if = "StepRunner::is_agent")]
    pub runner: StepRunner,
    #[serde(flatten)]
    pub name: StepName,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub args: Map<String, Value>,
    /// The place among automated steps, the highest first; 0 for a requested step that automated cleaning leaves out.
    pub priority: u32,
    /// Whether the machine restarts into the ramdisk after the step.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reboots: bool,
    /// The child nodes on which the step runs; `None` for a step of the node itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub children: Option<ChildNodes>,
}

/// A step that the agent or the conductor offers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OfferedStep {
    pub runner: StepRunner,
    pub name: StepName,
    /// Automated work runs steps with a priority above 0, the highest first.
    pub priority: u32,
    pub args: BTreeMap<String, StepArgument>,
    pub reboots: bool,
    /// Whether the step needs the ramdisk on the machine.
    pub needs_ramdisk: bool,
}

/// The description of an argument of a step.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepArgument {
    pub description: String,
    pub is_required: bool,
}

/// A deploy step that a client or a deploy template requests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeployStep {
    #[serde(flatten)]
    pub step: RequestedStep,
    pub priority: u32,
}

/// A step that a client requests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestedStep {
    #[serde(flatten)]
    pub name: StepName,
    #[serde(default)]
    pub args: Map<String, Value>,
    /// The child nodes on which the step runs; `None` for a step of the node itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub children: Option<ChildNodes>,
}

/// A text does not name a step.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is no step: a step has an interface and a name, such as \"deploy.erase_devices\""
)]
pub struct InvalidStepName {
    pub text: String,
}

/// Why the steps of a work cannot run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StepRefused {
    #[error("the machine does not offer the step {name}")]
    Unknown { name: StepName },
    #[error("the step {name} is a part of every deployment and cannot be requested")]
    Core { name: StepName },
    #[error("the step {name} needs the ramdisk, and the request disables it")]
    NeedsRamdisk { name: StepName },
    #[error(
        "the step {name} cannot run on child nodes, only the steps power_on, power_off and reboot can"
    )]
    NotOnChildren { name: StepName },
    #[error("the step {name} has no argument {argument:?}")]
    UnknownArgument { name: StepName, argument: String },
    #[error("the step {name} needs a whole number up to {MAX_WAIT} as its argument {argument:?}")]
    BadWait { name: StepName, argument: &'static str },
    #[error("the step {name} has a wrong argument {why}")]
    BadClock { name: StepName, why: ClockRefused },
    #[error("the step {name} needs the argument {argument:?}: {description}")]
    MissingArgument { name: StepName, argument: String, description: String },
    #[error("node \"{node}\" has disable_power_off set and cannot be powered off")]
    PowerOffDisabled { node: String },
}

impl ChildNodes {
    /// Returns whether the step runs on this child node.
    pub(crate) fn contain(&self, child: NodeUuid) -> bool {
        match self {
            ChildNodes::All => true,
            ChildNodes::Named(named) => named.contains(&child),
        }
    }
}

impl RequestedStep {
    /// Checks a request for a step on child nodes. Other steps are checked once the node's own steps are known.
    pub fn check_on_children(&self) -> Result<(), StepRefused> {
        match self.children {
            Some(_) => step_on_children(&self.name)?.check(&self.args),
            None => Ok(()),
        }
    }
}

impl Step {
    /// Returns the time of a step `wait`, if the step names one.
    pub(crate) fn wait_seconds(&self) -> Option<u32> {
        self.args.get(WAIT_TIME).and_then(seconds)
    }
}

impl StepRunner {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
    fn is_agent(&self) -> bool {
        *self == StepRunner::Agent
    }
}

impl StepName {
    /// The step that erases the disks completely.
    pub fn erase_devices() -> Self {
        StepName { interface: Interface::Deploy, step: ERASE_DEVICES.to_owned() }
    }

    /// Returns the change of power that the step makes, if it is a general step that changes the power.
    pub(crate) fn power_change(&self) -> Option<PowerChange> {
        match self.step.as_str() {
            "power_on" => Some(PowerChange::On),
            "power_off" => Some(PowerChange::ForceOff),
            "reboot" => Some(PowerChange::ForceRestart),
            _ => None,
        }
    }

    /// Returns whether every deployment has the step.
    pub(crate) fn is_core(&self) -> bool {
        self.interface == Interface::Deploy && CORE_STEPS.contains(&&*self.step)
    }
}

impl FromStr for StepName {
    type Err = InvalidStepName;

    /// Reads a name such as `deploy.erase_devices`.
    fn from_str(text: &str) -> Result<Self, InvalidStepName> {
        let invalid = || InvalidStepName { text: text.to_owned() };
        let (interface, step) = text.split_once('.').ok_or_else(invalid)?;
        let known = Interface::ALL.into_iter().find(|known| known.as_str() == interface);
        let interface = known.filter(|_| !step.is_empty()).ok_or_else(invalid)?;
        Ok(StepName { interface, step: step.to_owned() })
    }
}

impl fmt::Display for StepName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.interface.as_str(), self.step)
    }
}

impl OfferedStep {
    pub(crate) fn of_conductor(interface: Interface, step: &str, priority: u32) -> Self {
        OfferedStep {
            runner: StepRunner::Conductor,
            name: StepName { interface, step: step.to_owned() },
            priority,
            args: BTreeMap::new(),
            reboots: false,
            needs_ramdisk: true,
        }
    }

    pub(crate) fn with_argument(self, name: &str, is_required: bool, description: &str) -> Self {
        let argument = StepArgument { description: description.to_owned(), is_required };
        let mut args = self.args;
        args.insert(name.to_owned(), argument);
        OfferedStep { args, ..self }
    }

    pub(crate) fn planned(&self, kind: StepKind, args: Map<String, Value>, priority: u32) -> Step {
        let (runner, name) = (self.runner, self.name.clone());
        Step { kind, runner, name, args, priority, reboots: self.reboots, children: None }
    }

    /// Returns the step with the arguments and on the nodes of a request.
    pub(crate) fn requested(&self, kind: StepKind, wanted: &RequestedStep, priority: u32) -> Step {
        let step = self.planned(kind, wanted.args.clone(), priority);
        Step { children: wanted.children.clone(), ..step }
    }

    /// Checks the arguments of a request for this step.
    pub(crate) fn check(&self, args: &Map<String, Value>) -> Result<(), StepRefused> {
        let name = || self.name.clone();
        if let Some(argument) = args.keys().find(|key| !self.args.contains_key(*key)) {
            return Err(StepRefused::UnknownArgument { name: name(), argument: argument.clone() });
        }
        if self.runner == StepRunner::Conductor
            && args.get(WAIT_TIME).is_some_and(|it| seconds(it).is_none())
        {
            return Err(StepRefused::BadWait { name: name(), argument: WAIT_TIME });
        }
        if self.runner == StepRunner::Conductor && self.name.step == SET_BMC_CLOCK {
            let checked = parse_clock_setting(args);
            checked.map_err(|why| StepRefused::BadClock { name: name(), why })?;
        }
        let mut missing = self
            .args
            .iter()
            .filter(|(argument, described)| described.is_required && !args.contains_key(*argument));
        match missing.next() {
            Some((argument, described)) => Err(StepRefused::MissingArgument {
                name: name(),
                argument: argument.clone(),
                description: described.description.clone(),
            }),
            None => Ok(()),
        }
    }
}

/// Returns the general step called `name`, which each interface has.
pub(crate) fn general_step(name: &StepName) -> Option<OfferedStep> {
    let step = OfferedStep {
        needs_ramdisk: false,
        ..OfferedStep::of_conductor(name.interface, &name.step, 0)
    };
    match name.step.as_str() {
        "hold" | "power_on" | "power_off" | "reboot" => Some(step),
        "wait" => Some(step.with_argument(WAIT_TIME, false, "how long to wait")),
        _ => None,
    }
}

/// Returns the general step called `name`, if it can run on child nodes. Ironic fails a step on child nodes that does not end at once, and no
/// child node runs an agent for its parent.
pub(crate) fn step_on_children(name: &StepName) -> Result<OfferedStep, StepRefused> {
    let step = general_step(name).filter(|_| name.power_change().is_some());
    step.ok_or_else(|| StepRefused::NotOnChildren { name: name.clone() })
}

/// The time of a step `wait`; text counts as a number, as in Ironic.
fn seconds(value: &Value) -> Option<u32> {
    let number = match value.as_str() {
        Some(text) => text.parse().ok(),
        None => value.as_u64().and_then(|number| number.try_into().ok()),
    };
    number.filter(|seconds| *seconds <= MAX_WAIT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bmc_clock::TIME;

    #[test]
    fn each_interface_has_the_general_steps() {
        for name in ["hold", "wait", "power_on", "power_off", "reboot"] {
            let name = StepName { interface: Interface::Deploy, step: name.to_owned() };
            assert!(!general_step(&name).unwrap().needs_ramdisk);
        }
        let wait = StepName { interface: Interface::Deploy, step: "wait".to_owned() };
        let wait = general_step(&wait).unwrap();
        let check = |seconds: Value| wait.check(&Map::from_iter([(WAIT_TIME.to_owned(), seconds)]));
        for seconds in [0.into(), "3600".into()] {
            assert_eq!(check(seconds), Ok(()));
        }
        let words =
            "the step deploy.wait needs a whole number up to 3600 as its argument \"seconds\"";
        for seconds in [3601.into(), "x".into(), (-1).into(), Value::Null] {
            assert_eq!(check(seconds).unwrap_err().to_string(), words);
        }
        let unknown = StepName { interface: Interface::Deploy, step: "sleep".to_owned() };
        assert_eq!(general_step(&unknown), None);
    }

    #[test]
    fn only_steps_that_change_the_power_run_on_child_nodes() {
        let check = |name: &str, args: Value, children| {
            let Value::Object(args) = args else { panic!("{args}") };
            let name = StepName { interface: Interface::Power, step: name.to_owned() };
            let step = RequestedStep { name, args, children };
            step.check_on_children().map_err(|why| why.to_string())
        };
        let none = || Value::Object(Map::new());
        for children in [ChildNodes::All, ChildNodes::Named(vec![NodeUuid::nil()])] {
            for name in ["power_on", "power_off", "reboot"] {
                assert_eq!(check(name, none(), Some(children.clone())), Ok(()));
            }
            for name in ["hold", "wait", "erase_devices"] {
                let want = format!(
                    "the step power.{name} cannot run on child nodes, only the steps power_on, power_off and reboot can"
                );
                assert_eq!(check(name, none(), Some(children.clone())), Err(want));
                assert_eq!(check(name, none(), None), Ok(()), "a step of the node itself");
            }
            let unknown = check("reboot", serde_json::json!({"x": 1}), Some(children));
            assert_eq!(unknown, Err("the step power.reboot has no argument \"x\"".to_owned()));
        }
    }

    #[test]
    fn the_name_of_a_step_is_an_interface_and_a_word() {
        assert_eq!("deploy.erase_devices".parse(), Ok(StepName::erase_devices()));
        assert_eq!("deploy.erase_devices", StepName::erase_devices().to_string());
        for text in ["", "deploy", "deploy.", "erase_devices", "disk.erase_devices"] {
            assert_eq!(text.parse::<StepName>(), Err(InvalidStepName { text: text.to_owned() }));
        }
    }

    #[test]
    fn a_record_names_the_runner_of_a_step_only_if_it_is_not_the_agent() {
        for (runner, written) in
            [(StepRunner::Agent, None), (StepRunner::Conductor, Some("conductor"))]
        {
            let offered = OfferedStep::of_conductor(Interface::Bios, "apply", 0);
            let offered = OfferedStep { runner, ..offered };
            let step = offered.planned(StepKind::Clean, Map::new(), 0);
            let record = serde_json::to_value(&step).unwrap();
            assert_eq!(record.get("runner").and_then(Value::as_str), written);
            assert_eq!(serde_json::from_value::<Step>(record).unwrap(), step);
        }
    }

    #[test]
    fn a_step_of_the_agent_may_read_its_arguments_differently() {
        let check = |runner, name: &str, argument: &str| {
            let step = OfferedStep::of_conductor(Interface::Management, name, 0);
            let step = OfferedStep { runner, ..step.with_argument(argument, true, "") };
            step.check(&Map::from_iter([(argument.to_owned(), "now".into())])).is_ok()
        };
        for (name, argument) in [(SET_BMC_CLOCK, TIME), ("pause", WAIT_TIME)] {
            assert!(check(StepRunner::Agent, name, argument), "{name}");
            assert!(!check(StepRunner::Conductor, name, argument), "{name}");
        }
        assert!(check(StepRunner::Conductor, "other", TIME));
    }
}
