//! The secrets that an API shows as a mask, from a file.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context;
use serde_json::Value;

use crate::ironic::{Object, word};

/// The text by which Ironic and baremetald replace a secret in their answers.
const MASK: &str = "******";

/// The secrets of nodes, volume targets, deploy templates and runbooks, by the id or name of the resource and the key of the secret.
#[derive(Debug, Default)]
pub(crate) struct Secrets(BTreeMap<String, BTreeMap<String, String>>);

impl Secrets {
    /// Reads a YAML or JSON file; without a file there are no secrets.
    pub(crate) fn read(file: Option<&Path>) -> anyhow::Result<Secrets> {
        let Some(file) = file else { return Ok(Secrets::default()) };
        let text = std::fs::read_to_string(file);
        let text = text.with_context(|| format!("cannot read {}", file.display()))?;
        Secrets::parse(&text).with_context(|| {
            format!(
                "{} must have a line `KEY: SECRET` for each secret below `NODE:`",
                file.display()
            )
        })
    }

    fn parse(text: &str) -> anyhow::Result<Secrets> {
        // The parser's own error could quote a secret.
        serde_saphyr::from_str(text).map(Secrets).map_err(|error| match error.location() {
            Some(place) => anyhow::anyhow!("line {} cannot be parsed", place.line()),
            None => anyhow::anyhow!("the file cannot be parsed"),
        })
    }

    /// Replaces the masks in `field` of `resource` by the secrets of the resource. Returns the paths of the masks that are left.
    pub(crate) fn unmask(&self, resource: &mut Object, field: &str) -> Vec<String> {
        let names = [word(resource, "uuid"), word(resource, "name")];
        let known = names.into_iter().find_map(|name| self.0.get(name)).cloned();
        let (known, mut missing) = (known.unwrap_or_default(), Vec::new());
        if let Some(value) = resource.get_mut(field) {
            unmask(value, field, field, &known, &mut missing);
        }
        missing
    }
}

fn unmask(
    value: &mut Value,
    key: &str,
    path: &str,
    known: &BTreeMap<String, String>,
    missing: &mut Vec<String>,
) {
    match value {
        Value::String(text) if text == MASK => match known.get(key) {
            Some(secret) => text.clone_from(secret),
            None => missing.push(path.to_owned()),
        },
        Value::Object(object) => {
            for (key, value) in object {
                unmask(value, key, &format!("{path}.{key}"), known, missing);
            }
        }
        Value::Array(list) => {
            for (at, value) in list.iter_mut().enumerate() {
                unmask(value, key, &format!("{path}[{at}]"), known, missing);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The reasons for the masks at `paths`, for which the file has no secret.
pub(crate) fn masked(paths: &[String]) -> Vec<String> {
    let reason =
        |path: &String| format!("{path}: this secret is masked: add it to the file of --secrets");
    paths.iter().map(reason).collect()
}

/// Removes the masked values from an object, and returns their paths.
pub(crate) fn remove_masked(object: &mut Object, path: &str) -> Vec<String> {
    let mut removed = Vec::new();
    object.retain(|key, value| {
        let path = format!("{path}.{key}");
        match value {
            Value::String(text) if text == MASK => {
                removed.push(path);
                false
            }
            Value::Object(inner) => {
                removed.extend(remove_masked(inner, &path));
                true
            }
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_) => true,
        }
    });
    removed
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(value: Value) -> Object {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn a_secret_is_found_by_the_id_or_the_name_of_its_resource() {
        let secrets = Secrets::parse("n1:\n  redfish_password: '12345'\nu2: {ipmi_password: b}\n");
        let secrets = secrets.unwrap();
        let node = |uuid: &str, name: &str, key: &str| {
            object(json!({"uuid": uuid, "name": name, "driver_info": {key: MASK, "other": 1}}))
        };
        let mut named = node("u1", "n1", "redfish_password");
        assert!(secrets.unmask(&mut named, "driver_info").is_empty());
        assert_eq!(named["driver_info"], json!({"redfish_password": "12345", "other": 1}));
        let mut by_id = node("u2", "n2", "ipmi_password");
        assert!(secrets.unmask(&mut by_id, "driver_info").is_empty());
        let mut unknown = node("u3", "n3", "ipmi_password");
        assert_eq!(secrets.unmask(&mut unknown, "driver_info"), ["driver_info.ipmi_password"]);
        assert_eq!(unknown["driver_info"]["ipmi_password"], MASK);
    }

    #[test]
    fn a_mask_is_found_at_any_depth() {
        let mut it = object(json!({"uuid": "u", "steps": [{"args": {"password": MASK}}]}));
        let missing = Secrets::default().unmask(&mut it, "steps");
        assert_eq!(missing, ["steps[0].args.password"]);
    }

    #[test]
    fn an_error_shows_no_secret() {
        let why = Secrets::parse("n1: {redfish_password: [hunter2").unwrap_err();
        assert!(!format!("{why:#}").contains("hunter2"), "{why:#}");
    }

    #[test]
    fn masked_values_are_removed() {
        let mut info = object(json!({"configdrive": MASK, "a": {"token": MASK, "b": 1}, "c": "d"}));
        let removed = remove_masked(&mut info, "instance_info");
        assert_eq!(removed, ["instance_info.a.token", "instance_info.configdrive"]);
        assert_eq!(info, object(json!({"a": {"b": 1}, "c": "d"})));
    }
}
