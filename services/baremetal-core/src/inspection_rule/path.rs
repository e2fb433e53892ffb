//! Changes of a document at a path, such as `properties/cpus`.

use serde_json::map::Entry;
use serde_json::{Map, Value};

use super::limits;
use super::problem::RuleProblem;

/// Splits the path of an attribute, whose parts are separated by slashes or, without a slash, by dots.
pub(super) fn attribute_path(path: &str) -> Result<Vec<&str>, RuleProblem> {
    let parts: Vec<&str> = match path.contains('/') {
        true => path.trim_matches('/').split('/').collect(),
        false => path.split('.').collect(),
    };
    checked(path, parts)
}

/// Splits the path of plugin data, whose parts are separated by dots.
pub(super) fn plugin_path(path: &str) -> Result<Vec<&str>, RuleProblem> {
    checked(path, path.split('.').collect())
}

fn checked<'a>(path: &str, parts: Vec<&'a str>) -> Result<Vec<&'a str>, RuleProblem> {
    if parts.len() > limits::PATH_PARTS || parts.iter().any(|part| part.is_empty()) {
        let path: String = path.chars().take(64).collect();
        let most = limits::PATH_PARTS;
        let problem = format!("path: {path:?} is no path of 1 to {most} names");
        return Err(RuleProblem::new(problem));
    }
    Ok(parts)
}

/// Sets the value at the path. Objects on the way are created.
pub(super) fn set(
    document: &mut Map<String, Value>,
    path: &[&str],
    value: Value,
) -> Result<(), RuleProblem> {
    let (parent, name) = parent(document, path)?;
    parent.insert(name.to_owned(), value);
    Ok(())
}

/// Appends the value to the list at the path, which is created if it is absent. With `unique`, a value that the list contains is not
/// appended.
pub(super) fn extend(
    document: &mut Map<String, Value>,
    path: &[&str],
    value: Value,
    is_unique: bool,
) -> Result<(), RuleProblem> {
    let (parent, name) = parent(document, path)?;
    match parent.entry(name).or_insert_with(|| Value::Array(Vec::new())) {
        Value::Array(list) => {
            if !is_unique || !list.contains(&value) {
                list.push(value);
            }
            Ok(())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
            Err(RuleProblem::new(format!("{}: is no list", path.join("."))))
        }
    }
}

/// Removes the value at the path, and returns whether there was one.
pub(super) fn remove(document: &mut Map<String, Value>, path: &[&str]) -> bool {
    let Some((name, parents)) = path.split_last() else { return false };
    let mut parent = document;
    for part in parents {
        let Some(Value::Object(next)) = parent.get_mut(*part) else { return false };
        parent = next;
    }
    parent.remove(*name).is_some()
}

/// Returns the object that contains the last name of the path, and this name.
fn parent<'d, 'p>(
    document: &'d mut Map<String, Value>,
    path: &[&'p str],
) -> Result<(&'d mut Map<String, Value>, &'p str), RuleProblem> {
    let (name, parents) = path.split_last().unwrap_or((&"", &[]));
    let mut parent = document;
    for part in parents {
        let next = match parent.entry(*part) {
            Entry::Vacant(free) => free.insert(Value::Object(Map::new())),
            Entry::Occupied(found) => found.into_mut(),
        };
        let Value::Object(next) = next else {
            let path = path.join(".");
            return Err(RuleProblem::new(format!("{path}: {part} is no object")));
        };
        parent = next;
    }
    Ok((parent, name))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn document() -> Map<String, Value> {
        json!({"a": {"b": [1]}, "text": "x"}).as_object().unwrap().clone()
    }

    #[test]
    fn paths_have_slashes_or_dots() {
        assert_eq!(attribute_path("/properties/cpu.arch/"), Ok(vec!["properties", "cpu.arch"]));
        assert_eq!(attribute_path("properties.cpus"), Ok(vec!["properties", "cpus"]));
        assert_eq!(plugin_path("a/b.c"), Ok(vec!["a/b", "c"]));
        assert_eq!(plugin_path(&["a"; 16].join(".")), Ok(vec!["a"; 16]));
        for bad in ["", "/", "a//b", "a..b", &["a"; 17].join(".")] {
            assert!(attribute_path(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_value_is_set_extended_and_removed() {
        let mut it = document();
        set(&mut it, &["a", "c", "d"], json!(1)).unwrap();
        extend(&mut it, &["a", "b"], json!(1), true).unwrap();
        extend(&mut it, &["a", "b"], json!(1), false).unwrap();
        extend(&mut it, &["new"], json!("x"), true).unwrap();
        assert!(remove(&mut it, &["text"]));
        let want = json!({"a": {"b": [1, 1], "c": {"d": 1}}, "new": ["x"]});
        assert_eq!(Value::Object(it), want);
    }

    #[test]
    fn a_path_through_another_type_is_refused() {
        let mut it = document();
        let why = set(&mut it, &["text", "x"], json!(1)).unwrap_err();
        assert_eq!(why.to_string(), "text.x: text is no object");
        let why = extend(&mut it, &["a"], json!(1), false).unwrap_err();
        assert_eq!(why.to_string(), "a: is no list");
        assert!(!remove(&mut it, &["a", "x"]) && !remove(&mut it, &["text", "x"]));
        assert_eq!(it, document());
    }
}
