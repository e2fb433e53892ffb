//! Root device hints, which choose the disk for the image, with the names and operators of Ironic (`ironic/common/utils.py`,
//! `oslo_utils/specs_matcher.py`).
//!
//! A hint is a property of a disk and a condition: `{"size": ">= 100", "vendor": "s== ATA"}`. Text is compared without regard to case, and
//! sizes are in GiB. All hints have to match.

use serde_json::{Map, Value};

use crate::Disk;

/// The reason why hints are not valid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HintRefused {
    /// The hint names an unknown property.
    #[error("the root device hint {0:?} names no property of a disk")]
    Unknown(String),
    /// The hint's value cannot be compared with the property.
    #[error("the root device hint {name} cannot be {value}: {problem}")]
    Value { name: String, value: String, problem: &'static str },
}

/// Hints that can be compared with disks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RootDeviceHints(Vec<Hint>);

#[derive(Clone, Debug, PartialEq)]
enum Hint {
    Text(TextProperty, TextCondition),
    /// The size in GiB.
    Size(NumberCondition),
    Rotational(bool),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TextProperty {
    Name,
    Serial,
    Wwn,
    WwnWithExtension,
    WwnVendorExtension,
    Model,
    Vendor,
    Hctl,
    ByPath,
    Transport,
}

#[derive(Clone, Debug, PartialEq)]
enum TextCondition {
    Compare(Comparison, String),
    Number(NumberCondition),
    Contains(Vec<String>),
    AnyOf(Vec<String>),
}

#[derive(Clone, Debug, PartialEq)]
enum NumberCondition {
    Compare(Comparison, f64),
    AnyOf(Vec<f64>),
    /// The bounds, each with whether it belongs to the range.
    Range((f64, bool), (f64, bool)),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// Operators, longer ones before their beginnings. The second part is true for an operator of text.
const COMPARISONS: &[(&str, bool, Comparison)] = &[
    ("s==", true, Comparison::Equal),
    ("s!=", true, Comparison::NotEqual),
    ("s<=", true, Comparison::LessOrEqual),
    ("s<", true, Comparison::Less),
    ("s>=", true, Comparison::GreaterOrEqual),
    ("s>", true, Comparison::Greater),
    ("==", false, Comparison::Equal),
    ("!=", false, Comparison::NotEqual),
    ("<=", false, Comparison::LessOrEqual),
    ("<", false, Comparison::Less),
    (">=", false, Comparison::GreaterOrEqual),
    (">", false, Comparison::Greater),
    // A single `=` has always meant "at least".
    ("=", false, Comparison::GreaterOrEqual),
];

impl Comparison {
    fn holds<T: PartialOrd + ?Sized>(self, found: &T, wanted: &T) -> bool {
        match self {
            Comparison::Equal => found == wanted,
            Comparison::NotEqual => found != wanted,
            Comparison::Less => found < wanted,
            Comparison::LessOrEqual => found <= wanted,
            Comparison::Greater => found > wanted,
            Comparison::GreaterOrEqual => found >= wanted,
        }
    }
}

impl TextProperty {
    fn of(self, disk: &Disk) -> Option<&str> {
        match self {
            TextProperty::Name => Some(&disk.name),
            TextProperty::Serial => disk.serial.as_deref(),
            TextProperty::Wwn => disk.wwn.as_deref(),
            TextProperty::WwnWithExtension => disk.wwn_with_extension.as_deref(),
            TextProperty::WwnVendorExtension => disk.wwn_vendor_extension.as_deref(),
            TextProperty::Model => disk.model.as_deref(),
            TextProperty::Vendor => disk.vendor.as_deref(),
            TextProperty::Hctl => disk.hctl.as_deref(),
            TextProperty::ByPath => disk.by_path.as_deref(),
            TextProperty::Transport => disk.tran.as_deref(),
        }
    }
}

impl RootDeviceHints {
    /// Reads hints.
    ///
    /// # Errors
    ///
    /// Names the first hint that is not valid.
    pub fn parse(hints: &Map<String, Value>) -> Result<Self, HintRefused> {
        let read = hints.iter().map(|(name, value)| Hint::parse(name, value));
        read.collect::<Result<_, _>>().map(RootDeviceHints)
    }

    /// Whether there are no hints.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a disk matches all hints.
    pub fn match_disk(&self, disk: &Disk) -> bool {
        self.0.iter().all(|hint| hint.matches(disk))
    }
}

impl Hint {
    fn parse(name: &str, value: &Value) -> Result<Hint, HintRefused> {
        let refuse = |problem| HintRefused::Value {
            name: name.to_owned(),
            value: value.to_string().chars().take(80).collect(),
            problem,
        };
        let property = match name {
            "size" => return number(value).map(Hint::Size).map_err(refuse),
            "rotational" => return flag(value).map(Hint::Rotational).map_err(refuse),
            "name" => TextProperty::Name,
            "serial" => TextProperty::Serial,
            "wwn" => TextProperty::Wwn,
            "wwn_with_extension" => TextProperty::WwnWithExtension,
            "wwn_vendor_extension" => TextProperty::WwnVendorExtension,
            "model" => TextProperty::Model,
            "vendor" => TextProperty::Vendor,
            "hctl" => TextProperty::Hctl,
            "by_path" => TextProperty::ByPath,
            "tran" => TextProperty::Transport,
            _ => return Err(HintRefused::Unknown(name.chars().take(80).collect())),
        };
        text(value).map(|condition| Hint::Text(property, condition)).map_err(refuse)
    }

    fn matches(&self, disk: &Disk) -> bool {
        match self {
            Hint::Text(property, condition) => {
                let found = property.of(disk).map(|found| found.trim().to_lowercase());
                match (found.filter(|found| !found.is_empty()), condition) {
                    (Some(found), condition) => condition.matches(&found),
                    // An unknown serial number is another than the one that is not wanted.
                    (None, TextCondition::Compare(Comparison::NotEqual, _)) => true,
                    (None, _) => false,
                }
            }
            Hint::Size(condition) => condition.matches(disk.size as f64 / (1_u64 << 30) as f64),
            Hint::Rotational(wanted) => disk.rotational == *wanted,
        }
    }
}

impl TextCondition {
    fn matches(&self, found: &str) -> bool {
        match self {
            TextCondition::Compare(comparison, wanted) => comparison.holds(found, wanted.as_str()),
            TextCondition::Number(condition) => {
                found.parse().is_ok_and(|found| condition.matches(found))
            }
            TextCondition::Contains(words) => words.iter().all(|word| found.contains(&**word)),
            TextCondition::AnyOf(words) => words.iter().any(|word| found == word),
        }
    }
}

impl NumberCondition {
    fn matches(&self, found: f64) -> bool {
        match self {
            NumberCondition::Compare(comparison, wanted) => comparison.holds(&found, wanted),
            NumberCondition::AnyOf(numbers) => numbers.contains(&found),
            NumberCondition::Range((from, with_from), (to, with_to)) => {
                (found > *from || *with_from && found == *from)
                    && (found < *to || *with_to && found == *to)
            }
        }
    }
}

fn text(value: &Value) -> Result<TextCondition, &'static str> {
    let Value::String(value) = value else { return Err("it must be text") };
    let value = value.trim().to_lowercase();
    if let Some(rest) = value.strip_prefix("<in>") {
        return Ok(TextCondition::Contains(vec![not_empty(rest)?]));
    }
    if let Some(rest) = value.strip_prefix("<all-in>") {
        let words = rest.split("<all-in>").flat_map(str::split_whitespace);
        let words: Vec<String> = words.map(str::to_owned).collect();
        return match words.is_empty() {
            true => Err("it is empty"),
            false => Ok(TextCondition::Contains(words)),
        };
    }
    if let Some(rest) = value.strip_prefix("<or>") {
        let words = rest.split("<or>").map(not_empty);
        return Ok(TextCondition::AnyOf(words.collect::<Result<_, _>>()?));
    }
    if value.starts_with("<range-in>") {
        return number(&Value::String(value)).map(TextCondition::Number);
    }
    match operator(&value) {
        Some((true, comparison, rest)) => Ok(TextCondition::Compare(comparison, not_empty(rest)?)),
        Some((false, comparison, rest)) => {
            let wanted = rest.parse::<f64>().ok().filter(|number| number.is_finite());
            let wanted = wanted.ok_or("this operator compares numbers; use s== for text")?;
            Ok(TextCondition::Number(NumberCondition::Compare(comparison, wanted)))
        }
        None => Ok(TextCondition::Compare(Comparison::Equal, not_empty(&value)?)),
    }
}

fn number(value: &Value) -> Result<NumberCondition, &'static str> {
    let value = match value {
        Value::Number(number) => number.to_string(),
        Value::String(text) => text.trim().to_lowercase(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => {
            return Err("it must be a positive whole number, perhaps after an operator");
        }
    };
    let whole = |text: &str| {
        let number = text.trim().parse::<u32>().ok().filter(|number| *number > 0);
        number.map(f64::from).ok_or("it must be a positive whole number, perhaps after an operator")
    };
    if let Some(rest) = value.strip_prefix("<or>") {
        let numbers = rest.split("<or>").map(whole);
        return Ok(NumberCondition::AnyOf(numbers.collect::<Result<_, _>>()?));
    }
    if let Some(rest) = value.strip_prefix("<range-in>") {
        return range(rest)
            .ok_or("a range is written as [ 10 20 ], with ( or ) to leave a bound out");
    }
    match operator(&value) {
        Some((false, comparison, rest)) => Ok(NumberCondition::Compare(comparison, whole(rest)?)),
        Some((true, ..)) => Err("this operator compares text"),
        None => Ok(NumberCondition::Compare(Comparison::Equal, whole(&value)?)),
    }
}

/// Reads `[ 10 20 ]` or `( 10 20 )`.
fn range(text: &str) -> Option<NumberCondition> {
    let mut words = text.split_whitespace();
    let (open, from, to, close) = (words.next()?, words.next()?, words.next()?, words.next()?);
    let (from, to) = (from.parse::<f64>().ok()?, to.parse::<f64>().ok()?);
    let is_sane = words.next().is_none()
        && matches!(open, "[" | "(")
        && matches!(close, "]" | ")")
        && from <= to;
    is_sane.then_some(NumberCondition::Range((from, open == "["), (to, close == "]")))
}

/// Reads a flag as Ironic does (oslo.utils, `bool_from_string` with `strict`).
fn flag(value: &Value) -> Result<bool, &'static str> {
    let text = match value {
        Value::Bool(flag) => return Ok(*flag),
        Value::String(text) => text.trim().to_lowercase(),
        Value::Number(number) => number.to_string(),
        Value::Null | Value::Array(_) | Value::Object(_) => String::new(),
    };
    match text.as_str() {
        "true" | "1" | "yes" | "on" | "t" | "y" => Ok(true),
        "false" | "0" | "no" | "off" | "f" | "n" => Ok(false),
        _ => Err("it must be true or false"),
    }
}

/// Splits a condition into its operator and the value to compare with; `None` if it has no operator.
fn operator(value: &str) -> Option<(bool, Comparison, &str)> {
    COMPARISONS.iter().find_map(|(operator, is_text, comparison)| {
        Some((*is_text, *comparison, value.strip_prefix(operator)?.trim()))
    })
}

fn not_empty(text: &str) -> Result<String, &'static str> {
    match text.trim() {
        "" => Err("it is empty"),
        text => Ok(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn disk() -> Disk {
        Disk {
            name: "/dev/sda".to_owned(),
            size: 1000 << 30,
            model: Some("Samsung SSD 870 ".to_owned()),
            vendor: Some("ATA".to_owned()),
            serial: Some("S5Y2NX0R".to_owned()),
            wwn: Some("0x5002538f31b0a1b2".to_owned()),
            wwn_with_extension: Some("0x5002538f31b0a1b2c3".to_owned()),
            wwn_vendor_extension: Some("0xc3".to_owned()),
            rotational: false,
            hctl: Some("2:0:0:0".to_owned()),
            by_path: Some("/dev/disk/by-path/pci-0000:00:1f.2-ata-1".to_owned()),
            tran: Some("sata".to_owned()),
            ..Disk::default()
        }
    }

    #[track_caller]
    fn check(name: &str, value: Value, want: bool) {
        let hints = Map::from_iter([(name.to_owned(), value.clone())]);
        let hints = RootDeviceHints::parse(&hints).unwrap();
        assert_eq!(hints.match_disk(&disk()), want, "{name}: {value}");
    }

    #[test]
    fn each_operator_of_text_compares_without_regard_to_case() {
        for (value, want) in [
            ("samsung ssd 870", true),
            ("Samsung SSD", false),
            ("s== SAMSUNG SSD 870", true),
            ("s!= samsung ssd 870", false),
            ("s!= other", true),
            ("s< t", true),
            ("s<= samsung ssd 870", true),
            ("s> t", false),
            ("s>= samsung", true),
            ("<in> ssd", true),
            ("<in> hdd", false),
            ("<all-in> ssd 870", true),
            ("<all-in> ssd <all-in> samsung", true),
            ("<all-in> ssd 860", false),
            ("<or> x <or> Samsung SSD 870", true),
            ("<or> x <or> y", false),
            // The text is no number.
            ("== 870", false),
            ("!= 870", false),
        ] {
            check("model", json!(value), want);
        }
    }

    #[test]
    fn each_operator_of_numbers_compares_gib() {
        for (value, want) in [
            (json!(1000), true),
            (json!("1000"), true),
            (json!(999), false),
            (json!("= 999"), true),
            (json!("= 1001"), false),
            (json!("== 1000"), true),
            (json!("!= 1000"), false),
            (json!("< 1000"), false),
            (json!("<= 1000"), true),
            (json!("> 1000"), false),
            (json!(">=1000"), true),
            (json!("<or> 500 <or> 1000"), true),
            (json!("<or> 500"), false),
            (json!("<range-in> [ 1000 2000 ]"), true),
            (json!("<range-in> ( 1000 2000 ]"), false),
            (json!("<range-in> [ 10 1000 )"), false),
            (json!("<range-in> ( 10 1000 ]"), true),
        ] {
            check("size", value, want);
        }
        // As in Ironic, a part of a GiB counts.
        let odd = Disk { size: (1000 << 30) + 1, ..Disk::default() };
        let hints = |value: &str| {
            RootDeviceHints::parse(&Map::from_iter([("size".to_owned(), value.into())])).unwrap()
        };
        assert!(!hints("1000").match_disk(&odd) && hints("> 1000").match_disk(&odd));
    }

    #[test]
    fn each_property_has_a_hint() {
        for (name, value) in [
            ("name", "/dev/sda"),
            ("serial", "s5y2nx0r"),
            ("wwn", "0x5002538F31B0A1B2"),
            ("wwn_with_extension", "0x5002538f31b0a1b2c3"),
            ("wwn_vendor_extension", "0xc3"),
            ("vendor", "ata"),
            ("hctl", "2:0:0:0"),
            ("by_path", "<in> ata-1"),
            ("tran", "sata"),
            ("rotational", "False"),
            ("rotational", "0"),
        ] {
            check(name, json!(value), true);
        }
        check("rotational", json!(true), false);
        check("rotational", json!(0), true);
    }

    #[test]
    fn an_unknown_property_only_differs() {
        let hints = |value: &str| {
            let hints = Map::from_iter([("serial".to_owned(), value.into())]);
            RootDeviceHints::parse(&hints).unwrap().match_disk(&Disk::default())
        };
        assert!(hints("s!= x"));
        for value in ["x", "s== x", "s< x", "<in> x", "<or> x", "== 1", "!= 1"] {
            assert!(!hints(value), "{value}");
        }
    }

    #[test]
    fn all_hints_have_to_match() {
        let parse = |hints: Value| RootDeviceHints::parse(hints.as_object().unwrap()).unwrap();
        assert!(parse(json!({"size": "> 10", "vendor": "ata"})).match_disk(&disk()));
        assert!(!parse(json!({"size": "> 10", "vendor": "x"})).match_disk(&disk()));
        assert!(parse(json!({})).is_empty());
    }

    #[test]
    fn a_hint_that_is_not_valid_is_refused_with_its_name() {
        let positive = "it must be a positive whole number, perhaps after an operator";
        for (name, value, problem) in [
            ("size", json!("big"), positive),
            ("size", json!("> x"), positive),
            ("size", json!(0), positive),
            ("size", json!(-5), positive),
            ("size", json!(1.5), positive),
            ("size", json!("<or> 1 <or>"), positive),
            ("size", json!("<in> 1"), positive),
            ("size", json!([1]), positive),
            ("size", json!("s== 5"), "this operator compares text"),
            (
                "size",
                json!("<range-in> [ 20 10 ]"),
                "a range is written as [ 10 20 ], with ( or ) to leave a bound out",
            ),
            ("rotational", json!("maybe"), "it must be true or false"),
            ("rotational", json!(null), "it must be true or false"),
            ("serial", json!(5), "it must be text"),
            ("serial", json!(" "), "it is empty"),
            ("serial", json!("<in>"), "it is empty"),
            ("serial", json!("<all-in> "), "it is empty"),
            ("serial", json!("<or> a <or>"), "it is empty"),
            ("serial", json!("s=="), "it is empty"),
            ("serial", json!("== abc"), "this operator compares numbers; use s== for text"),
        ] {
            let hints = Map::from_iter([(name.to_owned(), value.clone())]);
            let refused = RootDeviceHints::parse(&hints).unwrap_err().to_string();
            let want = format!("the root device hint {name} cannot be {value}: {problem}");
            assert_eq!(refused, want);
        }
        let refused = RootDeviceHints::parse(json!({"colour": "red"}).as_object().unwrap());
        let want = "the root device hint \"colour\" names no property of a disk";
        assert_eq!(refused.unwrap_err().to_string(), want);
    }

    proptest! {
        #[test]
        fn no_hint_panics(name in "name|size|model|rotational|x", value: String) {
            let hints = Map::from_iter([(name, value.into())]);
            if let Ok(hints) = RootDeviceHints::parse(&hints) {
                hints.match_disk(&disk());
            }
        }
    }
}
