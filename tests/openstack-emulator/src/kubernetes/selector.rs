//! Label selectors and field selectors.

use serde_json::{Value, json};

use crate::object::ReadFields;

/// Fields that field selectors may use, besides name and namespace.
const FIELDS: [(&str, &[&str]); 3] = [
    ("pods", &["spec.nodeName", "status.phase", "spec.restartPolicy", "status.podIP"]),
    ("nodes", &["spec.unschedulable"]),
    ("certificatesigningrequests", &["spec.signerName"]),
];

/// Whether a label selector of a query matches an object.
pub(super) fn by_labels(object: &Value, selector: &str) -> bool {
    terms(selector).into_iter().all(|term| by_label(object, term.trim()))
}

fn by_label(object: &Value, term: &str) -> bool {
    let value = |key: &str| object["metadata"]["labels"][key.trim()].as_str();
    for (word, wanted) in [(" notin ", false), (" in ", true)] {
        if let Some((key, set)) = term.split_once(word) {
            let set = set.trim().trim_start_matches('(').trim_end_matches(')');
            let within =
                value(key).is_some_and(|value| set.split(',').any(|one| one.trim() == value));
            return within == wanted;
        }
    }
    if let Some(key) = term.strip_prefix('!') {
        return value(key).is_none();
    }
    equals(term, |key| value(key).map(str::to_owned))
}

/// Splits a selector at commas outside of parentheses.
fn terms(selector: &str) -> Vec<&str> {
    let (mut from, mut depth, mut all) = (0, 0, Vec::new());
    for (at, letter) in selector.char_indices() {
        match letter {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                all.push(&selector[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    all.push(&selector[from..]);
    all.into_iter().filter(|term| !term.trim().is_empty()).collect()
}

fn equals(term: &str, value: impl Fn(&str) -> Option<String>) -> bool {
    if let Some((key, wanted)) = term.split_once("!=") {
        return value(key.trim()).as_deref() != Some(wanted.trim());
    }
    match term.split_once('=') {
        Some((key, wanted)) => {
            value(key.trim()).as_deref() == Some(wanted.trim_start_matches('=').trim())
        }
        None => value(term.trim()).is_some(),
    }
}

/// Whether a field selector matches an object. An error names the unsupported field.
pub(super) fn by_fields(resource: &str, object: &Value, selector: &str) -> Result<bool, String> {
    let mut all = true;
    for term in selector.split(',').filter(|term| !term.is_empty()) {
        let key = term.split(['=', '!']).next().unwrap_or_default().trim();
        let special = FIELDS.iter().find(|(name, _)| *name == resource).map_or(&[][..], |it| it.1);
        if !["metadata.name", "metadata.namespace"].contains(&key) && !special.contains(&key) {
            return Err(format!("field label not supported: {key}"));
        }
        let value = |key: &str| {
            let found = object.pointer(&format!("/{}", key.replace('.', "/")));
            Some(match found {
                Some(Value::String(text)) => text.clone(),
                Some(Value::Bool(truth)) => truth.to_string(),
                // A missing field equals the empty text, or false for a flag.
                _ if key == "spec.unschedulable" => "false".to_owned(),
                _ => String::new(),
            })
        };
        all &= equals(term, value);
    }
    Ok(all)
}

/// Whether a `LabelSelector` in an object matches a pod. An empty selector matches all pods.
pub(super) fn fits_template(selector: &Value, pod: &Value) -> bool {
    let expressions = selector.list("matchExpressions").iter();
    labels_match(&selector["matchLabels"], pod)
        && expressions.into_iter().all(|it| expression(it, &pod["metadata"]["labels"]))
}

pub(super) fn labels_match(wanted: &Value, object: &Value) -> bool {
    let labels = &object["metadata"]["labels"];
    wanted.as_object().into_iter().flatten().all(|(key, value)| labels[key] == *value)
}

/// Whether a condition of this type of an object is true.
pub(super) fn is_true(object: &Value, condition: &str) -> bool {
    let mut all = object["status"].list("conditions").iter();
    all.any(|it| it["type"] == condition && it["status"] == "True")
}

/// Evaluates `{key, operator, values}` for labels of objects or of nodes.
pub(super) fn expression(expression: &Value, labels: &Value) -> bool {
    let value = expression["key"].as_str().map_or(&Value::Null, |key| &labels[key]);
    let none = json!([]);
    let values = expression["values"].as_array().or(none.as_array());
    let within = values.is_some_and(|values| values.contains(value));
    match expression.text("operator") {
        "In" => within,
        "NotIn" => !within,
        "Exists" => !value.is_null(),
        "DoesNotExist" => value.is_null(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_selected_in_every_way_of_writing() {
        let object = json!({"metadata": {"labels": {"a": "1", "b": "2"}}});
        for yes in ["a=1", "a==1,b=2", "a", "!c", "a!=2", "c!=1", "a in (0, 1),b", "a notin (2,3)"]
        {
            assert!(by_labels(&object, yes), "{yes}");
        }
        for no in ["a=2", "c", "!a", "a in (2,3)", "a notin (1)", "c in (1)", "a=1,b=3"] {
            assert!(!by_labels(&object, no), "{no}");
        }
    }

    #[test]
    fn only_some_fields_can_be_selected_by() {
        let pod = json!({"metadata": {"name": "p"}, "spec": {"nodeName": "n"}});
        assert_eq!(by_fields("pods", &pod, "spec.nodeName=n,metadata.name!=q"), Ok(true));
        assert_eq!(by_fields("pods", &pod, "spec.nodeName="), Ok(false));
        assert!(by_fields("pods", &pod, "spec.hostNetwork=true").is_err());
        assert_eq!(by_fields("nodes", &pod, "spec.unschedulable!=true"), Ok(true));
    }
}
