use serde_json::json;

use super::*;

fn rule(sensitive: bool) -> InspectionRule {
    InspectionRule {
        description: Some("a rule".to_owned()),
        priority: 10,
        sensitive,
        conditions: vec![serde_json::from_value(json!({"op": "!eq", "args": [[1, 2]]})).unwrap()],
        actions: vec![serde_json::from_value(json!({"op": "fail", "args": {"msg": "x"}})).unwrap()],
        sealed: None,
    }
}

#[test]
fn a_rule_is_stored_with_the_operations_of_a_sensitive_one_under_a_secret_key() {
    let operations = json!({
        "conditions": [{"op": "!eq", "args": [[1, 2]]}],
        "actions": [{"op": "fail", "args": {"msg": "x"}}],
    });
    for (sensitive, body) in [(false, operations.clone()), (true, json!({"secret": operations}))] {
        let stored = serde_json::to_value(rule(sensitive)).unwrap();
        assert_eq!(stored, json!({"description": "a rule", "priority": 10, "body": body}));
        assert_eq!(serde_json::from_value::<InspectionRule>(stored).unwrap(), rule(sensitive));
    }
    assert!(crate::is_secret("secret") && !crate::is_secret("conditions"));
}

#[test]
fn a_sealed_rule_stays_sealed() {
    let stored = json!({"priority": 0, "body": {"secret": "sealed:1:abc"}});
    let read: InspectionRule = serde_json::from_value(stored.clone()).unwrap();
    assert!(read.sensitive && read.actions.is_empty());
    assert_eq!(serde_json::to_value(read).unwrap(), stored);
}
