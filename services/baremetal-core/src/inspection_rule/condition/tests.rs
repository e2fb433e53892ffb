//! Each operator with values that meet it and values that do not.

use serde_json::json;

use super::*;
use crate::{Driver, Node, NodeUuid};

/// Checks a condition on an inventory; the expected outcome is true, false or a part of the problem.
#[track_caller]
fn check(condition: Value, want: &str) {
    let inventory = json!({
        "cpu": {"count": 8, "architecture": "x86_64", "flags": []},
        "memory": {"physical_mb": 4096}, "bmc_address": "10.1.2.3", "none": null, "on": true,
    });
    let node = Node::new(NodeUuid::nil(), Driver::Redfish, jiff::Timestamp::UNIX_EPOCH);
    let plugin_data = json!({"switch": "leaf-7"});
    let plugin_data = plugin_data.as_object().unwrap();
    let data = RuleData { node: &node, inventory: &inventory, plugin_data, item: None };
    let shown = condition.to_string();
    let condition: Condition = serde_json::from_value(condition).unwrap();
    condition.check_form().unwrap();
    let got = condition.holds(&data, &mut |_| Ok(()));
    let got = got.map_or_else(|problem| problem.to_string(), |holds| holds.to_string());
    assert!(got.contains(want), "{shown}: {got}");
}

#[track_caller]
fn refused(condition: Value, want: &str) {
    let got = serde_json::from_value::<Condition>(condition).map_err(|why| why.to_string());
    let got = got.and_then(|it| it.check_form().map_err(|why| why.to_string()));
    assert!(got.as_ref().is_err_and(|why| why.contains(want)), "{got:?}");
}

#[test]
fn values_are_compared_each_with_the_next() {
    let op = |op: &str, values: Value| json!({"op": op, "args": {"values": values}});
    for (operator, values, want) in [
        ("eq", json!([1, 1.0, true]), "true"),
        ("eq", json!([0.0, -0.0]), "true"),
        ("eq", json!([1, "1"]), "false"),
        ("eq", json!(["{inventory[cpu][count]}", "8"]), "true"),
        ("eq", json!(["{inventory[cpu][count]}", 8]), "false"),
        ("eq", json!(["{inventory[gpu]}", "8"]), "false"),
        ("eq", json!([["a"], ["{inventory[cpu][count]}"]]), "false"),
        ("eq", json!([]), "true"),
        ("!eq", json!(["a", "b"]), "true"),
        ("lt", json!([1, 2, 3]), "true"),
        ("lt", json!([1, 3, 2]), "false"),
        ("lt", json!(["{inventory[memory][physical_mb]}", 8192]), "true"),
        ("lt", json!(["{inventory[memory][physical_mb]}", 800]), "false"),
        ("lt", json!(["4096", "800"]), "true"),
        ("!lt", json!([1, 1]), "true"),
        ("gt", json!([3, 2, 1]), "true"),
        ("gt", json!([2, 2]), "false"),
        ("gt", json!(["{inventory[gpu]}", 1]), "gt: cannot compare {inventory[gpu]} with 1"),
        ("lt", json!([null, 1]), "lt: cannot compare None with 1"),
        ("lt", json!("text"), "args.values of lt: must be a list"),
    ] {
        check(op(operator, values), want);
    }
    let forced = json!({"values": ["{inventory[cpu][count]}", 8], "force_strings": true});
    check(json!({"op": "eq", "args": forced}), "true");
    check(json!({"op": "eq", "args": [["{inventory[cpu][count]}", 8], true]}), "true");
}

#[test]
fn one_value_is_checked() {
    for (operator, value, want) in [
        ("is-empty", json!("{inventory[gpu]}"), "true"),
        ("is-empty", json!("{inventory[cpu][flags]}"), "true"),
        ("is-empty", json!("{inventory[none]}"), "true"),
        ("is-empty", json!("{inventory[cpu][count]}"), "false"),
        ("is-empty", json!({}), "true"),
        ("!is-empty", json!("words"), "true"),
        ("is-none", json!(null), "true"),
        ("is-none", json!("{inventory[none]}"), "false"),
        ("is-none", json!(0), "false"),
        ("is-true", json!("{inventory[on]}"), "true"),
        ("is-true", json!("YES"), "true"),
        ("is-true", json!("1"), "false"),
        ("is-true", json!(2), "true"),
        ("is-true", json!([1]), "false"),
        ("is-false", json!("No"), "true"),
        ("is-false", json!("{inventory[on]}"), "false"),
        ("is-false", json!(0), "true"),
        ("is-false", json!(null), "true"),
        ("is-false", json!(["x"]), "false"),
    ] {
        check(json!({"op": operator, "args": {"value": value}}), want);
    }
    check(
        json!({"op": "one-of", "args": {"value": "{inventory[cpu][count]}", "values": ["4", "8"]}}),
        "true",
    );
    check(json!({"op": "one-of", "args": ["{inventory[cpu][count]}", [8]]}), "false");
    let count = "{inventory[cpu][count]}";
    check(json!({"op": "one-of", "args": [count, [count]]}), "false");
    check(json!({"op": "one-of", "args": {"value": 1}}), "false");
    check(
        json!({"op": "one-of", "args": {"value": 1, "values": 1}}),
        "args.values: must be a list",
    );
}

#[test]
fn expressions_are_matched_and_searched() {
    let of = |op: &str, value: &str, regex: &str| json!({"op": op, "args": {"value": value, "regex": regex}});
    for (operator, value, regex, want) in [
        ("matches", "{inventory[cpu][architecture]}", "x86_.*", "true"),
        ("matches", "{inventory[cpu][architecture]}", "x86", "false"),
        ("matches", "{inventory[cpu][architecture]}", "86_64", "false"),
        ("matches", "{plugin_data[switch]}", "leaf-[0-9]{1,3}$", "true"),
        ("contains", "{inventory[cpu][architecture]}", "86_", "true"),
        ("!contains", "{inventory[cpu][architecture]}", "arm", "true"),
        ("contains", "{inventory[cpu]}", "'count': 8", "true"),
        ("matches", "", "", "true"),
    ] {
        check(of(operator, value, regex), want);
    }
    refused(of("matches", "a", "("), "args.regex: is no regular expression that is supported");
    refused(of("matches", "a", r"(a)\1"), "args.regex: is no regular expression that is supported");
    refused(of("contains", "a", "((a{99}){99}){99}"), "args.regex: ");
    check(of("contains", "a", &"a".repeat(4096)), "false");
    refused(of("contains", "a", &"a".repeat(4097)), "args.regex: is longer than 4096 bytes");
    check(json!({"op": "matches", "args": {"value": "a", "regex": 1}}), "args.regex: must be text");
}

#[test]
fn an_address_is_in_a_subnet() {
    let of = |address: &str, subnet: &str| json!({"op": "in-net", "args": [address, subnet]});
    for (address, subnet, want) in [
        ("{inventory[bmc_address]}", "10.0.0.0/8", "true"),
        ("{inventory[bmc_address]}", "10.1.2.77/255.255.255.0", "true"),
        ("{inventory[bmc_address]}", "10.1.2.3", "true"),
        ("{inventory[bmc_address]}", "10.2.0.0/16", "false"),
        ("10.1.2.3", "0.0.0.0/0", "true"),
        ("fd00::5", "fd00::/64", "true"),
        ("fd00::5", "::/0", "true"),
        ("10.1.2.3", "::/0", "false"),
        ("{inventory[gpu]}", "10.0.0.0/8", "args.address: \"{inventory[gpu]}\" is no IP address"),
        ("10.1.2.3", "10.0.0.0/33", "args.subnet: "),
        ("10.1.2.3", "10.0.0.0/255.0.255.0", "args.subnet: "),
        ("10.1.2.3", "fd00::/255.0.0.0", "args.subnet: "),
    ] {
        check(of(address, subnet), want);
    }
}

#[test]
fn a_loop_checks_each_item() {
    let over = |multiple: Option<&str>, items: Value| {
        let args = json!({"values": ["{inventory[cpu][count]}", "{item}"]});
        let mut it = json!({"op": "eq", "args": args, "loop": items});
        if let Some(multiple) = multiple {
            it["multiple"] = multiple.into();
        }
        it
    };
    for (multiple, items, want) in [
        (None, json!([4, 8, 16]), "true"),
        (None, json!([4, 16]), "false"),
        (Some("any"), json!(["8", "4"]), "true"),
        (Some("all"), json!([8, "8"]), "true"),
        (Some("all"), json!([8, 4]), "false"),
        (Some("all"), json!([4, 8]), "false"),
        (Some("first"), json!([4, 8]), "true"),
        (Some("first"), json!([4]), "false"),
        (Some("last"), json!([4, 8]), "true"),
        (Some("last"), json!([8, 4]), "false"),
    ] {
        check(over(multiple, items), want);
    }
    let one = json!({"path": "{inventory[cpu][count]}", "want": 8});
    let args = json!({"values": ["{item[path]}", "{item[want]}"]});
    check(json!({"op": "eq", "args": args, "loop": one}), "true");
    let items = json!(["arm", "x86"]);
    let args = json!({"value": "{inventory[cpu][architecture]}", "regex": "{item}"});
    check(json!({"op": "contains", "args": args, "loop": items}), "true");
    check(over(Some("all"), vec![8; limits::LOOP_ITEMS].into()), "true");
    let no_loop = json!({"op": "is-none", "args": {"value": null}, "loop": []});
    check(no_loop, "true");
}

#[test]
fn a_malformed_condition_is_refused() {
    refused(json!({"op": "ne", "args": {}}), "the operator \"ne\" does not exist");
    refused(json!({"op": "!!eq", "args": {}}), "the operator \"!!eq\" does not exist");
    refused(json!({"op": "eq"}), "missing field `args`");
    refused(json!({"op": "eq", "args": {}}), "args.values: is required");
    refused(json!({"op": "eq", "args": "x"}), "args: must be an object or a list");
    refused(json!({"op": "eq", "args": {"values": [], "x": 1}}), "args: unknown argument \"x\"");
    refused(json!({"op": "is-none", "args": [1, 2]}), "args: there is no argument for the value 2");
    refused(json!({"op": "eq", "args": [[]], "invert": true}), "unknown field `invert`");
    refused(json!({"op": "eq", "args": [[]], "multiple": "some"}), "unknown variant `some`");
    refused(json!({"op": "eq", "args": [[]], "loop": "x"}), "loop: must be a list or an object");
    let long = vec![Value::Null; limits::LOOP_ITEMS + 1];
    refused(json!({"op": "eq", "args": [[]], "loop": long}), "loop: at most 1000 items");
}

#[test]
fn operators_are_stored_by_their_names() {
    for operator in Operator::ALL {
        for is_inverted in [false, true] {
            let op = ConditionOperator { operator: *operator, is_inverted };
            assert_eq!(ConditionOperator::try_from(String::from(op)), Ok(op));
        }
    }
}
