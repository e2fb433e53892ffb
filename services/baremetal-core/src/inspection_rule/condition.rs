//! Conditions of inspection rules: a check of the inventory, the plugin data or the node, which can be inverted and repeated in a loop.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::net::IpAddr;

use regex::{Regex, RegexBuilder};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::arguments::{Signature, signature};
use super::item_loop::{check_loop, is_no_loop, loop_items};
use super::limits;
use super::problem::RuleProblem;
use super::reference::RuleData;
use super::text::text_of;

/// A condition of a rule, in the form in which the API shows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Condition {
    pub op: ConditionOperator,
    /// The arguments: an object, or a list of values.
    pub args: Value,
    /// The items for each of which the condition is checked.
    #[serde(rename = "loop", default, skip_serializing_if = "is_no_loop")]
    pub items: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub multiple: Option<Multiple>,
}

/// Which items of a loop have to meet the condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Multiple {
    Any,
    All,
    /// Any: the loop ends with the first item that meets the condition.
    First,
    Last,
}

/// An operator, which `!` inverts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ConditionOperator {
    pub operator: Operator,
    pub is_inverted: bool,
}

/// Declares the operators with their names in the Bare Metal API and their arguments.
macro_rules! operators {
    ($($(#[$doc:meta])* $variant:ident = $name:literal $required:expr, $optional:expr;)*) => {
        /// An operator of conditions.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Operator {
            $($(#[$doc])* $variant,)*
        }

        impl Operator {
            /// All operators.
            pub const ALL: &'static [Operator] = &[$(Operator::$variant,)*];

            /// Returns the name of the operator in the Bare Metal API.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Operator::$variant => $name,)*
                }
            }

            fn signature(self) -> Signature {
                match self {
                    $(Operator::$variant => signature($required, $optional),)*
                }
            }
        }
    };
}

operators! {
    /// Each of the values equals the next one.
    Equal = "eq" &["values"], &["force_strings"];
    /// Each of the values is less than the next one.
    Less = "lt" &["values"], &["force_strings"];
    /// Each of the values is greater than the next one.
    Greater = "gt" &["values"], &["force_strings"];
    /// The value is empty or null, or the inventory lacks it.
    Empty = "is-empty" &["value"], &[];
    /// The address is in the subnet.
    InSubnet = "in-net" &["address", "subnet"], &[];
    /// The whole value matches the regular expression.
    Matches = "matches" &["value", "regex"], &[];
    /// A part of the value matches the regular expression.
    Contains = "contains" &["value", "regex"], &[];
    /// The value is one of the values.
    OneOf = "one-of" &["value"], &["values"];
    /// The value is null.
    Null = "is-none" &["value"], &[];
    /// The value is true, yes, or a number other than 0.
    True = "is-true" &["value"], &[];
    /// The value is false, no, null or 0.
    False = "is-false" &["value"], &[];
}

impl TryFrom<String> for ConditionOperator {
    type Error = RuleProblem;

    fn try_from(raw: String) -> Result<Self, RuleProblem> {
        let (name, is_inverted) =
            raw.strip_prefix('!').map_or((&*raw, false), |inverted| (inverted, true));
        let operator = Operator::ALL.iter().find(|it| it.as_str() == name);
        operator.map(|it| ConditionOperator { operator: *it, is_inverted }).ok_or_else(|| {
            let raw: String = raw.chars().take(64).collect();
            let all: Vec<&str> = Operator::ALL.iter().map(|it| it.as_str()).collect();
            let all = all.join(", ");
            RuleProblem::new(format!(
                "the operator {raw:?} does not exist; the operators are {all}, each also with ! before it"
            ))
        })
    }
}

impl From<ConditionOperator> for String {
    fn from(op: ConditionOperator) -> String {
        format!("{}{}", if op.is_inverted { "!" } else { "" }, op.operator.as_str())
    }
}

type Arguments = BTreeMap<&'static str, Value>;

impl Condition {
    /// Checks the condition when a rule is created.
    pub fn check_form(&self) -> Result<(), RuleProblem> {
        check_loop(&self.items)?;
        let args = self.op.operator.signature().named(&self.args)?;
        // The expression of a loop may contain references.
        if let Some(Value::String(pattern)) = args.get("regex")
            && is_no_loop(&self.items)
        {
            regex(pattern, self.op.operator)?;
        }
        Ok(())
    }

    /// Returns whether the data meets the condition. `count` is called for every check, with the size of its arguments.
    pub(super) fn holds(
        &self,
        data: &RuleData<'_>,
        count: &mut impl FnMut(usize) -> Result<(), RuleProblem>,
    ) -> Result<bool, RuleProblem> {
        let mut holds = |item| {
            let data = RuleData { item, ..*data };
            let args = self.arguments(&data, count)?;
            Ok(check(self.op.operator, &args)? != self.op.is_inverted)
        };
        if is_no_loop(&self.items) {
            return holds(None);
        }
        let mut last = false;
        for item in loop_items(&self.items) {
            last = holds(Some(item))?;
            match self.multiple {
                None | Some(Multiple::Any | Multiple::First) if last => return Ok(true),
                Some(Multiple::All) if !last => return Ok(false),
                None | Some(Multiple::Any | Multiple::All | Multiple::First | Multiple::Last) => {}
            }
        }
        Ok(last)
    }

    /// Returns the arguments with their references replaced: those of the values that the operator checks, and in a loop all. A text whose
    /// reference is missing stays as it is, and is null for `is-empty`.
    fn arguments(
        &self,
        data: &RuleData<'_>,
        count: &mut impl FnMut(usize) -> Result<(), RuleProblem>,
    ) -> Result<Arguments, RuleProblem> {
        let operator = self.op.operator;
        let given = operator.signature().named(&self.args)?;
        let is_loop = data.item.is_some();
        let is_empty = operator == Operator::Empty;
        let missing =
            |text: &str, _: &str| Ok(if is_empty { Value::Null } else { Value::from(text) });
        let mut args = Arguments::new();
        let mut size = 0;
        for (name, value) in given {
            let is_expanded = is_loop
                || matches!(name, "value" | "address" | "subnet")
                || given_values(operator, name);
            let value = match is_expanded {
                true => data.expand_all(value, &missing, &mut size)?,
                false => value.clone(),
            };
            args.insert(name, value);
        }
        // A reference becomes text, so the other values of a loop are compared as text as well.
        let compares = matches!(operator, Operator::Equal | Operator::Less | Operator::Greater);
        if is_loop && compares {
            args.insert("force_strings", true.into());
        }
        count(size)?;
        Ok(args)
    }
}

/// Whether `name` is the list that a comparison compares. The values of `one-of` stay as they are.
fn given_values(operator: Operator, name: &str) -> bool {
    name == "values" && operator != Operator::OneOf
}

/// Checks an operator without its inversion.
fn check(operator: Operator, args: &Arguments) -> Result<bool, RuleProblem> {
    let value = || args.get("value").unwrap_or(&Value::Null);
    match operator {
        Operator::Equal => compare(operator, args, |left, right| Ok(is_equal(left, right))),
        Operator::Less => compare(operator, args, |left, right| {
            Ok(order(operator, left, right)? == Some(Ordering::Less))
        }),
        Operator::Greater => compare(operator, args, |left, right| {
            Ok(order(operator, left, right)? == Some(Ordering::Greater))
        }),
        Operator::Empty => Ok(matches!(&*short_text(value()), "" | "None" | "[]" | "{}")),
        Operator::InSubnet => is_in_subnet(args),
        Operator::Matches | Operator::Contains => {
            let Some(Value::String(pattern)) = args.get("regex") else {
                return Err(RuleProblem::new("args.regex: must be text"));
            };
            Ok(regex(pattern, operator)?.is_match(&short_text(value())))
        }
        Operator::OneOf => match args.get("values") {
            None => Ok(false),
            Some(Value::Array(values)) => Ok(values.iter().any(|it| is_equal(it, value()))),
            Some(_) => Err(RuleProblem::new("args.values: must be a list")),
        },
        Operator::Null => Ok(value().is_null()),
        Operator::True => Ok(truth(value(), ["yes", "true"]).unwrap_or(false)),
        Operator::False => Ok(match value() {
            Value::Null => true,
            Value::String(_) => truth(value(), ["no", "false"]).unwrap_or(false),
            other @ (Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
                truth(other, ["", ""]).is_some_and(|truth| !truth)
            }
        }),
    }
}

/// Returns whether a flag or number is true, or a text is one of the words.
fn truth(value: &Value, words: [&str; 2]) -> Option<bool> {
    match value {
        Value::Bool(flag) => Some(*flag),
        Value::Number(number) => Some(number.as_f64() != Some(0.0)),
        Value::String(text) => Some(words.iter().any(|word| text.eq_ignore_ascii_case(word))),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// The value as text. A text that is too long is neither empty nor matched.
fn short_text(value: &Value) -> String {
    text_of(value).unwrap_or_else(|| "…".to_owned())
}

/// Compares each of the values with the next one.
fn compare(
    operator: Operator,
    args: &Arguments,
    holds: impl Fn(&Value, &Value) -> Result<bool, RuleProblem>,
) -> Result<bool, RuleProblem> {
    let Some(Value::Array(values)) = args.get("values") else {
        let operator = operator.as_str();
        return Err(RuleProblem::new(format!("args.values of {operator}: must be a list")));
    };
    let texts: Vec<Value>;
    let values = match args.get("force_strings").and_then(|forced| truth(forced, ["yes", "true"])) {
        Some(true) => {
            texts = values.iter().map(|value| short_text(value).into()).collect();
            &texts
        }
        Some(false) | None => values,
    };
    for pair in values.windows(2) {
        if !holds(&pair[0], &pair[1])? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether two values are equal. As in Ironic, a number never equals a text, but the number 1 equals `true`.
fn is_equal(left: &Value, right: &Value) -> bool {
    match (number(left), number(right)) {
        (Some(left), Some(right)) => left.total_cmp(&right).is_eq() || left == right,
        _ => left == right,
    }
}

/// Orders two texts by their characters, and numbers by their values. A text with a number is ordered as this number if the other value is a
/// number, because references become text.
fn order(operator: Operator, left: &Value, right: &Value) -> Result<Option<Ordering>, RuleProblem> {
    let read = |value: &Value| match value {
        Value::String(text) => text.trim().parse().ok(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            number(value)
        }
    };
    match (left, right) {
        (Value::String(left), Value::String(right)) => Ok(Some(left.cmp(right))),
        _ => match (read(left), read(right)) {
            (Some(left), Some(right)) => Ok(f64::partial_cmp(&left, &right)),
            _ => {
                let shown = |value| short_text(value).chars().take(64).collect::<String>();
                let (operator, left, right) = (operator.as_str(), shown(left), shown(right));
                Err(RuleProblem::new(format!("{operator}: cannot compare {left} with {right}")))
            }
        },
    }
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Bool(flag) => Some(f64::from(u8::from(*flag))),
        Value::Number(number) => number.as_f64(),
        Value::Null | Value::String(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Compiles a regular expression, whose search takes linear time. As in Ironic, `matches` looks from the beginning to the end of the text.
fn regex(pattern: &str, operator: Operator) -> Result<Regex, RuleProblem> {
    if pattern.len() > limits::REGEX {
        let most = limits::REGEX;
        return Err(RuleProblem::new(format!("args.regex: is longer than {most} bytes")));
    }
    let anchored = match (operator == Operator::Matches, pattern.ends_with('$')) {
        (true, true) => format!("^(?:{pattern})"),
        (true, false) => format!("^(?:{pattern}$)"),
        (false, _) => pattern.to_owned(),
    };
    let built = RegexBuilder::new(&anchored).size_limit(limits::COMPILED_REGEX).build();
    built.map_err(|why| {
        let why = why.to_string();
        let last = why.lines().last().unwrap_or_default().trim_start_matches("error: ");
        RuleProblem::new(format!("args.regex: is no regular expression that is supported: {last}"))
    })
}

/// Whether the address is in the subnet, such as `10.0.0.0/8`, `10.0.0.0/255.0.0.0` or a single address.
fn is_in_subnet(args: &Arguments) -> Result<bool, RuleProblem> {
    let text = |name: &str| args.get(name).and_then(Value::as_str).unwrap_or_default();
    let bad = |name: &str| {
        let shown: String = text(name).chars().take(64).collect();
        RuleProblem::new(format!("args.{name}: {shown:?} is no IP address"))
    };
    let address: IpAddr = text("address").parse().map_err(|_| bad("address"))?;
    let subnet = text("subnet");
    let (base, mask) = subnet.split_once('/').map_or((subnet, None), |(it, mask)| (it, Some(mask)));
    let base: IpAddr = base.parse().map_err(|_| bad("subnet"))?;
    let bits = if base.is_ipv4() { 32 } else { 128 };
    let length = match mask {
        None => bits,
        Some(mask) => prefix_length(mask, bits).ok_or_else(|| bad("subnet"))?,
    };
    if address.is_ipv4() != base.is_ipv4() {
        return Ok(false);
    }
    Ok(network(address, bits - length) == network(base, bits - length))
}

/// Reads the length of a prefix, which may also be written as the mask of a network.
fn prefix_length(mask: &str, bits: u32) -> Option<u32> {
    if let Ok(length) = mask.parse::<u32>() {
        return (length <= bits).then_some(length);
    }
    match mask.parse().ok()? {
        IpAddr::V4(mask) if bits == 32 => {
            let ones = mask.to_bits().leading_ones();
            (mask.to_bits().count_ones() == ones).then_some(ones)
        }
        IpAddr::V4(_) | IpAddr::V6(_) => None,
    }
}

/// Returns the bits of the address without its last `host` bits.
fn network(address: IpAddr, host: u32) -> u128 {
    let bits = match address {
        IpAddr::V4(address) => u128::from(address.to_bits()),
        IpAddr::V6(address) => address.to_bits(),
    };
    bits.checked_shr(host).unwrap_or(0)
}

#[cfg(test)]
mod tests {
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
        refused(
            of("matches", "a", r"(a)\1"),
            "args.regex: is no regular expression that is supported",
        );
        refused(of("contains", "a", "((a{99}){99}){99}"), "args.regex: ");
        refused(of("contains", "a", &"a".repeat(5000)), "args.regex: is longer than 4096 bytes");
        check(
            json!({"op": "matches", "args": {"value": "a", "regex": 1}}),
            "args.regex: must be text",
        );
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
            (
                "{inventory[gpu]}",
                "10.0.0.0/8",
                "args.address: \"{inventory[gpu]}\" is no IP address",
            ),
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
        refused(
            json!({"op": "eq", "args": {"values": [], "x": 1}}),
            "args: unknown argument \"x\"",
        );
        refused(
            json!({"op": "is-none", "args": [1, 2]}),
            "args: there is no argument for the value 2",
        );
        refused(json!({"op": "eq", "args": [[]], "invert": true}), "unknown field `invert`");
        refused(json!({"op": "eq", "args": [[]], "multiple": "some"}), "unknown variant `some`");
        refused(
            json!({"op": "eq", "args": [[]], "loop": "x"}),
            "loop: must be a list or an object",
        );
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
}
