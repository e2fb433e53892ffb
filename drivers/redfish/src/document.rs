//! Tolerant access to Redfish resources of real BMCs.
//!
//! Any property may be missing, null, or of another scalar type than the schema says: real BMCs send numbers as strings and booleans as
//! words. A property that cannot be read is `None`, never an error.

use serde_json::Value;

/// The longest text that this driver returns, in characters.
const LONGEST_TEXT: usize = 256;

/// Tolerant access to the properties of a JSON object.
pub(crate) trait Document {
    /// The property `name`; null if it is missing.
    fn at(&self, name: &str) -> &Value;

    /// A text that is not empty, without control characters, and cut to `LONGEST_TEXT`.
    fn text(&self, name: &str) -> Option<String>;

    /// A word of an enumeration; empty if it is missing.
    fn word(&self, name: &str) -> &str;

    /// A finite number, also one that is written as text.
    fn number(&self, name: &str) -> Option<f64>;

    /// A whole number that is not negative.
    fn count(&self, name: &str) -> Option<u64>;

    /// A boolean, also one that is written as a word.
    fn truth(&self, name: &str) -> Option<bool>;

    /// The elements of an array; empty if the property is not an array.
    fn items(&self, name: &str) -> &[Value];

    /// The words of an array; `None` if the property is not an array.
    fn words(&self, name: &str) -> Option<Vec<&str>>;

    /// The target of the reference `name`.
    fn link(&self, name: &str) -> Option<&str>;

    /// The address of this resource itself.
    fn id(&self) -> Option<&str>;
}

impl Document for Value {
    fn at(&self, name: &str) -> &Value {
        self.get(name).unwrap_or(&Value::Null)
    }

    fn text(&self, name: &str) -> Option<String> {
        let text = one_line(self.at(name).as_str()?);
        (!text.is_empty()).then_some(text)
    }

    fn word(&self, name: &str) -> &str {
        self.at(name).as_str().unwrap_or_default()
    }

    fn number(&self, name: &str) -> Option<f64> {
        let value = self.at(name);
        let number = value.as_f64().or_else(|| value.as_str()?.trim().parse().ok())?;
        number.is_finite().then_some(number)
    }

    fn count(&self, name: &str) -> Option<u64> {
        // Whole numbers are parsed as integers first: a float cannot hold every byte of a large disk's size.
        let value = self.at(name);
        let whole = value.as_u64().or_else(|| value.as_str()?.trim().parse().ok());
        whole.or_else(|| self.number(name).filter(|n| *n >= 0.0).map(|n| n as u64))
    }

    fn truth(&self, name: &str) -> Option<bool> {
        let value = self.at(name);
        let word = || match value.as_str()?.to_ascii_lowercase().as_str() {
            "true" => Some(true),
            "false" => Some(false),
            _ => None,
        };
        value.as_bool().or_else(word)
    }

    fn items(&self, name: &str) -> &[Value] {
        self.at(name).as_array().map(Vec::as_slice).unwrap_or_default()
    }

    fn words(&self, name: &str) -> Option<Vec<&str>> {
        Some(self.at(name).as_array()?.iter().filter_map(Value::as_str).collect())
    }

    fn link(&self, name: &str) -> Option<&str> {
        self.at(name).id()
    }

    fn id(&self) -> Option<&str> {
        self.at("@odata.id").as_str().filter(|link| !link.is_empty())
    }
}

/// Returns `raw` on one line, trimmed, without control characters, and cut to `LONGEST_TEXT`.
pub(crate) fn one_line(raw: &str) -> String {
    let printable = raw.chars().map(|c| if c.is_control() { ' ' } else { c });
    let line: String = printable.skip_while(|c| c.is_whitespace()).take(LONGEST_TEXT).collect();
    line.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn scalars_of_the_wrong_type_are_read() {
        let odd = json!({"a": "12", "b": 12.0, "c": "True", "d": 3, "e": "12.5", "f": -1});
        assert_eq!(odd.count("a"), Some(12));
        assert_eq!(odd.count("b"), Some(12));
        assert_eq!(odd.truth("c"), Some(true));
        assert_eq!(odd.text("d"), None);
        assert_eq!(odd.number("e"), Some(12.5));
        assert_eq!(odd.count("f"), None);
    }

    #[test]
    fn a_missing_or_null_property_is_none() {
        let empty = json!({"Null": null, "Links": {"Chassis": null}});
        assert_eq!(empty.text("Null"), None);
        assert_eq!(empty.link("Absent"), None);
        assert!(empty.at("Links").items("Chassis").is_empty());
        assert!(json!(null).items("x").is_empty());
    }

    #[test]
    fn control_characters_are_removed_from_text() {
        let sly = json!({"Model": "  R7\u{1b}[2J\n25 "});
        assert_eq!(sly.text("Model").as_deref(), Some("R7 [2J 25"));
    }

    #[test]
    fn large_capacities_keep_every_byte() {
        let disk = json!({"CapacityBytes": 9_007_199_254_740_993_u64});
        assert_eq!(disk.count("CapacityBytes"), Some(9_007_199_254_740_993));
    }

    proptest! {
        #[test]
        fn any_text_is_bounded(raw: String) {
            let text = one_line(&raw);
            prop_assert!(text.chars().count() <= LONGEST_TEXT);
            prop_assert!(!text.chars().any(char::is_control));
        }
    }
}
