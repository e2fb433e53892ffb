//! Values as text, in the form of Ironic, which is Python's: rules compare and search these texts.

use std::fmt::Write;

use serde_json::Value;

use super::limits;
use crate::is_secret;

/// Shown in place of a secret.
pub(super) const MASK: &str = "***";

/// Returns the value as text, with the secrets of objects masked. `None`: the text is longer than a text may be.
pub(super) fn text_of(value: &Value) -> Option<String> {
    let mut out = String::new();
    match value {
        Value::String(text) => out.push_str(text),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            write_quoted(&mut out, value);
        }
    }
    (out.len() <= limits::TEXT).then_some(out)
}

/// Writes the value as it stands within a list: with quotes around text. Stops when the text is too long.
fn write_quoted(out: &mut String, value: &Value) {
    if out.len() > limits::TEXT {
        return;
    }
    match value {
        Value::Null => out.push_str("None"),
        Value::Bool(true) => out.push_str("True"),
        Value::Bool(false) => out.push_str("False"),
        Value::Number(number) => {
            let _ = write!(out, "{number}");
        }
        Value::String(text) => quote(out, text),
        Value::Array(values) => {
            out.push('[');
            for (at, value) in values.iter().enumerate() {
                out.push_str(if at == 0 { "" } else { ", " });
                write_quoted(out, value);
            }
            out.push(']');
        }
        Value::Object(values) => {
            out.push('{');
            for (at, (key, value)) in values.iter().enumerate() {
                out.push_str(if at == 0 { "" } else { ", " });
                quote(out, key);
                out.push_str(": ");
                match is_secret(key) {
                    true => quote(out, MASK),
                    false => write_quoted(out, value),
                }
            }
            out.push('}');
        }
    }
}

fn quote(out: &mut String, text: &str) {
    let mark = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    out.push(mark);
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c == mark => out.extend(['\\', c]),
            c => out.push(c),
        }
    }
    out.push(mark);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_written_as_in_python() {
        for (value, want) in [
            (json!("a'b"), "a'b"),
            (json!(null), "None"),
            (json!(true), "True"),
            (json!(4.0), "4.0"),
            (json!([]), "[]"),
            (json!({}), "{}"),
            (json!([1, "a", null, [false]]), "[1, 'a', None, [False]]"),
            (json!(["it's", "a\"'b\n"]), r#"["it's", 'a"\'b\n']"#),
            (json!({"name": "sda", "bmc_password": "x"}), "{'bmc_password': '***', 'name': 'sda'}"),
        ] {
            assert_eq!(text_of(&value).as_deref(), Some(want));
        }
    }

    #[test]
    fn a_long_text_is_no_text() {
        let longest = "a".repeat(limits::TEXT);
        assert_eq!(text_of(&json!(longest)), Some(longest.clone()));
        assert_eq!(text_of(&json!(format!("{longest}a"))), None);
        assert_eq!(text_of(&json!([longest, longest])), None);
    }
}
