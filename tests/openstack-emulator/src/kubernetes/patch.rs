//! Patches: JSON patch, merge patch, strategic merge patch and apply.

use serde_json::Value;

/// Lists whose entries a strategic merge identifies by this field.
const KEYS: [(&str, &str); 6] = [
    ("taints", "key"),
    ("conditions", "type"),
    ("containers", "name"),
    ("env", "name"),
    ("volumes", "name"),
    ("addresses", "type"),
];

/// Applies a patch of this content type. `None` if the patch is malformed or does not fit the object.
pub(super) fn patched(object: &Value, kind: &str, body: &[u8]) -> Option<Value> {
    match kind.split(';').next().unwrap_or_default().trim() {
        "application/json-patch+json" => {
            json_patch(object.clone(), &serde_json::from_slice(body).ok()?)
        }
        "application/merge-patch+json" => {
            Some(merge(object.clone(), serde_json::from_slice(body).ok()?, false, ""))
        }
        "application/strategic-merge-patch+json" => {
            Some(merge(object.clone(), serde_json::from_slice(body).ok()?, true, ""))
        }
        "application/apply-patch+yaml" => Some(merge(object.clone(), yaml(body)?, true, "")),
        _ => None,
    }
}

pub(super) fn yaml(body: &[u8]) -> Option<Value> {
    serde_json::from_slice(body)
        .ok()
        .or_else(|| serde_saphyr::from_str(std::str::from_utf8(body).ok()?).ok())
}

fn merge(before: Value, patch: Value, strategic: bool, name: &str) -> Value {
    match (before, patch) {
        (Value::Object(mut before), Value::Object(patch)) => {
            for (key, value) in patch {
                if value.is_null() {
                    before.remove(&key);
                } else if !key.starts_with('$') {
                    let inner = before.remove(&key).unwrap_or_default();
                    let merged = merge(inner, value, strategic, &key);
                    before.insert(key, merged);
                }
            }
            Value::Object(before)
        }
        (Value::Array(mut before), Value::Array(patch))
            if strategic && KEYS.iter().any(|(list, _)| *list == name) =>
        {
            let key = KEYS.iter().find(|(list, _)| *list == name).map_or("name", |(_, key)| *key);
            for value in patch {
                let same = before.iter().position(|one| one[key] == value[key]);
                match same {
                    Some(at) if value["$patch"] == "delete" => {
                        before.remove(at);
                    }
                    Some(at) => {
                        let inner = before[at].take();
                        before[at] = merge(inner, value, strategic, "");
                    }
                    None => before.push(value),
                }
            }
            Value::Array(before)
        }
        (_, patch @ Value::Object(_)) => {
            merge(Value::Object(serde_json::Map::new()), patch, strategic, name)
        }
        (_, patch) => patch,
    }
}

fn json_patch(mut object: Value, operations: &Value) -> Option<Value> {
    for operation in operations.as_array()? {
        let path = operation["path"].as_str()?;
        let (parent, last) = path.rsplit_once('/')?;
        let last = last.replace("~1", "/").replace("~0", "~");
        let parent = object.pointer_mut(parent)?;
        match (operation["op"].as_str()?, parent) {
            ("test", parent) => {
                if parent.get(&last) != operation.get("value") {
                    return None;
                }
            }
            ("remove", Value::Object(map)) => {
                map.remove(&last)?;
            }
            ("remove", Value::Array(list)) => {
                let at: usize = last.parse().ok()?;
                (at < list.len()).then(|| list.remove(at))?;
            }
            ("add" | "replace", Value::Object(map)) => {
                map.insert(last, operation["value"].clone());
            }
            ("add", Value::Array(list)) if last == "-" => list.push(operation["value"].clone()),
            ("add", Value::Array(list)) => {
                let at: usize = last.parse().ok()?;
                (at <= list.len()).then(|| list.insert(at, operation["value"].clone()))?;
            }
            ("replace", Value::Array(list)) => {
                *list.get_mut(last.parse::<usize>().ok()?)? = operation["value"].clone()
            }
            _ => return None,
        }
    }
    Some(object)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::patched;

    #[test]
    fn a_cordon_works_with_every_patch_type() {
        let node = json!({"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}});
        let merge =
            patched(&node, "application/merge-patch+json", br#"{"spec": {"unschedulable": true}}"#)
                .unwrap();
        assert_eq!(merge["spec"]["unschedulable"], true);
        let strategic = br#"{"spec": {"taints": [{"key": "b", "effect": "NoExecute"}]}}"#;
        let strategic =
            patched(&node, "application/strategic-merge-patch+json", strategic).unwrap();
        assert_eq!(strategic["spec"]["taints"].as_array().unwrap().len(), 2);
        let json = br#"[{"op": "add", "path": "/spec/unschedulable", "value": true}]"#;
        assert_eq!(
            patched(&node, "application/json-patch+json", json).unwrap()["spec"]["unschedulable"],
            true
        );
        assert!(patched(&node, "text/plain", b"{}").is_none());
    }
}
