//! Actions of inspection rules: changes of the inspected node, of its ports and of the plugin data.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::arguments::{Signature, plugin_signature, signature};
use super::attribute::RuleRecord;
use super::item_loop::{check_loop, is_no_loop, loop_items};
use super::problem::RuleProblem;
use super::reference::RuleData;
use super::rule_log::{LogLevel, RuleLog};
use super::text::text_of;
use super::{limits, path};
use crate::{Node, Port, Trait};

/// An action of a rule, in the form in which the API shows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RuleAction {
    pub op: ActionOperator,
    /// The arguments: an object, or a list of values.
    pub args: Value,
    /// The items for each of which the action is performed.
    #[serde(rename = "loop", default, skip_serializing_if = "is_no_loop")]
    pub items: Value,
}

/// Declares the actions with their names in the Bare Metal API and their arguments.
macro_rules! actions {
    ($($(#[$doc:meta])* $variant:ident = $name:literal $signature:expr;)*) => {
        /// The kind of an action.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub enum ActionOperator {
            $($(#[$doc])* $variant,)*
        }

        impl ActionOperator {
            /// All actions.
            pub const ALL: &'static [ActionOperator] = &[$(ActionOperator::$variant,)*];

            /// Returns the name of the action in the Bare Metal API.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(ActionOperator::$variant => $name,)*
                }
            }

            fn signature(self) -> Signature {
                match self {
                    $(ActionOperator::$variant => $signature,)*
                }
            }
        }
    };
}

actions! {
    /// Fails the inspection.
    Fail = "fail" signature(&["msg"], &[]);
    /// Writes a line to the log of the service.
    Log = "log" signature(&["msg"], &["level"]);
    SetAttribute = "set-attribute" signature(&["path", "value"], &[]);
    ExtendAttribute = "extend-attribute" signature(&["path", "value"], &["unique"]);
    DeleteAttribute = "del-attribute" signature(&["path"], &[]);
    SetCapability = "set-capability" signature(&["name", "value"], &[]);
    UnsetCapability = "unset-capability" signature(&["name"], &[]);
    AddTrait = "add-trait" signature(&["name"], &[]);
    RemoveTrait = "remove-trait" signature(&["name"], &[]);
    SetPluginData = "set-plugin-data" plugin_signature(&["path", "value"], false);
    ExtendPluginData = "extend-plugin-data" plugin_signature(&["path", "value"], true);
    UnsetPluginData = "unset-plugin-data" plugin_signature(&["path"], false);
    SetPortAttribute = "set-port-attribute" signature(&["port_id", "path", "value"], &[]);
    ExtendPortAttribute = "extend-port-attribute" signature(&["port_id", "path", "value"], &["unique"]);
    DeletePortAttribute = "del-port-attribute" signature(&["port_id", "path"], &[]);
}

impl TryFrom<String> for ActionOperator {
    type Error = RuleProblem;

    fn try_from(raw: String) -> Result<Self, RuleProblem> {
        let found = ActionOperator::ALL.iter().find(|it| it.as_str() == raw);
        found.copied().ok_or_else(|| {
            let raw: String = raw.chars().take(64).collect();
            let all: Vec<&str> = ActionOperator::ALL.iter().map(|it| it.as_str()).collect();
            let all = all.join(", ");
            RuleProblem::new(format!("the action {raw:?} is not supported; the actions are {all}"))
        })
    }
}

impl From<ActionOperator> for String {
    fn from(op: ActionOperator) -> String {
        op.as_str().to_owned()
    }
}

/// The records that actions change.
pub(super) struct RuleTarget {
    pub(super) node: Node,
    pub(super) ports: Vec<Port>,
    pub(super) plugin_data: Map<String, Value>,
    pub(super) logs: Vec<RuleLog>,
}

/// Why an action ends the inspection.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// The action `fail`, with its message.
    Asked(String),
    Problem(RuleProblem),
}

impl From<RuleProblem> for Stop {
    fn from(problem: RuleProblem) -> Self {
        Stop::Problem(problem)
    }
}

type Arguments = BTreeMap<&'static str, Value>;

impl RuleAction {
    /// Checks the action when a rule is created.
    pub fn check_form(&self) -> Result<(), RuleProblem> {
        check_loop(&self.items)?;
        self.op.signature().named(&self.args).map(drop)
    }

    pub(super) fn is_on_plugin_data(&self) -> bool {
        self.op.is_on_plugin_data()
    }

    /// Performs the action. `count` is called each time, with the size of the arguments.
    pub(super) fn perform(
        &self,
        target: &mut RuleTarget,
        inventory: &Value,
        count: &mut impl FnMut(usize) -> Result<(), RuleProblem>,
    ) -> Result<(), Stop> {
        if is_no_loop(&self.items) {
            let args = self.arguments(target, inventory, None, count)?;
            return self.op.perform(target, &args);
        }
        for item in loop_items(&self.items) {
            let args = self.arguments(target, inventory, Some(item), count)?;
            self.op.perform(target, &args)?;
        }
        Ok(())
    }

    /// Returns the arguments with their references replaced: the value or message, and in a loop all.
    fn arguments(
        &self,
        target: &RuleTarget,
        inventory: &Value,
        item: Option<&Value>,
        count: &mut impl FnMut(usize) -> Result<(), RuleProblem>,
    ) -> Result<Arguments, RuleProblem> {
        let (node, plugin_data) = (&target.node, &target.plugin_data);
        let data = RuleData { node, inventory, plugin_data, item };
        let logs = self.op == ActionOperator::Log;
        // Unlike Ironic, an action does not store a reference in place of its missing value.
        let missing = |text: &str, reference: &str| match logs {
            true => Ok(text.into()),
            false => Err(RuleProblem::new(format!("{{{reference}}} is not in the data"))),
        };
        let (mut args, mut size) = (Arguments::new(), 0);
        for (name, value) in self.op.signature().named(&self.args)? {
            let is_expanded = item.is_some() || name == "value" || (logs && name == "msg");
            let value = match is_expanded {
                true => data.expand_all(value, &missing, &mut size)?,
                false => value.clone(),
            };
            args.insert(name, value);
        }
        count(size)?;
        Ok(args)
    }
}

impl ActionOperator {
    const fn is_on_plugin_data(self) -> bool {
        use ActionOperator::{ExtendPluginData, SetPluginData, UnsetPluginData};
        matches!(self, SetPluginData | ExtendPluginData | UnsetPluginData)
    }

    fn perform(self, target: &mut RuleTarget, args: &Arguments) -> Result<(), Stop> {
        let done = match self {
            ActionOperator::Fail => return Err(Stop::Asked(message(args))),
            ActionOperator::Log => log(target, args),
            ActionOperator::SetAttribute => set(&mut target.node, args),
            ActionOperator::ExtendAttribute => extend(&mut target.node, args),
            ActionOperator::DeleteAttribute => delete(&mut target.node, args),
            ActionOperator::SetCapability => set_capability(&mut target.node, args),
            ActionOperator::UnsetCapability => unset_capability(&mut target.node, args),
            ActionOperator::AddTrait => add_trait(&mut target.node, args),
            ActionOperator::RemoveTrait => {
                target.node.traits.remove(text(args, "name")?);
                Ok(())
            }
            ActionOperator::SetPluginData => {
                let path = path::plugin_path(text(args, "path")?)?;
                path::set(&mut target.plugin_data, &path, value(args))
            }
            ActionOperator::ExtendPluginData => {
                let path = path::plugin_path(text(args, "path")?)?;
                path::extend(&mut target.plugin_data, &path, value(args), is_unique(args))
            }
            ActionOperator::UnsetPluginData => {
                let path = path::plugin_path(text(args, "path")?)?;
                unset(&mut target.plugin_data, &path);
                Ok(())
            }
            ActionOperator::SetPortAttribute => set(port(target, args)?, args),
            ActionOperator::ExtendPortAttribute => extend(port(target, args)?, args),
            ActionOperator::DeletePortAttribute => delete(port(target, args)?, args),
        };
        done.map_err(Stop::Problem)
    }
}

fn set(it: &mut impl RuleRecord, args: &Arguments) -> Result<(), RuleProblem> {
    it.change(text(args, "path")?, |document, path| path::set(document, path, value(args)))
}

fn extend(it: &mut impl RuleRecord, args: &Arguments) -> Result<(), RuleProblem> {
    it.change(text(args, "path")?, |document, path| {
        path::extend(document, path, value(args), is_unique(args))
    })
}

fn delete(it: &mut impl RuleRecord, args: &Arguments) -> Result<(), RuleProblem> {
    it.change(text(args, "path")?, |document, path| match path::remove(document, path) {
        true => Ok(()),
        false => Err(RuleProblem::new(format!("{}: is not set", path.join(".")))),
    })
}

/// Removes plugin data, and its parent if the parent becomes empty. Data that does not exist is no error, as in Ironic.
fn unset(plugin_data: &mut Map<String, Value>, path: &[&str]) {
    let Some((_, parent)) = path.split_last() else { return };
    let is_removed = path::remove(plugin_data, path);
    let mut at = Some(&*plugin_data);
    for name in parent {
        at = at.and_then(|it| it.get(*name)).and_then(Value::as_object);
    }
    if is_removed && !parent.is_empty() && at.is_some_and(Map::is_empty) {
        path::remove(plugin_data, parent);
    }
}

/// The port whose UUID or MAC address the argument is.
fn port<'a>(target: &'a mut RuleTarget, args: &Arguments) -> Result<&'a mut Port, RuleProblem> {
    let wanted = text(args, "port_id")?;
    let is_wanted = |port: &&mut Port| {
        port.id.to_string() == wanted || port.address.to_string().eq_ignore_ascii_case(wanted)
    };
    let found = target.ports.iter_mut().find(is_wanted);
    found.ok_or_else(|| {
        let wanted: String = wanted.chars().take(64).collect();
        RuleProblem::new(format!("port_id: the node has no port {wanted:?}"))
    })
}

/// Sets a capability in `properties.capabilities`, which schedulers read: `name:value,name:value`.
fn set_capability(node: &mut Node, args: &Arguments) -> Result<(), RuleProblem> {
    let name = capability_name(args)?;
    let value = text_of(&value(args)).filter(|it| !it.contains(',') && !it.contains('\0'));
    let value = value.ok_or_else(|| {
        RuleProblem::new(format!("value: the capability {name} cannot have a comma in its value"))
    })?;
    let others = other_capabilities(node, name)?;
    let all: Vec<String> = others.into_iter().chain([format!("{name}:{value}")]).collect();
    write_capabilities(node, &all)
}

fn unset_capability(node: &mut Node, args: &Arguments) -> Result<(), RuleProblem> {
    let others = other_capabilities(node, capability_name(args)?)?;
    write_capabilities(node, &others)
}

fn capability_name(args: &Arguments) -> Result<&str, RuleProblem> {
    let name = text(args, "name")?;
    match name.is_empty() || name.contains([',', ':', '\0']) {
        false => Ok(name),
        true => Err(RuleProblem::new("name: must be the name of a capability, without , and :")),
    }
}

/// The capabilities of the node without the one of this name.
fn other_capabilities(node: &Node, name: &str) -> Result<Vec<String>, RuleProblem> {
    let present = match node.properties.get("capabilities") {
        None | Some(Value::Null) => "",
        Some(Value::String(present)) => present,
        Some(Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
            return Err(RuleProblem::new("properties.capabilities: is no text"));
        }
    };
    let is_other =
        |word: &&str| !word.is_empty() && word.split(':').next().map(str::trim) != Some(name);
    Ok(present.split(',').filter(is_other).map(str::to_owned).collect())
}

fn write_capabilities(node: &mut Node, all: &[String]) -> Result<(), RuleProblem> {
    let all = Value::from(all.join(","));
    node.change("properties/capabilities", |document, path| path::set(document, path, all))
}

fn add_trait(node: &mut Node, args: &Arguments) -> Result<(), RuleProblem> {
    let name = Trait::try_from(text(args, "name")?.to_owned());
    let name = name.map_err(|why| RuleProblem::new(format!("name: {why}")))?;
    node.traits.insert(name.into());
    match node.traits.len() > limits::TRAITS {
        false => Ok(()),
        true => {
            let most = limits::TRAITS;
            Err(RuleProblem::new(format!("traits: a node has at most {most} traits")))
        }
    }
}

fn log(target: &mut RuleTarget, args: &Arguments) -> Result<(), RuleProblem> {
    let level = match args.get("level") {
        None => LogLevel::Info,
        Some(Value::String(level)) => match &*level.to_lowercase() {
            "debug" => LogLevel::Debug,
            "info" => LogLevel::Info,
            "warning" => LogLevel::Warning,
            "error" | "critical" => LogLevel::Error,
            _ => return Err(no_level()),
        },
        Some(_) => return Err(no_level()),
    };
    target.logs.push(RuleLog { level, text: message(args) });
    Ok(())
}

fn no_level() -> RuleProblem {
    RuleProblem::new("level: must be debug, info, warning, error or critical")
}

/// The message of the action, without control characters.
fn message(args: &Arguments) -> String {
    let message = args.get("msg").and_then(text_of).unwrap_or_default();
    message.chars().filter(|c| !c.is_control()).take(1000).collect()
}

fn text<'a>(args: &'a Arguments, name: &str) -> Result<&'a str, RuleProblem> {
    let text = args.get(name).and_then(Value::as_str);
    text.ok_or_else(|| RuleProblem::new(format!("{name}: must be text")))
}

fn value(args: &Arguments) -> Value {
    args.get("value").cloned().unwrap_or_default()
}

fn is_unique(args: &Arguments) -> bool {
    match args.get("unique") {
        Some(Value::Bool(unique)) => *unique,
        Some(Value::String(unique)) => unique.eq_ignore_ascii_case("true"),
        Some(Value::Null | Value::Number(_) | Value::Array(_) | Value::Object(_)) | None => false,
    }
}

#[cfg(test)]
mod tests;
