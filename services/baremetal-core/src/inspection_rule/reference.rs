//! References in the texts of rules, such as `{inventory[cpu][count]}`: each is a plain look-up of a path in the data of the inspection.

use std::sync::LazyLock;

use serde_json::{Map, Value};

use super::attribute::RuleRecord;
use super::limits;
use super::problem::RuleProblem;
use super::text::{MASK, text_of};
use crate::{Node, is_secret};

/// The data that references name.
#[derive(Clone, Copy)]
pub(super) struct RuleData<'a> {
    /// The node, of which references read the documented fields.
    pub(super) node: &'a Node,
    pub(super) inventory: &'a Value,
    pub(super) plugin_data: &'a Map<String, Value>,
    /// The item of the loop.
    pub(super) item: Option<&'a Value>,
}

/// A text with its references replaced.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Expanded {
    Text(String),
    /// The data lacks the value of this reference. As in Ironic, the whole text stays as it is in the rule.
    Missing(String),
}

/// A part of a text with references.
#[derive(Debug, PartialEq, Eq)]
enum Part<'a> {
    Literal(&'a str),
    Reference(Reference<'a>),
}

/// A reference: the name of a source, and the keys of the path in the source.
#[derive(Debug, PartialEq, Eq)]
struct Reference<'a> {
    whole: &'a str,
    source: &'a str,
    keys: Vec<Key<'a>>,
}

#[derive(Debug, PartialEq, Eq)]
enum Key<'a> {
    /// `.name`, which only nodes have.
    Field(&'a str),
    /// `[name]` or `[0]`.
    Item(&'a str),
}

impl RuleData<'_> {
    /// Replaces the references in `text`. A text that is not written as Ironic's references are, such as JSON, stays as it is.
    pub(super) fn expand(&self, text: &str) -> Result<Expanded, RuleProblem> {
        let Some(parts) = parts(text) else { return Ok(Expanded::Text(text.to_owned())) };
        let mut out = String::new();
        for part in &parts {
            match part {
                Part::Literal(literal) => out.push_str(literal),
                Part::Reference(reference) => match self.value_of(reference)? {
                    Some(found) => out.push_str(&found),
                    None => return Ok(Expanded::Missing(reference.whole.to_owned())),
                },
            }
            if out.len() > limits::TEXT {
                return Err(too_long());
            }
        }
        Ok(Expanded::Text(out))
    }

    /// Replaces the references in all texts and keys of a value. `missing` returns the value of a text whose second argument, a reference,
    /// is not in the data. The length of the new texts is added to `size`.
    pub(super) fn expand_all(
        &self,
        value: &Value,
        missing: &impl Fn(&str, &str) -> Result<Value, RuleProblem>,
        size: &mut usize,
    ) -> Result<Value, RuleProblem> {
        match value {
            Value::String(text) => match self.expand(text)? {
                Expanded::Text(text) => {
                    *size += text.len();
                    Ok(text.into())
                }
                Expanded::Missing(reference) => missing(text, &reference),
            },
            Value::Array(values) => {
                let all = values.iter().map(|value| self.expand_all(value, missing, size));
                Ok(Value::Array(all.collect::<Result<_, _>>()?))
            }
            Value::Object(values) => {
                let mut all = Map::new();
                for (key, value) in values {
                    let key = match self.expand(key)? {
                        Expanded::Text(key) => key,
                        Expanded::Missing(_) => key.clone(),
                    };
                    all.insert(key, self.expand_all(value, missing, size)?);
                }
                Ok(Value::Object(all))
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => Ok(value.clone()),
        }
    }

    /// Returns the value of a reference as text; `None` if there is none.
    ///
    /// A loop's item may contain references itself. The values of other sources come from the machine and are never expanded again.
    fn value_of(&self, reference: &Reference<'_>) -> Result<Option<String>, RuleProblem> {
        let (field, whole);
        let found = match (reference.source, &*reference.keys) {
            ("node", [Key::Field(name) | Key::Item(name), keys @ ..]) => {
                field = self.node.read(name);
                field.as_ref().and_then(|value| look_up(value, keys))
            }
            ("inventory", keys) => look_up(self.inventory, keys),
            ("plugin_data", []) => {
                whole = Value::Object(self.plugin_data.clone());
                Some(&whole)
            }
            ("plugin_data", [Key::Item(name), keys @ ..]) => {
                self.plugin_data.get(*name).and_then(|value| below(name, value, keys))
            }
            ("item", keys) => {
                let found = self.item.and_then(|item| look_up(item, keys));
                if let Some(Value::String(text)) = found {
                    return match (RuleData { item: None, ..*self }).expand(text)? {
                        Expanded::Text(text) => Ok(Some(text)),
                        Expanded::Missing(_) => Ok(None),
                    };
                }
                found
            }
            _ => None,
        };
        found.map(|value| text_of(value).ok_or_else(too_long)).transpose()
    }
}

fn too_long() -> RuleProblem {
    RuleProblem::new(format!("a text with its references is longer than {} bytes", limits::TEXT))
}

/// Returns the value at a path, masked if a key of the path names a secret.
fn look_up<'a>(value: &'a Value, keys: &[Key<'_>]) -> Option<&'a Value> {
    let Some((key, keys)) = keys.split_first() else { return Some(value) };
    let Key::Item(key) = key else { return None };
    let found = match value {
        Value::Object(object) => object.get(*key)?,
        Value::Array(values) => values.get(key.parse::<usize>().ok()?)?,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return None,
    };
    below(key, found, keys)
}

/// Like [`look_up`], below the value of `key`.
fn below<'a>(key: &str, value: &'a Value, keys: &[Key<'_>]) -> Option<&'a Value> {
    static MASKED: LazyLock<Value> = LazyLock::new(|| MASK.into());
    match is_secret(key) && !value.is_null() {
        true => Some(&MASKED),
        false => look_up(value, keys),
    }
}

/// Splits a text into its literals and references; `None` if it is not written as such a text.
fn parts(text: &str) -> Option<Vec<Part<'_>>> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find(['{', '}']) {
        let (literal, tail) = rest.split_at(at);
        parts.push(Part::Literal(literal));
        rest = match &tail.get(..2) {
            // Two braces stand for one.
            Some("{{" | "}}") => {
                parts.push(Part::Literal(&tail[..1]));
                &tail[2..]
            }
            _ if tail.starts_with('{') => {
                let (inner, after) = tail[1..].split_once('}')?;
                parts.push(Part::Reference(reference(inner)?));
                after
            }
            _ => return None,
        };
    }
    parts.push(Part::Literal(rest));
    Some(parts)
}

/// Parses what stands between the braces.
fn reference(whole: &str) -> Option<Reference<'_>> {
    let end = whole.find(['.', '[']).unwrap_or(whole.len());
    let (source, mut rest) = whole.split_at(end);
    if !["node", "inventory", "plugin_data", "item"].contains(&source) {
        return None;
    }
    let mut keys = Vec::new();
    while !rest.is_empty() {
        if let Some(inner) = rest.strip_prefix('[') {
            let (key, after) = inner.split_once(']')?;
            keys.push(Key::Item(key));
            rest = after;
        } else {
            let inner = rest.strip_prefix('.')?;
            let end = inner.find(['.', '[']).unwrap_or(inner.len());
            keys.push(Key::Field(&inner[..end]));
            rest = &inner[end..];
        }
    }
    (keys.len() <= limits::PATH_PARTS).then_some(Reference { whole, source, keys })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{Driver, NodeUuid};

    fn node() -> Node {
        Node::new(NodeUuid::nil(), Driver::Redfish, jiff::Timestamp::UNIX_EPOCH)
    }

    #[track_caller]
    fn check(text: &str, want: &str) {
        let mut node = node();
        node.name = Some("r1u1".parse().unwrap());
        node.properties.insert("cpus".to_owned(), 4.into());
        let info = json!({"redfish_address": "https://bmc", "redfish_password": "hunter2"});
        node.driver_info = info.as_object().unwrap().clone();
        let inventory = json!({
            "cpu": {"count": 8, "flags": ["vmx", "sse"]},
            "evil": "{node.properties[cpus]}", "bmc": {"bmc_password": "hunter2", "deep": {"token": "t"}},
        });
        let item = json!({"a": "{inventory[cpu][count]} CPUs", "b": "{item[a]}", "n": 3});
        let plugin_data = json!({"root_disk": null, "a_token": "hunter2"});
        let data = RuleData {
            node: &node,
            inventory: &inventory,
            plugin_data: plugin_data.as_object().unwrap(),
            item: Some(&item),
        };
        let got = match data.expand(text) {
            Ok(Expanded::Text(text)) => text,
            Ok(Expanded::Missing(reference)) => format!("missing {reference}"),
            Err(problem) => problem.to_string(),
        };
        assert_eq!(got, want, "{text}");
        assert!(!got.contains("hunter2"));
    }

    #[test]
    fn references_are_look_ups_of_paths() {
        check("no reference", "no reference");
        check("{inventory[cpu][count]}", "8");
        check("a {inventory[cpu][flags][1]}, {node.name}/{node[name]}", "a sse, r1u1/r1u1");
        check("{inventory[cpu]}", "{'count': 8, 'flags': ['vmx', 'sse']}");
        check("{plugin_data[root_disk]}", "None");
        check("{node.properties[cpus]}", "4");
        check("{{inventory}} {{", "{inventory} {");
    }

    #[test]
    fn a_path_that_leads_nowhere_is_missing() {
        for path in [
            "inventory[gpu]",
            "inventory[cpu][flags][2]",
            "inventory[cpu][flags][-1]",
            "inventory[cpu][count][x]",
            "inventory.cpu",
            "node",
            "node.no_such_field",
            "node.properties.cpus",
            "plugin_data[x]",
            "item[z]",
        ] {
            check(&format!("a {{{path}}}"), &format!("missing {path}"));
        }
    }

    #[test]
    fn other_texts_with_braces_stay_as_they_are() {
        for text in ["{", "}", "a{1,3}b", r#"{"a": 1}"#, "{inventory[cpu}", "{inventory!r}", "{os}"]
        {
            check(text, text);
        }
        check("{inventory[cpu][count]:>4}", "{inventory[cpu][count]:>4}");
        check("}inventory[cpu][count]}", "}inventory[cpu][count]}");
    }

    #[test]
    fn secrets_are_masked() {
        check("{node.driver_info[redfish_password]}", "***");
        check(
            "{node.driver_info}",
            "{'redfish_address': 'https://bmc', 'redfish_password': '***'}",
        );
        check("{inventory[bmc][bmc_password]}", "***");
        check("{plugin_data[a_token]}", "***");
        check("{plugin_data}", "{'a_token': '***', 'root_disk': None}");
        check("{inventory[bmc]}", "{'bmc_password': '***', 'deep': {'token': '***'}}");
    }

    #[test]
    fn only_the_items_of_a_loop_are_expanded_again() {
        check("{inventory[evil]}", "{node.properties[cpus]}");
        check("{item[a]}!", "8 CPUs!");
        check("{item[n]}", "3");
        check("{item[b]}", "missing item[b]");
    }

    #[test]
    fn a_text_has_a_maximum_length() {
        let long = "x".repeat(limits::TEXT);
        let inventory = json!({ "long": long });
        let data =
            RuleData { node: &node(), inventory: &inventory, plugin_data: &Map::new(), item: None };
        assert!(data.expand("{inventory[long]}").is_ok());
        assert!(data.expand("{inventory[long]}!").is_err());
        assert!(data.expand("{inventory}").is_err());
    }
}
