use jiff::Timestamp;
use serde_json::json;
use uuid::Uuid;

use super::*;
use crate::{Driver, NodeUuid, PortUuid};

const PORT: &str = "00000000-0000-0000-0000-000000000000";

fn target() -> RuleTarget {
    let mut node = Node::new(NodeUuid::nil(), Driver::Redfish, Timestamp::UNIX_EPOCH);
    let properties = json!({"cpus": 4, "capabilities": "gpu:true,boot_mode:uefi", "list": ["a"]});
    node.properties = properties.as_object().unwrap().clone();
    node.traits = ["CUSTOM_OLD".to_owned()].into();
    let address = "52:54:00:00:00:0a".parse().unwrap();
    let port = Port::new(PortUuid::nil(), node.id, address, Timestamp::UNIX_EPOCH);
    let plugin_data = json!({"root_disk": {"name": "sda"}, "list": [1], "text": "x"});
    let plugin_data = plugin_data.as_object().unwrap().clone();
    RuleTarget { node, ports: vec![port], plugin_data, logs: Vec::new() }
}

/// Performs an action on [`target`].
#[track_caller]
fn perform(target: &mut RuleTarget, action: Value) -> Result<(), Stop> {
    let action: RuleAction = serde_json::from_value(action).unwrap();
    action.check_form().unwrap();
    let inventory = json!({"cpu": {"count": 8}, "vendor": "ACME", "names": ["a", "b"]});
    action.perform(target, &inventory, &mut |_| Ok(()))
}

/// Checks what `shown` shows after an action with these arguments, or the problem.
#[track_caller]
fn check(op: &str, args: Value, shown: impl Fn(&RuleTarget) -> Value, want: Value) {
    let mut target = target();
    let got = match perform(&mut target, json!({"op": op, "args": args})) {
        Ok(()) => shown(&target),
        Err(Stop::Problem(problem)) => problem.to_string().into(),
        Err(Stop::Asked(message)) => format!("asked: {message}").into(),
    };
    assert_eq!(got, want, "{op}");
}

#[track_caller]
fn node(op: &str, args: Value, field: &str, want: Value) {
    let read = |target: &RuleTarget| target.node.read(field).unwrap();
    check(op, args, read, want);
}

#[test]
fn attributes_of_the_node_are_set() {
    let set = "set-attribute";
    let to = |path: &str, value: Value| json!({"path": path, "value": value});
    for (path, value, field, want) in [
        (
            "resource_class",
            json!("{inventory[vendor]}-large"),
            "resource_class",
            json!("ACME-large"),
        ),
        ("name", json!("r1u1"), "name", json!("r1u1")),
        ("name", json!("a b"), "name", json!("name: \"a b\" is not a valid name: ")),
        ("name", json!("detail"), "name", json!("name: \"detail\" is reserved")),
        ("name", json!("validate"), "name", json!("name: \"validate\" is reserved")),
        ("name", json!(""), "name", json!("name: must not be empty")),
        ("description", json!(""), "description", json!(null)),
        (
            "description",
            json!(5),
            "description",
            json!("description: must be a string, not a number"),
        ),
        (
            "description",
            json!("a\0b"),
            "description",
            json!("description: contains a NUL character"),
        ),
        ("owner", json!("x".repeat(255)), "owner", json!("x".repeat(255))),
        ("owner", json!("x".repeat(256)), "owner", json!("owner: is longer than 255 bytes")),
        ("conductor_group", json!("A-b"), "conductor_group", json!("a-b")),
        (
            "conductor_group",
            json!("a b"),
            "conductor_group",
            json!("conductor_group: may only contain letters, digits, '-', '_' and '.'"),
        ),
        ("automated_clean", json!("False"), "automated_clean", json!(false)),
        ("automated_clean", json!("Yes"), "automated_clean", json!(true)),
        (
            "automated_clean",
            json!("maybe"),
            "automated_clean",
            json!("automated_clean: must be true or false"),
        ),
        ("disable_power_off", json!("y"), "disable_power_off", json!(true)),
        ("retired", json!(true), "retired", json!(true)),
        (
            "retired_reason",
            json!("old"),
            "retired_reason",
            json!("retired_reason: can only be set while retired is true"),
        ),
        ("shard", json!("s1"), "shard", json!("s1")),
        ("extra", json!({"a": ["{inventory[cpu][count]}"]}), "extra", json!({"a": ["8"]})),
        ("extra", json!("text"), "extra", json!("extra: must be an object, not a string")),
        ("/extra/a/b", json!(1), "extra", json!({"a": {"b": 1}})),
        ("extra.a.b", json!(null), "extra", json!({"a": {"b": null}})),
        (
            "driver_info/ipmi_address",
            json!("10.0.0.1"),
            "driver_info",
            json!({"ipmi_address": "10.0.0.1"}),
        ),
        ("instance_info/x", json!(true), "instance_info", json!({"x": true})),
        (
            "properties/cpus/x",
            json!(1),
            "properties",
            json!("properties.cpus.x: cpus is no object"),
        ),
        (
            "resource_class/x",
            json!(1),
            "resource_class",
            json!("resource_class.x: resource_class is no object"),
        ),
        (
            "extra/x",
            json!("{inventory[gpu]}"),
            "extra",
            json!("{inventory[gpu]} is not in the data"),
        ),
        ("extra/x", json!("{not a reference}"), "extra", json!({"x": "{not a reference}"})),
        ("", json!(1), "extra", json!("path: \"\" is no path of 1 to 16 names")),
    ] {
        let (args, name_problem) = (to(path, value), want == "name: \"a b\" is not a valid name: ");
        if name_problem {
            let mut target = target();
            let refused = perform(&mut target, json!({"op": set, "args": args})).unwrap_err();
            assert!(matches!(refused, Stop::Problem(why) if why.to_string().starts_with("name: ")));
        } else {
            node(set, args, field, want);
        }
    }
    node(set, json!(["extra/a", 1]), "extra", json!({"a": 1}));
    node(set, json!({"path": 1, "value": 1}), "extra", json!("path: must be text"));
}

#[test]
fn fields_that_no_request_sets_are_refused() {
    for field in
        ["uuid", "driver", "provision_state", "boot_interface", "maintenance", "traits", "no"]
    {
        let want = json!(format!("{field}: a rule cannot set this field"));
        for op in ["set-attribute", "extend-attribute"] {
            node(op, json!({"path": format!("{field}/x"), "value": 1}), "extra", want.clone());
        }
        node("del-attribute", json!({"path": field}), "extra", want);
    }
}

#[test]
fn attributes_of_the_node_are_extended_and_deleted() {
    let extend = |path: &str, value: &str, unique: bool| json!({"path": path, "value": value, "unique": unique});
    let list =
        |target: &RuleTarget| target.node.properties.get("list").cloned().unwrap_or_default();
    check("extend-attribute", extend("properties/list", "a", false), list, json!(["a", "a"]));
    check("extend-attribute", extend("properties/list", "a", true), list, json!(["a"]));
    check("extend-attribute", json!(["properties/list", "b", true]), list, json!(["a", "b"]));
    node("extend-attribute", extend("extra/new", "b", false), "extra", json!({"new": ["b"]}));
    node(
        "extend-attribute",
        extend("properties/cpus", "b", false),
        "extra",
        json!("properties.cpus: is no list"),
    );
    node(
        "extend-attribute",
        extend("description", "b", false),
        "extra",
        json!("description: is no list"),
    );

    check("del-attribute", json!({"path": "properties/list"}), list, json!(null));
    node("del-attribute", json!({"path": "properties"}), "properties", json!({}));
    node("del-attribute", json!({"path": "extra/x"}), "extra", json!("extra.x: is not set"));
}

#[test]
fn a_field_has_a_maximum_size() {
    let mut target = target();
    let long = "x".repeat(limits::TEXT - 8);
    let add = json!({"op": "extend-attribute", "args": {"path": "extra/x", "value": long}});
    for _ in 0..3 {
        perform(&mut target, add.clone()).unwrap();
    }
    perform(&mut target, add.clone()).unwrap();
    let refused = perform(&mut target, add).unwrap_err();
    assert!(
        matches!(refused, Stop::Problem(why) if why.to_string() == "extra: is larger than 262144 bytes")
    );
}

#[test]
fn capabilities_are_set_and_unset() {
    let shown = |target: &RuleTarget| target.node.properties["capabilities"].clone();
    let set = |name: &str, value: Value| json!({"name": name, "value": value});
    check(
        "set-capability",
        set("cpus", json!("{inventory[cpu][count]}")),
        shown,
        json!("gpu:true,boot_mode:uefi,cpus:8"),
    );
    check("set-capability", set("gpu", json!(false)), shown, json!("boot_mode:uefi,gpu:False"));
    check(
        "set-capability",
        set("a:b", json!(1)),
        shown,
        json!("name: must be the name of a capability, without , and :"),
    );
    check(
        "set-capability",
        set("a", json!("b,c:d")),
        shown,
        json!("value: the capability a cannot have a comma in its value"),
    );
    check("unset-capability", json!({"name": "gpu"}), shown, json!("boot_mode:uefi"));
    check("unset-capability", json!({"name": "none"}), shown, json!("gpu:true,boot_mode:uefi"));
    let mut broken = target();
    broken.node.properties.insert("capabilities".to_owned(), json!({}));
    let refused = perform(&mut broken, json!({"op": "unset-capability", "args": ["gpu"]}));
    let want = RuleProblem::new("properties.capabilities: is no text");
    assert_eq!(refused, Err(Stop::Problem(want)));
}

#[test]
fn traits_are_added_and_removed() {
    node("add-trait", json!({"name": "CUSTOM_GPU"}), "traits", json!(["CUSTOM_GPU", "CUSTOM_OLD"]));
    node("add-trait", json!({"name": "CUSTOM_OLD"}), "traits", json!(["CUSTOM_OLD"]));
    node("add-trait", json!({"name": 1}), "traits", json!("name: must be text"));
    node("remove-trait", json!({"name": "CUSTOM_OLD"}), "traits", json!([]));
    node("remove-trait", json!({"name": "CUSTOM_NONE"}), "traits", json!(["CUSTOM_OLD"]));
    let mut full = target();
    let refused = perform(&mut full, json!({"op": "add-trait", "args": ["gpu"]})).unwrap_err();
    assert!(
        matches!(refused, Stop::Problem(why) if why.to_string().starts_with("name: \"gpu\" is not a valid trait"))
    );
    let all: Vec<String> = (1..50).map(|n| format!("CUSTOM_{n}")).collect();
    let args = json!({"name": "{item}"});
    perform(&mut full, json!({"op": "add-trait", "args": args, "loop": all})).unwrap();
    let refused = perform(&mut full, json!({"op": "add-trait", "args": ["CUSTOM_50"]}));
    let want = RuleProblem::new("traits: a node has at most 50 traits");
    assert_eq!(refused, Err(Stop::Problem(want)));
}

#[test]
fn plugin_data_is_set_extended_and_unset() {
    let shown = |target: &RuleTarget| Value::Object(target.plugin_data.clone());
    let of = |path: &str, value: Value| json!({"path": path, "value": value});
    check(
        "set-plugin-data",
        of("root_disk.size", json!("{inventory[cpu][count]}")),
        shown,
        json!({"root_disk": {"name": "sda", "size": "8"}, "list": [1], "text": "x"}),
    );
    check("set-plugin-data", of("text.a", json!(1)), shown, json!("text.a: text is no object"));
    let more = json!({"path": "list", "value": 1, "unique": true, "plugin_data": {}});
    check("extend-plugin-data", more, |it| it.plugin_data["list"].clone(), json!([1]));
    check(
        "extend-plugin-data",
        of("list", json!(2)),
        |it| it.plugin_data["list"].clone(),
        json!([1, 2]),
    );
    check(
        "extend-plugin-data",
        of("new", json!(2)),
        |it| it.plugin_data["new"].clone(),
        json!([2]),
    );
    check("extend-plugin-data", of("text", json!(2)), shown, json!("text: is no list"));
    check(
        "unset-plugin-data",
        json!({"path": "root_disk.name"}),
        shown,
        json!({"list": [1], "text": "x"}),
    );
    let mut large = target();
    perform(&mut large, json!({"op": "set-plugin-data", "args": ["root_disk.size", 8]})).unwrap();
    perform(&mut large, json!({"op": "unset-plugin-data", "args": ["root_disk.name"]})).unwrap();
    assert_eq!(large.plugin_data["root_disk"], json!({"size": 8}));
    perform(&mut large, json!({"op": "set-plugin-data", "args": ["empty", {}]})).unwrap();
    perform(&mut large, json!({"op": "unset-plugin-data", "args": ["empty.none"]})).unwrap();
    assert_eq!(large.plugin_data["empty"], json!({}), "only what a removal empties goes away");
    check("unset-plugin-data", json!({"path": "list"}), |it| it.plugin_data.len().into(), json!(2));
    check(
        "unset-plugin-data",
        json!({"path": "none.x"}),
        |it| it.plugin_data.len().into(),
        json!(3),
    );
}

#[test]
fn attributes_of_a_port_are_changed() {
    let shown = |field: &'static str| move |it: &RuleTarget| it.ports[0].read(field).unwrap();
    let of =
        |id: &str, path: &str, value: Value| json!({"port_id": id, "path": path, "value": value});
    let op = "set-port-attribute";
    check(
        op,
        of(PORT, "physical_network", json!("net1")),
        shown("physical_network"),
        json!("net1"),
    );
    check(op, of("52:54:00:00:00:0A", "extra/a", json!(1)), shown("extra"), json!({"a": 1}));
    check(op, of(PORT, "pxe_enabled", json!("no")), shown("pxe_enabled"), json!(false));
    check(
        op,
        of(PORT, "is_smartnic", json!(1)),
        shown("extra"),
        json!("is_smartnic: must be true or false, not a number"),
    );
    check(
        op,
        of(PORT, "address", json!("x")),
        shown("extra"),
        json!("address: a rule cannot set this field"),
    );
    check(
        op,
        of("none", "extra/a", json!(1)),
        shown("extra"),
        json!("port_id: the node has no port \"none\""),
    );
    check(
        "extend-port-attribute",
        of(PORT, "extra/a", json!(1)),
        shown("extra"),
        json!({"a": [1]}),
    );
    check(
        "del-port-attribute",
        json!({"port_id": PORT, "path": "extra"}),
        shown("extra"),
        json!({}),
    );
    check(
        "del-port-attribute",
        json!([PORT, "extra/a"]),
        shown("extra"),
        json!("extra.a: is not set"),
    );

    let mut grouped = target();
    grouped.ports[0].portgroup = Some(Uuid::nil());
    let refused =
        perform(&mut grouped, json!({"op": op, "args": of(PORT, "physical_network", json!("x"))}));
    let want = format!("physical_network: the port is in the port group {PORT}");
    assert_eq!(refused, Err(Stop::Problem(RuleProblem::new(want))));
}

#[test]
fn messages_fail_the_inspection_or_are_logged() {
    let fail = json!({"msg": "no\nmemory {inventory[vendor]}"});
    check("fail", fail, |_| Value::Null, json!("asked: nomemory {inventory[vendor]}"));
    check("fail", json!({"msg": 5}), |_| Value::Null, json!("asked: 5"));
    let logged = |it: &RuleTarget| format!("{:?} {}", it.logs[0].level, it.logs[0].text).into();
    check("log", json!({"msg": "{inventory[vendor]}"}), logged, json!("Info ACME"));
    check(
        "log",
        json!({"msg": "{inventory[gpu]}", "level": "CRITICAL"}),
        logged,
        json!("Error {inventory[gpu]}"),
    );
    check("log", json!(["a", "debug"]), logged, json!("Debug a"));
    check("log", json!(["a", "info"]), logged, json!("Info a"));
    check("log", json!(["a", "warning"]), logged, json!("Warning a"));
    let why = json!("level: must be debug, info, warning, error or critical");
    check("log", json!(["a", "loud"]), logged, why.clone());
    check("log", json!(["a", 1]), logged, why);
}

#[test]
fn a_loop_performs_the_action_for_each_item() {
    let mut it = target();
    let items = json!([
        {"path": "extra/vendor", "value": "{inventory[vendor]}"},
        {"path": "extra/cpus", "value": "{inventory[cpu][count]}"},
    ]);
    let args = json!({"path": "{item[path]}", "value": "{item[value]}"});
    perform(&mut it, json!({"op": "set-attribute", "args": args, "loop": items})).unwrap();
    assert_eq!(Value::Object(it.node.extra.clone()), json!({"vendor": "ACME", "cpus": "8"}));
    let one = json!({"name": "CUSTOM_A"});
    perform(&mut it, json!({"op": "add-trait", "args": ["{item[name]}"], "loop": one})).unwrap();
    assert!(it.node.traits.contains("CUSTOM_A"));
    let empty = json!({"op": "fail", "args": ["once"], "loop": []});
    assert_eq!(perform(&mut it, empty), Err(Stop::Asked("once".to_owned())));
}

#[test]
fn a_malformed_action_is_refused_by_its_name() {
    let refused = |action: Value, want: &str| {
        let got = serde_json::from_value::<RuleAction>(action).map_err(|why| why.to_string());
        let got = got.and_then(|it| it.check_form().map_err(|why| why.to_string()));
        assert!(got.as_ref().is_err_and(|why| why.starts_with(want)), "{got:?}");
    };
    refused(
        json!({"op": "api-call", "args": {"url": "x"}}),
        "the action \"api-call\" is not supported; the actions are fail, log,",
    );
    refused(json!({"op": "fail"}), "missing field `args`");
    refused(json!({"op": "fail", "args": {}}), "args.msg: is required");
    refused(
        json!({"op": "fail", "args": {"msg": 1, "color": 1}}),
        "args: unknown argument \"color\"",
    );
    refused(
        json!({"op": "set-attribute", "args": ["a", 1, 2]}),
        "args: there is no argument for the value 2",
    );
    refused(json!({"op": "fail", "args": ["x"], "multiple": "any"}), "unknown field `multiple`");
    refused(json!({"op": "fail", "args": ["x"], "loop": 5}), "loop: must be a list or an object");
    for op in ActionOperator::ALL {
        assert_eq!(ActionOperator::try_from(String::from(*op)), Ok(*op));
    }
}
