//! The arguments of conditions and actions: an object, or a list in the order of the names, which Ironic deprecates.

use std::collections::BTreeMap;

use serde_json::Value;

use super::problem::RuleProblem;

/// The names of the arguments that an operator takes.
pub(super) struct Signature {
    pub(super) required: &'static [&'static str],
    pub(super) optional: &'static [&'static str],
}

/// The argument that Ironic adds to the actions on plugin data in its answers. A rule that was read from Ironic may contain it.
const PLUGIN_DATA: &str = "plugin_data";

impl Signature {
    /// Returns the arguments by their names.
    pub(super) fn named<'a>(
        &self,
        args: &'a Value,
    ) -> Result<BTreeMap<&'static str, &'a Value>, RuleProblem> {
        let names = self.required.iter().chain(self.optional).copied();
        let named: BTreeMap<&'static str, &Value> = match args {
            Value::Array(values) => {
                if let Some(extra) = values.get(names.clone().count()) {
                    let extra: String = extra.to_string().chars().take(64).collect();
                    let problem = format!("args: there is no argument for the value {extra}");
                    return Err(RuleProblem::new(problem));
                }
                names.zip(values).collect()
            }
            Value::Object(values) => {
                let is_known = |name: &str| names.clone().any(|known| known == name);
                let unknown = values.keys().find(|name| !is_known(name));
                if let Some(unknown) = unknown {
                    let unknown: String = unknown.chars().take(64).collect();
                    return Err(RuleProblem::new(format!("args: unknown argument {unknown:?}")));
                }
                names.filter_map(|name| Some((name, values.get(name)?))).collect()
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                return Err(RuleProblem::new("args: must be an object or a list"));
            }
        };
        match self.required.iter().find(|name| !named.contains_key(**name)) {
            Some(missing) => Err(RuleProblem::new(format!("args.{missing}: is required"))),
            None => Ok(named),
        }
    }
}

/// The signature of an operator.
pub(super) const fn signature(
    required: &'static [&'static str],
    optional: &'static [&'static str],
) -> Signature {
    Signature { required, optional }
}

/// The signature of an action that changes plugin data.
pub(super) const fn plugin_signature(
    required: &'static [&'static str],
    is_extension: bool,
) -> Signature {
    let optional: &[&str] = if is_extension { &["unique", PLUGIN_DATA] } else { &[PLUGIN_DATA] };
    Signature { required, optional }
}
