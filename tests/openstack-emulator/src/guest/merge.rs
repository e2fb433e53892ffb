//! Merges two Ignition configs (the specification's "Merging" chapter).

use serde_json::Value;

/// Lists whose entries are merged if this field is equal, by the last word of their path.
const KEYS: [(&str, &str); 10] = [
    ("files", "path"),
    ("directories", "path"),
    ("links", "path"),
    ("filesystems", "path"),
    ("disks", "device"),
    ("units", "name"),
    ("dropins", "name"),
    ("users", "name"),
    ("groups", "name"),
    ("raid", "name"),
];

/// Merges `child` into `parent`. The child's values win, lists are appended, entries with the same key are merged.
pub(super) fn merge(parent: Value, child: Value) -> Value {
    merge_at("", parent, child)
}

fn merge_at(name: &str, parent: Value, child: Value) -> Value {
    match (parent, child) {
        (Value::Object(mut parent), Value::Object(child)) => {
            for (key, value) in child {
                let merged = match parent.remove(&key) {
                    Some(before) => merge_at(&key, before, value),
                    None => value,
                };
                parent.insert(key, merged);
            }
            Value::Object(parent)
        }
        (Value::Array(parent), Value::Array(child)) => {
            Value::Array(merge_lists(name, parent, child))
        }
        (_, child) => child,
    }
}

fn merge_lists(name: &str, mut parent: Vec<Value>, child: Vec<Value>) -> Vec<Value> {
    let key = KEYS.iter().find(|(list, _)| *list == name).map(|(_, key)| *key);
    for value in child {
        let same = key.and_then(|key| parent.iter().position(|one| one[key] == value[key]));
        match same {
            Some(at) => {
                let before = parent[at].take();
                parent[at] = merge_at("", before, value);
            }
            None => parent.push(value),
        }
    }
    parent
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::merge;

    #[test]
    fn files_of_the_same_path_become_one_and_others_are_added() {
        let parent =
            json!({"storage": {"files": [{"path": "/a", "mode": 420, "overwrite": true}]}});
        let child = json!({"storage": {"files": [{"path": "/a", "mode": 384}, {"path": "/b"}]}});
        let want = json!({"storage": {"files": [{"path": "/a", "mode": 384, "overwrite": true}, {"path": "/b"}]}});
        assert_eq!(merge(parent, child), want);
    }
}
