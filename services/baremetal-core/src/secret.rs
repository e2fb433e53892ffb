//! Decides by its key whether a value of a JSON document is secret.

use std::fmt;

use serde_json::{Map, Value};

/// A value is secret if its key contains one of these words.
const WORDS: [&str; 13] = [
    "password",
    "passphrase",
    "passwd",
    "admin_pass",
    "adminpass",
    "new_pass",
    "sys_pswd",
    "secret",
    "token",
    "private_key",
    // A key of oslo.messaging; the URL contains a password.
    "transport_url",
    "configdrive",
    "user_data",
];

/// Returns whether the value of `key` must be masked in views and sealed in the database.
pub fn is_secret(key: &str) -> bool {
    let key = key.as_bytes();
    WORDS.iter().map(|word| word.as_bytes()).any(|word| {
        // Most parts differ in the first letter already.
        let is_word =
            |part: &[u8]| part[0].eq_ignore_ascii_case(&word[0]) && part.eq_ignore_ascii_case(word);
        key.windows(word.len()).any(is_word)
    })
}

/// Prints an object with the values of its secrets masked.
pub(crate) struct Masked<'a>(pub(crate) &'a Map<String, Value>);

impl fmt::Debug for Masked<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut map = f.debug_map();
        for (key, value) in self.0 {
            match value {
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)
                    if !is_secret(key) =>
                {
                    map.entry(key, value)
                }
                Value::Object(inner) if !is_secret(key) => map.entry(key, &Masked(inner)),
                Value::Null
                | Value::Bool(_)
                | Value::Number(_)
                | Value::String(_)
                | Value::Array(_)
                | Value::Object(_) => map.entry(key, &"…"),
            };
        }
        map.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_says_whether_its_value_is_secret() {
        for key in [
            "redfish_password",
            "Agent_TOKEN",
            "configdrive",
            "user_data",
            "snmp_secret",
            "transport_url",
        ] {
            assert!(is_secret(key), "{key}");
        }
        for key in ["redfish_address", "ipmi_username", "image_source", "pass", ""] {
            assert!(!is_secret(key), "{key}");
        }
    }

    #[test]
    fn every_driver_password_is_secret() {
        assert!(crate::CREDENTIALS.iter().all(|credential| is_secret(credential.password)));
    }
}
