//! JSON Patch (RFC 6902), with the semantics that OpenStack clients expect.

use json_patch::jsonptr::PointerBuf;
use json_patch::{AddOperation, PatchOperation, RemoveOperation, ReplaceOperation};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use crate::{ApiError, JsonShape};

/// An operation of a patch.
///
/// `test`, `copy` and `move` are not supported, because a caller could use them to read secrets that answers never show.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Operation {
    pub op: Op,
    /// A JSON pointer whose first part names a field.
    pub path: String,
    /// The new value; `None` for `remove`.
    #[serde(default, deserialize_with = "present")]
    pub value: Option<Value>,
}

impl Operation {
    /// The JSON shape of an operation.
    pub fn shape() -> JsonShape {
        let operation = JsonShape::object([
            ("op", JsonShape::enumeration(["add", "replace", "remove"])),
            ("path", JsonShape::text()),
        ]);
        operation.maybe([("value", JsonShape::anything())])
    }
}

/// The effect of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Op {
    /// Sets a value, whether or not one exists.
    Add,
    /// Sets a field, whether or not it has a value, and the value of a part that exists.
    Replace,
    /// Resets a field to its default.
    Remove,
}

/// Deserializes a present value to `Some`, even if the value is null.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

impl Operation {
    /// The field that the operation changes, entirely or in part.
    pub fn field(&self) -> Result<&str, ApiError> {
        let field = self.path.strip_prefix('/').and_then(|path| path.split('/').next());
        field.filter(|field| !field.is_empty()).ok_or_else(|| {
            let path: String = self.path.chars().take(64).collect();
            ApiError::bad_field(
                "path",
                format!("{path:?} does not start with a slash and a field name"),
            )
        })
    }
}

/// Applies `patch` to `document`, which must hold the present value of every field that the patch names.
///
/// A removed field becomes null, and the resource replaces null by the default.
pub fn apply(document: &mut Map<String, Value>, patch: Vec<Operation>) -> Result<(), ApiError> {
    let mut whole = Value::Object(std::mem::take(document));
    for operation in patch {
        apply_one(&mut whole, operation)?;
    }
    if let Value::Object(patched) = whole {
        *document = patched;
    }
    Ok(())
}

fn apply_one(document: &mut Value, operation: Operation) -> Result<(), ApiError> {
    let shown: String = operation.path.chars().take(256).collect();
    let refuse = |problem: &str| ApiError::bad_field(&shown, problem);
    let whole_field = operation.field()?.len() + 1 == operation.path.len();
    let path = PointerBuf::parse(operation.path)
        .map_err(|_| refuse("is not a JSON pointer (RFC 6901)"))?;

    let value = match (operation.op, operation.value) {
        (Op::Remove, _) if whole_field => Value::Null,
        (Op::Remove, _) => {
            let remove = PatchOperation::Remove(RemoveOperation { path });
            return json_patch::patch(document, &[remove])
                .map_err(|_| refuse("the value to remove does not exist"));
        }
        (Op::Add | Op::Replace, Some(value)) => value,
        (Op::Add | Op::Replace, None) => return Err(refuse("the operation has no value")),
    };
    let set = match (operation.op, path.resolve(document).is_ok()) {
        (Op::Replace, true) => PatchOperation::Replace(ReplaceOperation { path, value }),
        (Op::Replace, false) if !whole_field => {
            return Err(refuse("the value to replace does not exist"));
        }
        (Op::Add | Op::Replace | Op::Remove, _) => {
            PatchOperation::Add(AddOperation { path, value })
        }
    };
    json_patch::patch(document, &[set])
        .map_err(|_| refuse("the parent of the path does not exist or cannot hold a value"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(patch: Value, want: Result<Value, &str>) {
        let mut document = Map::new();
        document.insert("extra".to_owned(), json!({"a": 1, "list": [1, 2]}));
        document.insert("name".to_owned(), Value::Null);
        let patch: Vec<Operation> = serde_json::from_value(patch).unwrap();
        let got = apply(&mut document, patch).map(|()| Value::Object(document));
        assert_eq!(got.map_err(|why| why.message), want.map_err(str::to_owned));
    }

    #[test]
    fn add_sets_a_part_and_replace_only_an_existing_one() {
        let list = json!([1, 2]);
        check(
            json!([{"op": "replace", "path": "/name", "value": "n"}, {"op": "add", "path": "/name", "value": "m"}]),
            Ok(json!({"extra": {"a": 1, "list": list}, "name": "m"})),
        );
        check(
            json!([{"op": "add", "path": "/extra/b", "value": 2}, {"op": "replace", "path": "/extra/a", "value": null}]),
            Ok(json!({"extra": {"a": null, "b": 2, "list": list}, "name": null})),
        );
        check(
            json!([{"op": "replace", "path": "/extra/b", "value": 2}]),
            Err("/extra/b: the value to replace does not exist"),
        );
        check(
            json!([{"op": "replace", "path": "/extra/list/0", "value": 9}, {"op": "add", "path": "/extra/list/-", "value": 3}]),
            Ok(json!({"extra": {"a": 1, "list": [9, 2, 3]}, "name": null})),
        );
    }

    #[test]
    fn remove_restores_the_default() {
        check(
            json!([{"op": "remove", "path": "/extra"}]),
            Ok(json!({"extra": null, "name": null})),
        );
        check(
            json!([{"op": "remove", "path": "/extra/zz"}]),
            Err("/extra/zz: the value to remove does not exist"),
        );
    }

    #[test]
    fn an_impossible_operation_is_refused_by_path() {
        check(
            json!([{"op": "add", "path": "/extra/x/y", "value": 1}]),
            Err("/extra/x/y: the parent of the path does not exist or cannot hold a value"),
        );
        check(json!([{"op": "add", "path": "/name"}]), Err("/name: the operation has no value"));
        check(
            json!([{"op": "add", "path": "name", "value": 1}]),
            Err("path: \"name\" does not start with a slash and a field name"),
        );
    }

    #[test]
    fn operations_that_could_reveal_secrets_do_not_exist() {
        for op in ["test", "copy", "move"] {
            let raw = json!([{"op": op, "path": "/extra/a", "value": "guess"}]);
            assert!(serde_json::from_value::<Vec<Operation>>(raw).is_err(), "{op} passed");
        }
    }

    proptest! {
        #[test]
        fn no_path_panics(path in "(/[a-z~0-9-]{0,8}){0,4}", value in any::<Option<i64>>()) {
            for op in [Op::Add, Op::Replace, Op::Remove] {
                let mut document = Map::new();
                document.insert("extra".to_owned(), json!({"a": [1, {"b": 2}]}));
                let operation = Operation { op, path: path.clone(), value: value.map(Value::from) };
                let _ = apply(&mut document, vec![operation]);
            }
        }
    }
}
