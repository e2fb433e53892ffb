//! Server-side apply: a field manager sends all its fields, and fields that the manager no longer sends are removed.

use serde_json::Value;

/// Lists whose entries are identified by these fields. Any other list is one value.
const KEYED: [(&str, &[&str]); 11] = [
    ("containers", &["name"]),
    ("initContainers", &["name"]),
    ("env", &["name"]),
    ("volumes", &["name"]),
    ("volumeMounts", &["mountPath"]),
    ("imagePullSecrets", &["name"]),
    ("conditions", &["type"]),
    ("addresses", &["type"]),
    ("ownerReferences", &["uid"]),
    // Services identify ports by `port`, containers by `containerPort`.
    ("ports", &["port", "containerPort", "protocol"]),
    ("hostAliases", &["ip"]),
];

/// Applies `config` to an object. `before` is what the same manager applied last, `others` what other managers applied.
pub(super) fn applied(live: Value, before: &Value, config: &Value, others: &[&Value]) -> Value {
    let mut live = live;
    forget(&mut live, before, config, others, "");
    put(live, config, "")
}

/// The fields that `config` would change although other managers applied them.
pub(super) fn conflicts(live: &Value, config: &Value, others: &[&Value]) -> Vec<String> {
    let mut all = Vec::new();
    collect(live, config, others, String::new(), "", &mut all);
    all
}

fn collect(
    live: &Value,
    config: &Value,
    others: &[&Value],
    at: String,
    name: &str,
    all: &mut Vec<String>,
) {
    match config {
        Value::Object(map) => {
            for (key, value) in map.iter().filter(|(key, _)| is_content(&at, key)) {
                let inner: Vec<&Value> = others.iter().map(|it| &it[key]).collect();
                collect(&live[key], value, &inner, format!("{at}.{key}"), key, all);
            }
        }
        Value::Array(list) if keys(name).is_some() => {
            for value in list {
                let inner: Vec<&Value> = others.iter().map(|it| same(it, value, name)).collect();
                collect(same(live, value, name), value, &inner, format!("{at}[]"), "", all);
            }
        }
        leaf @ (Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::Array(_)) => {
            if live != leaf && others.iter().any(|it| !it.is_null()) {
                all.push(at);
            }
        }
    }
}

/// Whether a field can have a manager. The fields that identify an object have none.
fn is_content(at: &str, key: &str) -> bool {
    let top = at.is_empty() && ["apiVersion", "kind"].contains(&key);
    let meta = at == ".metadata" && ["name", "namespace"].contains(&key);
    !top && !meta
}

fn forget(live: &mut Value, before: &Value, config: &Value, others: &[&Value], name: &str) {
    match (live, before) {
        (Value::Object(live), Value::Object(before)) => {
            for (key, value) in before {
                let inner: Vec<&Value> = others.iter().map(|it| &it[key]).collect();
                let elsewhere = !config[key].is_null() || inner.iter().any(|it| !it.is_null());
                match live.get_mut(key) {
                    Some(here) if elsewhere || has_more(here, value) => {
                        forget(here, value, &config[key], &inner, key);
                    }
                    Some(_) => {
                        live.remove(key);
                    }
                    None => {}
                }
            }
        }
        (Value::Array(live), Value::Array(before)) if keys(name).is_some() => {
            live.retain(|one| {
                let known = |list: &Value| !same(list, one, name).is_null();
                let was = before.iter().any(|it| is_same(it, one, name));
                !was || known(config) || others.iter().any(|it| known(it))
            });
        }
        _ => {}
    }
}

/// Whether an object has fields that were not applied. Such an object is kept.
fn has_more(here: &Value, applied: &Value) -> bool {
    match (here, applied) {
        (Value::Object(here), Value::Object(applied)) => {
            here.iter().any(|(key, value)| applied.get(key).is_none_or(|it| has_more(value, it)))
        }
        _ => false,
    }
}

fn put(live: Value, config: &Value, name: &str) -> Value {
    match (live, config) {
        (live, Value::Object(config)) => {
            let mut live = live.as_object().cloned().unwrap_or_default();
            for (key, value) in config.iter().filter(|(_, value)| !value.is_null()) {
                let inner = live.remove(key).unwrap_or_default();
                live.insert(key.clone(), put(inner, value, key));
            }
            Value::Object(live)
        }
        (Value::Array(mut live), Value::Array(config)) if keys(name).is_some() => {
            for value in config {
                match live.iter().position(|it| is_same(it, value, name)) {
                    Some(at) => {
                        let inner = live[at].take();
                        live[at] = put(inner, value, "");
                    }
                    None => live.push(value.clone()),
                }
            }
            Value::Array(live)
        }
        (_, leaf) => leaf.clone(),
    }
}

fn keys(name: &str) -> Option<&'static [&'static str]> {
    KEYED.iter().find(|(list, _)| *list == name).map(|(_, keys)| *keys)
}

fn is_same(one: &Value, other: &Value, name: &str) -> bool {
    let text = |of: &Value, key: &str| match (key, &of[key]) {
        ("protocol", Value::Null) => Value::from("TCP"),
        (_, value) => value.clone(),
    };
    keys(name).is_some_and(|keys| keys.iter().all(|key| text(one, key) == text(other, key)))
}

fn same<'v>(list: &'v Value, one: &Value, name: &str) -> &'v Value {
    const NONE: &Value = &Value::Null;
    let mut entries = list.as_array().into_iter().flatten();
    entries.find(|it| is_same(it, one, name)).unwrap_or(NONE)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_field_no_longer_applied_is_removed_unless_others_applied_it() {
        let live = json!({"data": {"a": "1", "b": "2", "c": "3"}});
        let before = json!({"data": {"a": "1", "b": "2"}});
        let after = applied(live.clone(), &before, &json!({"data": {"a": "7"}}), &[]);
        assert_eq!(after, json!({"data": {"a": "7", "c": "3"}}));
        let others = json!({"data": {"b": "2"}});
        let after = applied(live, &before, &json!({"data": {"a": "1"}}), &[&others]);
        assert_eq!(after, json!({"data": {"a": "1", "b": "2", "c": "3"}}));
    }

    #[test]
    fn list_entries_are_identified_by_their_keys() {
        let live = json!({"ports": [{"port": 80, "protocol": "TCP", "nodePort": 30000}, {"port": 53, "protocol": "UDP"}]});
        let before = json!({"ports": [{"port": 80}, {"port": 53, "protocol": "UDP"}]});
        let after = applied(live, &before, &json!({"ports": [{"port": 80, "name": "http"}]}), &[]);
        assert_eq!(
            after,
            json!({"ports": [{"port": 80, "protocol": "TCP", "nodePort": 30000, "name": "http"}]})
        );
    }

    #[test]
    fn only_a_changed_field_of_another_manager_is_a_conflict() {
        let live = json!({"kind": "A", "spec": {"a": 1, "b": 2, "c": 3}});
        let others = json!({"kind": "A", "spec": {"a": 1, "b": 2}});
        let config = json!({"kind": "A", "spec": {"a": 7, "b": 2, "c": 7}});
        assert_eq!(conflicts(&live, &config, &[&others]), [".spec.a"]);
    }
}
