//! The loop of a condition or an action, which repeats it for each of its items.

use serde_json::Value;

use super::limits;
use super::problem::RuleProblem;

/// Whether a loop is absent: as in Ironic, an empty loop counts as none.
pub(super) fn is_no_loop(items: &Value) -> bool {
    match items {
        Value::Array(items) => items.is_empty(),
        Value::Object(item) => item.is_empty(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    }
}

/// Returns the items of a loop; an object is a loop with one item.
pub(super) fn loop_items(items: &Value) -> &[Value] {
    match items {
        Value::Array(items) => items,
        Value::Object(_) => std::slice::from_ref(items),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => &[],
    }
}

/// Checks the form of a loop. A loop that is absent is null.
pub(super) fn check_loop(items: &Value) -> Result<(), RuleProblem> {
    match items {
        Value::Array(items) if items.len() > limits::LOOP_ITEMS => {
            let most = limits::LOOP_ITEMS;
            Err(RuleProblem::new(format!("loop: at most {most} items are allowed")))
        }
        Value::Null | Value::Array(_) | Value::Object(_) => Ok(()),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            Err(RuleProblem::new("loop: must be a list or an object"))
        }
    }
}
