//! JSON patches (RFC 6902), as OpenStack clients mean them.

use json_patch::jsonptr::PointerBuf;
use json_patch::{AddOperation, PatchOperation, RemoveOperation, ReplaceOperation};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use crate::{ApiError, Shape};

/// One operation of a patch.
///
/// `test`, `copy` and `move` are not among them: they would tell secrets that are never shown.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Operation {
    /// What to do.
    pub op: Op,
    /// To what: a JSON pointer whose first part is a field.
    pub path: String,
    /// With what; not for `remove`.
    #[serde(default, deserialize_with = "present")]
    pub value: Option<Value>,
}

impl Operation {
    /// What a client writes of one.
    pub fn shape() -> Shape {
        let operation = Shape::object([
            ("op", Shape::word(["add", "replace", "remove"])),
            ("path", Shape::text()),
        ]);
        operation.maybe([("value", Shape::anything())])
    }
}

/// What an operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Op {
    /// Sets a value, whether there was one or not.
    Add,
    /// Sets a value, whether there was one or not.
    Replace,
    /// Gives the default back.
    Remove,
}

/// A value that was given is `Some`, even where it is null.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

impl Operation {
    /// The field this changes, or changes a part of.
    pub fn field(&self) -> Result<&str, ApiError> {
        let field = self.path.strip_prefix('/').and_then(|path| path.split('/').next());
        field.filter(|field| !field.is_empty()).ok_or_else(|| {
            let path: String = self.path.chars().take(64).collect();
            ApiError::bad_field("path", format!("{path:?} does not begin with a slash and a field"))
        })
    }
}

/// Applies `patch` to `document`, which holds the present value of every field that the patch names.
///
/// A field that is removed becomes null: the resource knows its default.
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
        .map_err(|_| refuse("it is not a JSON pointer (RFC 6901)"))?;

    let value = match (operation.op, operation.value) {
        (Op::Remove, _) if whole_field => Value::Null,
        (Op::Remove, _) => {
            let remove = PatchOperation::Remove(RemoveOperation { path });
            return json_patch::patch(document, &[remove])
                .map_err(|_| refuse("there is no such value to remove"));
        }
        (Op::Add | Op::Replace, Some(value)) => value,
        (Op::Add | Op::Replace, None) => return Err(refuse("the operation has no value")),
    };
    let set = if operation.op == Op::Replace && path.resolve(document).is_ok() {
        PatchOperation::Replace(ReplaceOperation { path, value })
    } else {
        PatchOperation::Add(AddOperation { path, value })
    };
    json_patch::patch(document, &[set])
        .map_err(|_| refuse("there is nothing that could hold this value"))
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
    fn add_and_replace_both_set() {
        let list = json!([1, 2]);
        check(
            json!([{"op": "replace", "path": "/name", "value": "n"}, {"op": "add", "path": "/name", "value": "m"}]),
            Ok(json!({"extra": {"a": 1, "list": list}, "name": "m"})),
        );
        check(
            json!([{"op": "replace", "path": "/extra/b", "value": 2}, {"op": "add", "path": "/extra/a", "value": null}]),
            Ok(json!({"extra": {"a": null, "b": 2, "list": list}, "name": null})),
        );
        check(
            json!([{"op": "replace", "path": "/extra/list/0", "value": 9}, {"op": "add", "path": "/extra/list/-", "value": 3}]),
            Ok(json!({"extra": {"a": 1, "list": [9, 2, 3]}, "name": null})),
        );
    }

    #[test]
    fn remove_gives_the_default_back() {
        check(
            json!([{"op": "remove", "path": "/extra"}]),
            Ok(json!({"extra": null, "name": null})),
        );
        check(
            json!([{"op": "remove", "path": "/extra/zz"}]),
            Err("/extra/zz: there is no such value to remove"),
        );
    }

    #[test]
    fn what_cannot_be_done_is_named() {
        check(
            json!([{"op": "add", "path": "/extra/x/y", "value": 1}]),
            Err("/extra/x/y: there is nothing that could hold this value"),
        );
        check(json!([{"op": "add", "path": "/name"}]), Err("/name: the operation has no value"));
        check(
            json!([{"op": "add", "path": "name", "value": 1}]),
            Err("path: \"name\" does not begin with a slash and a field"),
        );
    }

    #[test]
    fn what_would_tell_secrets_is_not_an_operation() {
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
