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
        (Some(left), Some(right)) => left == right,
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
mod tests;
