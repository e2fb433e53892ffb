//! Answers, without the parts that differ between two services or two runs.

use std::collections::BTreeMap;

use compat::wire::Reply;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use uuid::Uuid;

/// The length of a UUID in its usual form.
const UUID_LENGTH: usize = 36;

/// Fields with texts for people, which are free.
const TEXTS: [&str; 2] = ["last_error", "event"];

/// An answer in the form in which answers are compared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    pub status: Status,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
    /// `null` for an answer without a body.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub body: Value,
}

/// The status of an answer, or the reason why there is none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Status {
    Http(u16),
    Other(String),
}

/// The values that later requests use, and the names that differ between services.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// The base URL of the service.
    pub url: String,
    pub conductor: Option<String>,
    pub variables: BTreeMap<String, String>,
}

impl Answer {
    /// An answer that is no HTTP answer.
    pub fn other(what: impl Into<String>) -> Answer {
        Answer { status: Status::Other(what.into()), location: None, body: Value::Null }
    }

    /// Returns the comparable parts of an HTTP answer.
    pub fn of(reply: &Reply, names: &Names) -> Answer {
        let body = match serde_json::from_str(&reply.body) {
            Ok(body) => names.general(without_texts(body)),
            Err(_) if reply.body.is_empty() => Value::Null,
            Err(_) if reply.status >= 400 => json!({"error": "{text}"}),
            Err(_) => json!({"text": names.general_text(reply.body.trim())}),
        };
        Answer {
            status: Status::Http(reply.status),
            location: reply.header("location").map(|it| names.general_text(it)),
            body,
        }
    }
}

/// Replaces an error by its form, because its texts are free: the names of its fields and its code.
fn without_texts(body: Value) -> Value {
    let Some(error) = body.get("error_message") else { return body };
    let inner = error.as_str().and_then(|text| serde_json::from_str(text).ok());
    let inner: Value = inner.unwrap_or_else(|| error.clone());
    let fields: Vec<&str> =
        inner.as_object().into_iter().flat_map(Map::keys).map(String::as_str).collect();
    let form = if error.is_string() { "a string" } else { "an object" };
    let code = inner["faultcode"].as_str().map(|it| format!(", faultcode {it}"));
    json!({"error": format!("{form} of {}{}", fields.join(" "), code.unwrap_or_default())})
}

impl Status {
    /// Whether the service answered.
    pub fn is_http(&self) -> bool {
        matches!(self, Status::Http(_))
    }
}

impl Names {
    /// Returns a text with the values of its variables. The error is the name of a variable without a value.
    pub fn filled(&self, text: &str) -> Result<String, String> {
        let mut filled = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('{') {
            let Some((name, after)) = after.split_once('}') else { break };
            filled.push_str(before);
            filled.push_str(self.variables.get(name).ok_or_else(|| name.to_owned())?);
            rest = after;
        }
        filled.push_str(rest);
        Ok(filled)
    }

    /// Returns a body with the values of the variables in its strings. The error is the name of a variable without a value.
    pub fn filled_body(&self, body: &Value) -> Result<Value, String> {
        Ok(match body {
            Value::Null | Value::Bool(_) | Value::Number(_) => body.clone(),
            Value::String(text) => Value::String(self.filled(text)?),
            Value::Array(items) => {
                items.iter().map(|it| self.filled_body(it)).collect::<Result<_, _>>()?
            }
            Value::Object(fields) => {
                let filled = |(key, value): (&String, &Value)| {
                    Ok::<_, String>((self.filled(key)?, self.filled_body(value)?))
                };
                Value::Object(fields.iter().map(filled).collect::<Result<_, _>>()?)
            }
        })
    }

    /// Returns a body in which names stand for what differs between services.
    fn general(&self, body: Value) -> Value {
        match body {
            Value::Null | Value::Bool(_) | Value::Number(_) => body,
            Value::String(text) => Value::String(self.general_text(&text)),
            Value::Array(items) => items.into_iter().map(|it| self.general(it)).collect(),
            Value::Object(fields) => {
                let is_check = fields.contains_key("result");
                let general = |(name, value): (String, Value)| {
                    let is_text = TEXTS.contains(&name.as_str()) || (is_check && name == "reason");
                    if is_text && value.is_string() {
                        return (name, Value::from("{text}"));
                    }
                    let value = self.general(value);
                    (self.general_text(&name), if is_set(&name) { sorted(value) } else { value })
                };
                Value::Object(fields.into_iter().map(general).collect())
            }
        }
    }

    /// Returns a text in which names stand for what differs between services.
    fn general_text(&self, text: &str) -> String {
        let host = self.url.trim_start_matches("http://");
        let mut text = text.replace(&self.url, "{url}").replace(host, "{host}");
        if let Some(conductor) = &self.conductor {
            // The name may be a common word, so only a whole text or the last part of a URL is a conductor.
            match text.strip_suffix(conductor.as_str()) {
                Some(before) if before.is_empty() || before.ends_with(['/', '=']) => {
                    text = format!("{before}{{conductor}}");
                }
                _ => {}
            }
        }
        for (name, value) in &self.variables {
            if is_uuid(value) {
                text = text.replace(value, &format!("{{{name}}}"));
            }
        }
        if is_time(&text) { "{time}".to_owned() } else { sorted_query(&without_uuids(&text)) }
    }
}

/// Whether a field has a list whose order is free.
fn is_set(name: &str) -> bool {
    name.starts_with("enabled_") && name.ends_with("_interfaces")
}

fn sorted(list: Value) -> Value {
    let Value::Array(mut items) = list else { return list };
    items.sort_by_key(Value::to_string);
    Value::Array(items)
}

/// Sorts the fields that the query of a link names, because Ironic does not order them.
fn sorted_query(text: &str) -> String {
    let sorted = |part: &str| match part.strip_prefix("fields=") {
        Some(fields) => {
            let mut fields: Vec<&str> = fields.split(',').collect();
            fields.sort_unstable();
            format!("fields={}", fields.join(","))
        }
        None => part.to_owned(),
    };
    text.split('&').map(sorted).collect::<Vec<_>>().join("&")
}

fn is_uuid(text: &str) -> bool {
    text.len() == UUID_LENGTH && Uuid::parse_str(text).is_ok()
}

/// Whether a text is a time, with or without an offset.
fn is_time(text: &str) -> bool {
    text.parse::<Timestamp>().is_ok() || format!("{text}Z").parse::<Timestamp>().is_ok()
}

fn without_uuids(text: &str) -> String {
    let mut general = String::new();
    let mut rest = text;
    while let Some(next) = rest.chars().next() {
        match rest.get(..UUID_LENGTH) {
            Some(start) if is_uuid(start) => {
                general.push_str("{uuid}");
                rest = &rest[UUID_LENGTH..];
            }
            _ => {
                general.push(next);
                rest = &rest[next.len_utf8()..];
            }
        }
    }
    general
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODE: &str = "3a9e7a6e-2f0c-4b6a-9d53-0c8c6c8c0d11";

    fn names() -> Names {
        Names {
            url: "http://127.0.0.1:1".to_owned(),
            conductor: Some("host-1".to_owned()),
            variables: BTreeMap::from([("node".to_owned(), NODE.to_owned())]),
        }
    }

    #[test]
    fn names_stand_for_what_differs_between_services() {
        let body = json!({
            "uuid": NODE,
            "links": [{"href": format!("http://127.0.0.1:1/v1/nodes/{NODE}")}],
            "other": "1be26c0b-03f2-4d2e-ae87-c02d7f33c123",
            "conductor": "host-1",
            "times": ["2026-01-01T00:00:00+00:00", "2026-01-01T00:00:00.123456", "2026-01"],
            "count": 3,
        });
        let want = json!({
            "uuid": "{node}",
            "links": [{"href": "{url}/v1/nodes/{node}"}],
            "other": "{uuid}",
            "conductor": "{conductor}",
            "times": ["{time}", "{time}", "2026-01"],
            "count": 3,
        });
        assert_eq!(names().general(body), want);
    }

    #[test]
    fn texts_and_the_order_of_sets_are_free() {
        let body = json!({
            "last_error": "it failed",
            "boot": {"result": false, "reason": "no image"},
            "maintenance": {"reason": "a new fan"},
            "enabled_power_interfaces": ["ipmitool", "fake"],
            "next": "http://127.0.0.1:1/v1/nodes?limit=1&fields=b,a&marker=c",
            "console": "ws://127.0.0.1:1/console",
            "marker": "http://127.0.0.1:1/v1/conductors?marker=host-1",
            "conductors": ["host-1", "no host-1", "http://127.0.0.1:1/v1/conductors/host-1"],
        });
        let want = json!({
            "last_error": "{text}",
            "boot": {"result": false, "reason": "{text}"},
            "maintenance": {"reason": "a new fan"},
            "enabled_power_interfaces": ["fake", "ipmitool"],
            "next": "{url}/v1/nodes?limit=1&fields=a,b&marker=c",
            "console": "ws://{host}/console",
            "marker": "{url}/v1/conductors?marker={conductor}",
            "conductors": ["{conductor}", "no host-1", "{url}/v1/conductors/{conductor}"],
        });
        assert_eq!(names().general(body), want);
        assert_eq!(names().general(json!({"last_error": null})), json!({"last_error": null}));
    }

    #[test]
    fn an_error_keeps_its_code_and_its_form() {
        let text =
            json!({"faultcode": "Client", "faultstring": "no", "debuginfo": null}).to_string();
        let want = |form: &str| json!({"error": format!("{form} of debuginfo faultcode faultstring, faultcode Client")});
        let object: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(without_texts(json!({"error_message": text})), want("a string"));
        assert_eq!(without_texts(json!({"error_message": object})), want("an object"));
        let other = json!({"error_message": {"code": 404, "title": "Not Found"}});
        assert_eq!(without_texts(other), json!({"error": "an object of code title"}));
    }

    #[test]
    fn a_variable_without_a_value_is_named() {
        let names = names();
        assert_eq!(names.filled("/v1/nodes/{node}/states"), Ok(format!("/v1/nodes/{NODE}/states")));
        assert_eq!(names.filled_body(&json!([{"a": "{port}"}])), Err("port".to_owned()));
        assert_eq!(names.filled_body(&json!({"a": ["{node}", 1]})), Ok(json!({"a": [NODE, 1]})));
    }
}
