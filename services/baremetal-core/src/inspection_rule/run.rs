//! Applies inspection rules to a machine whose inventory has arrived.

use std::fmt;

use serde_json::{Map, Value};
use uuid::Uuid;

use super::action::{RuleAction, RuleTarget, Stop};
use super::attribute::{check_size, json_size};
use super::problem::RuleProblem;
use super::reference::RuleData;
use super::rule_log::RuleLog;
use super::{InspectionRule, limits};
use crate::{CREDENTIALS, Node, NodeChange, Passwords, Port, State, Stored, check_conductor_group};

/// A machine whose inventory has arrived.
pub struct InspectedMachine<'a> {
    /// The node as it is stored.
    pub before: &'a Node,
    /// The node with the facts of the inventory.
    pub node: Node,
    pub ports: Vec<Port>,
    pub inventory: &'a Value,
    /// All parts of the agent's report besides the inventory.
    pub plugin_data: &'a Value,
    /// The conductor groups that have a conductor.
    pub groups: &'a [String],
}

/// The changes that the rules made.
#[derive(Debug, PartialEq)]
pub struct RuleChanges {
    pub node: Node,
    pub ports: Vec<Port>,
    pub plugin_data: Option<Value>,
    /// The lines that rules write to the log of the service.
    pub logs: Vec<RuleLog>,
}

/// Why a rule ends the inspection.
#[derive(Debug, PartialEq, Eq)]
pub struct RuleFailed {
    pub rule: Uuid,
    cause: Stop,
}

impl std::error::Error for RuleFailed {}

impl fmt::Display for RuleFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rule = self.rule;
        match &self.cause {
            Stop::Asked(message) => {
                write!(f, "the inspection rule {rule} stopped the inspection: {message}")
            }
            Stop::Problem(problem) => write!(f, "the inspection rule {rule} failed: {problem}"),
        }
    }
}

/// Applies the rules by descending priority; rules of one priority in the order in which they are given, which is that of their creation.
///
/// # Errors
///
/// A rule stops the inspection, or an action fails. Nothing of the machine may be written then.
pub fn apply_inspection_rules(
    rules: &[Stored<InspectionRule>],
    machine: InspectedMachine<'_>,
) -> Result<RuleChanges, RuleFailed> {
    let InspectedMachine { before, node, ports, inventory, plugin_data, groups } = machine;
    let stored = StoredMachine { node: before, ports: &ports, groups };
    let known = plugin_data.as_object().cloned().unwrap_or_default();
    let mut target =
        RuleTarget { node, ports: ports.clone(), plugin_data: known.clone(), logs: Vec::new() };
    let plugin_data = limits::FIELD.saturating_add(json_size(&known));
    let mut spent = Spent { runs: 0, texts: 0, plugin_data };
    let mut rules: Vec<&Stored<InspectionRule>> = rules.iter().collect();
    rules.sort_by_key(|rule| std::cmp::Reverse(rule.content.priority));
    for rule in rules {
        let applied = apply(&rule.content, &stored, &mut target, inventory, &mut spent);
        applied.map_err(|cause| RuleFailed { rule: rule.id, cause })?;
    }
    let is_changed = |port: &Port| ports.iter().all(|known| known != port);
    let RuleTarget { node, ports: written, plugin_data, logs } = target;
    let plugin_data = (plugin_data != known).then_some(Value::Object(plugin_data));
    Ok(RuleChanges {
        node,
        ports: written.into_iter().filter(is_changed).collect(),
        plugin_data,
        logs,
    })
}

/// A machine as it is stored, with which its changes are compared.
struct StoredMachine<'a> {
    node: &'a Node,
    ports: &'a [Port],
    groups: &'a [String],
}

/// The use that the rules of an inspection have made of their limits.
struct Spent {
    runs: usize,
    texts: usize,
    /// The most bytes that the plugin data may have.
    plugin_data: usize,
}

impl Spent {
    /// Counts a check or an action, with the size of its arguments.
    fn count(&mut self, size: usize) -> Result<(), RuleProblem> {
        self.runs += 1;
        self.texts += size;
        match self.runs <= limits::RUNS && self.texts <= limits::TEXTS {
            true => Ok(()),
            false => Err(RuleProblem::new(format!(
                "the rules of an inspection may check and perform at most {} conditions and actions, with {} bytes of text",
                limits::RUNS,
                limits::TEXTS
            ))),
        }
    }
}

/// Performs the actions of a rule if the machine meets its conditions.
fn apply(
    rule: &InspectionRule,
    stored: &StoredMachine<'_>,
    target: &mut RuleTarget,
    inventory: &Value,
    spent: &mut Spent,
) -> Result<(), Stop> {
    let most = spent.plugin_data;
    let mut count = |size| spent.count(size);
    let (node, plugin_data) = (&target.node, &target.plugin_data);
    let data = RuleData { node, inventory, plugin_data, item: None };
    for condition in &rule.conditions {
        if !condition.holds(&data, &mut count)? {
            return Ok(());
        }
    }
    for action in &rule.actions {
        action.perform(target, inventory, &mut count)?;
    }
    if rule.actions.iter().any(RuleAction::is_on_plugin_data) {
        check_size("plugin_data", &target.plugin_data, most)?;
    }
    check_node(stored, &target.node)?;
    Ok(check_links(stored.ports, &mut target.ports)?)
}

/// Checks the node by the rules of requests, as if an administrator changed it once it is manageable. A stored BMC password is not sent to an
/// address that a rule sets, unless rules set the password as well.
fn check_node(stored: &StoredMachine<'_>, after: &Node) -> Result<(), RuleProblem> {
    let before = stored.node;
    let manageable = |node: &Node| Node { provision_state: State::Manageable, ..node.clone() };
    let given: Vec<&'static str> = CREDENTIALS
        .iter()
        .map(|credential| credential.password)
        .filter(|key| before.driver_info.get(*key) != after.driver_info.get(*key))
        .collect();
    let change = NodeChange {
        before: &manageable(before),
        after: &manageable(after),
        passwords: Passwords::Given(&given),
        parent: None,
    };
    change.check().map_err(|why| RuleProblem::new(why.to_string()))?;
    if before.conductor_group == after.conductor_group {
        return Ok(());
    }
    let checked = check_conductor_group(&after.conductor_group, stored.groups);
    checked.map_err(|why| RuleProblem::new(why.to_string()))
}

/// Checks the local link connections that the rule changed, as a request would. A rule may set their keys one after another.
fn check_links(stored: &[Port], ports: &mut [Port]) -> Result<(), RuleProblem> {
    for port in ports {
        if stored.iter().any(|known| known.id == port.id && link(known) == link(port)) {
            continue;
        }
        let checked = port.clone().with_checked_link();
        *port = checked.map_err(|why| RuleProblem::new(format!("port {}: {why}", port.id)))?;
    }
    Ok(())
}

fn link(port: &Port) -> (&Map<String, Value>, bool) {
    (&port.local_link_connection, port.is_smartnic)
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde_json::json;

    use super::*;
    use crate::{Driver, LogLevel, NodeUuid, PortUuid, Work, WorkUuid};

    fn node() -> Node {
        let mut node = Node::new(NodeUuid::nil(), Driver::Redfish, Timestamp::UNIX_EPOCH);
        node.provision_state = State::Inspecting;
        node.work = Some(Work::new(WorkUuid::nil(), Vec::new(), Timestamp::UNIX_EPOCH));
        let info = json!({"redfish_address": "https://bmc", "redfish_password": "stored"});
        node.driver_info = info.as_object().unwrap().clone();
        node.resource_class = Some("old".to_owned());
        node
    }

    fn rule(n: u128, priority: u16, conditions: Value, actions: Value) -> Stored<InspectionRule> {
        let content = InspectionRule {
            priority,
            conditions: serde_json::from_value(conditions).unwrap(),
            actions: serde_json::from_value(actions).unwrap(),
            ..InspectionRule::default()
        };
        Stored::new(Uuid::from_u128(n), content, Timestamp::UNIX_EPOCH)
    }

    fn add(text: &str) -> Value {
        json!([{"op": "extend-attribute", "args": ["extra/order", text]}])
    }

    fn run(rules: &[Stored<InspectionRule>]) -> Result<RuleChanges, RuleFailed> {
        let before = node();
        let address = "52:54:00:00:00:01".parse().unwrap();
        let port = Port::new(PortUuid::nil(), before.id, address, Timestamp::UNIX_EPOCH);
        let other = Port { id: PortUuid::from_bytes([1; 16]), ..port.clone() };
        let machine = InspectedMachine {
            before: &before,
            node: before.clone(),
            ports: vec![port, other],
            inventory: &json!({"memory": {"physical_mb": 2048}, "bmc_address": "https://evil"}),
            plugin_data: &json!({"a": 1}),
            groups: &["here".to_owned()],
        };
        apply_inspection_rules(rules, machine)
    }

    #[track_caller]
    fn fails(actions: Value, want: &str) {
        let failed = run(&[rule(7, 0, json!([]), actions)]).unwrap_err();
        assert_eq!(failed.rule, Uuid::from_u128(7));
        let start = "the inspection rule 00000000-0000-0000-0000-000000000007 ";
        let got = failed.to_string();
        assert_eq!(got.strip_prefix(start), Some(want), "{got}");
    }

    #[test]
    fn a_link_that_no_rule_changes_is_not_checked() {
        let address = "52:54:00:00:00:01".parse().unwrap();
        let mut port = Port::new(PortUuid::nil(), NodeUuid::nil(), address, Timestamp::UNIX_EPOCH);
        port.local_link_connection.insert("unknown".to_owned(), 1.into());
        let stored = [port.clone()];
        check_links(&stored, &mut [port.clone()]).unwrap();
        let mut other = port.clone();
        other.id = PortUuid::from_bytes([1; 16]);
        check_links(&[other], &mut [port]).unwrap_err();
    }

    #[test]
    fn rules_run_by_priority_and_then_in_their_order() {
        let small = json!([{"op": "lt", "args": [["{inventory[memory][physical_mb]}", 4096]]}]);
        let large = json!([{"op": "gt", "args": [["{inventory[memory][physical_mb]}", 4096]]}]);
        let rules = [
            rule(1, 0, json!([]), add("c")),
            rule(2, 10, small, add("a")),
            rule(3, 10, json!([]), add("b")),
            rule(4, 20, large, json!([{"op": "fail", "args": ["never"]}])),
        ];
        let changes = run(&rules).unwrap();
        assert_eq!(changes.node.extra["order"], json!(["a", "b", "c"]));
        assert_eq!((changes.ports, changes.plugin_data), (vec![], None));
    }

    #[test]
    fn a_later_rule_sees_what_an_earlier_rule_changed() {
        let first = json!([
            {"op": "set-plugin-data", "args": ["size", "small"]},
            {"op": "set-attribute", "args": ["resource_class", "new"]},
            {"op": "set-port-attribute", "args": ["52:54:00:00:00:01", "extra/x", 1], "loop": [1]},
        ]);
        let seen = json!([
            {"op": "eq", "args": [["{plugin_data[size]}", "small"]]},
            {"op": "eq", "args": [["{node.resource_class}", "new"]]},
        ]);
        let log = json!([{"op": "log", "args": ["{plugin_data[size]}"]}]);
        let changes = run(&[rule(1, 9, json!([]), first), rule(2, 8, seen, log)]).unwrap();
        assert_eq!(changes.logs, [RuleLog { level: LogLevel::Info, text: "small".to_owned() }]);
        assert_eq!(changes.plugin_data, Some(json!({"a": 1, "size": "small"})));
        assert_eq!(changes.ports.len(), 1);
        assert_eq!(changes.node.resource_class.as_deref(), Some("new"));
        assert_eq!(changes.node.provision_state, State::Inspecting);
        assert!(changes.node.work.is_some());
    }

    #[test]
    fn a_failure_names_the_rule_and_the_field() {
        fails(json!([{"op": "fail", "args": ["too small"]}]), "stopped the inspection: too small");
        fails(
            json!([{"op": "set-attribute", "args": ["driver", "ipmi"]}]),
            "failed: driver: a rule cannot set this field",
        );
        fails(
            json!([{"op": "set-attribute", "args": ["lessee", "x"]}, {"op": "set-attribute", "args": ["extra", 1]}]),
            "failed: extra: must be an object, not a number",
        );
    }

    #[test]
    fn a_rule_puts_a_node_only_into_a_group_that_has_a_conductor() {
        let set = |group| json!([{"op": "set-attribute", "args": ["conductor_group", group]}]);
        fails(
            set("far"),
            "failed: conductor_group: no conductor is in group \"far\"; the groups with one are [\"here\"]",
        );
        let changes = run(&[rule(1, 0, json!([]), set("here"))]).unwrap();
        assert_eq!(changes.node.conductor_group, "here");
    }

    #[test]
    fn a_rule_sets_a_complete_local_link_connection_or_none() {
        let port = "52:54:00:00:00:01";
        let set = |key: &str, value: &str| {
            let path = format!("local_link_connection/{key}");
            json!({"op": "set-port-attribute", "args": [port, path, value]})
        };
        let switch = set("switch_id", "0A:1B:2C:3D:4E:5F");
        fails(
            json!([switch]),
            "failed: port 00000000-0000-0000-0000-000000000000: local_link_connection: needs port_id and one of switch_id, hostname, and \
             both vtep-logical-switch and vtep-physical-switch",
        );
        fails(
            json!([switch, set("color", "red")]),
            "failed: port 00000000-0000-0000-0000-000000000000: local_link_connection/color: there is no such key",
        );
        let changes =
            run(&[rule(1, 0, json!([]), json!([switch, set("port_id", "Eth1")]))]).unwrap();
        let want = json!({"switch_id": "0a:1b:2c:3d:4e:5f", "port_id": "Eth1"});
        assert_eq!(json!(changes.ports[0].local_link_connection), want);
    }

    #[test]
    fn a_stored_password_is_not_sent_to_an_address_from_the_inventory() {
        let address = json!({"op": "set-attribute", "args": ["driver_info/redfish_address", "{inventory[bmc_address]}"]});
        let password =
            json!({"op": "set-attribute", "args": ["driver_info/redfish_password", "new"]});
        fails(
            json!([address]),
            "failed: driver_info.redfish_password: send the password again in the same request: redfish_address changes, and the \
             stored password was given for the previous machine",
        );
        let both = run(&[rule(1, 0, json!([]), json!([address, password]))]).unwrap();
        assert_eq!(both.node.driver_info["redfish_address"], "https://evil");
    }

    #[test]
    fn the_work_of_the_rules_is_limited() {
        let items: Vec<u32> = (0..1000).collect();
        let log = json!({"op": "log", "args": ["x"], "loop": items});
        let spent = "failed: the rules of an inspection may check and perform at most 10000 conditions and actions, with 16777216 bytes of text";
        fails(vec![log; 11].into(), spent);
        let long = "x".repeat(60_000);
        fails(json!([{"op": "log", "args": [long], "loop": items}]), spent);
        let more =
            json!({"op": "extend-plugin-data", "args": ["x", long], "loop": [1, 2, 3, 4, 5]});
        fails(
            json!([more]),
            &format!("failed: plugin_data: is larger than {} bytes", (256 << 10) + 7),
        );
    }
}
