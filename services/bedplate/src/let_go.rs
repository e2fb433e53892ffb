//! The maintenance by which an import makes Ironic let go of a node.
//!
//! Ironic changes `updated_at` when it puts a node into maintenance, so the reason of the maintenance keeps the earlier time: an interrupted
//! import reads it there when it is repeated.

use serde_json::Value;

use crate::ironic::{Object, word};

/// The beginning of the reason.
const LET_GO: &str = "bedplate import: baremetald takes over this node";
/// Precedes the earlier `updated_at`.
const CHANGED: &str = ", last changed at ";
/// The end of the reason of a node without an `updated_at`.
const UNCHANGED: &str = ", never changed";

/// The reason for the maintenance of `node`, which is not in maintenance yet.
pub(crate) fn let_go_reason(node: &Object) -> String {
    match word(node, "updated_at") {
        "" => format!("{LET_GO}{UNCHANGED}"),
        at => format!("{LET_GO}{CHANGED}{at}"),
    }
}

/// Whether an import has put the node into maintenance.
pub(crate) fn is_let_go(node: &Object) -> bool {
    word(node, "maintenance_reason").starts_with(LET_GO)
}

/// The `updated_at` that the node had before an import put it into maintenance; `None` if the reason does not tell.
pub(crate) fn updated_before(node: &Object) -> Option<Value> {
    let rest = word(node, "maintenance_reason").strip_prefix(LET_GO)?;
    match rest.strip_prefix(CHANGED) {
        Some(at) => Some(at.into()),
        None => (rest == UNCHANGED).then_some(Value::Null),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn with(field: &str, value: Value) -> Object {
        Object::from_iter([(field.to_owned(), value)])
    }

    #[test]
    fn the_reason_keeps_the_time_of_the_last_change() {
        for at in [json!("2026-01-02T03:04:05+00:00"), Value::Null] {
            let reason = let_go_reason(&with("updated_at", at.clone()));
            let node = with("maintenance_reason", reason.into());
            assert!(is_let_go(&node));
            assert_eq!(updated_before(&node), Some(at));
        }
    }

    #[test]
    fn other_reasons_keep_no_time() {
        let earlier = with("maintenance_reason", LET_GO.into());
        assert!(is_let_go(&earlier));
        assert_eq!(updated_before(&earlier), None);
        let by_operator = with("maintenance_reason", "fan".into());
        assert!(!is_let_go(&by_operator));
        assert_eq!(updated_before(&by_operator), None);
    }
}
