//! Checks that no object in a JSON text has the same key twice.
//!
//! RFC 8259 §4 leaves open which of two equal keys counts, and parsers differ: a proxy that checks the first value would let pass what
//! serde takes from the last value.

use std::collections::HashSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use crate::ApiError;

/// Refuses with 400 an object that has a key twice, and names the key. A text that is not JSON is left to the parser to refuse.
///
/// # Errors
///
/// The refusal.
pub fn check_unique_keys(text: &[u8]) -> Result<(), ApiError> {
    // Any other error is a syntax error, since `Unique` accepts every kind of value.
    let Err(why) = serde_json::from_slice::<Unique>(text) else { return Ok(()) };
    if !why.is_data() {
        return Ok(());
    }
    // Parsing a second time with path tracking finds the position.
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    let at = match serde_path_to_error::deserialize::<_, Unique>(&mut deserializer) {
        Err(why) => why.path().to_string(),
        Ok(Unique) => ".".to_owned(),
    };
    let at = if matches!(&*at, "." | "?") { "body".to_owned() } else { at };
    let short = |text: &str| text.chars().take(256).collect::<String>();
    Err(ApiError::bad_field(&short(&at), short(&why.to_string())))
}

/// Accepts any value whose objects have unique keys. Keeps nothing of the value.
struct Unique;

impl<'de> Deserialize<'de> for Unique {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Unique)
    }
}

impl<'de> Visitor<'de> for Unique {
    type Value = Unique;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Unique, E> {
        Ok(Unique)
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Unique, E> {
        Ok(Unique)
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Unique, E> {
        Ok(Unique)
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Unique, E> {
        Ok(Unique)
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Unique, E> {
        Ok(Unique)
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<Unique, E> {
        Ok(Unique)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Unique, A::Error> {
        while items.next_element::<Unique>()?.is_some() {}
        Ok(Unique)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Unique, A::Error> {
        let mut keys = HashSet::<String>::new();
        while let Some(key) = entries.next_key::<String>()? {
            if keys.contains(&key) {
                return Err(A::Error::custom(format_args!("duplicate key {key:?}")));
            }
            keys.insert(key);
            entries.next_value::<Unique>()?;
        }
        Ok(Unique)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(text: &str, want: Result<(), &str>) {
        let got = check_unique_keys(text.as_bytes()).map_err(|why| why.message);
        assert_eq!(got, want.map_err(str::to_owned), "{text}");
    }

    #[test]
    fn a_key_that_is_given_twice_is_refused_by_name() {
        check(
            r#"{"name": "a", "name": "b"}"#,
            Err("body: duplicate key \"name\" at line 1 column 20"),
        );
        check(
            r#"{"extra": [1, {"a": {"x": 1, "y": {"x": 2}, "x": null}}]}"#,
            Err("extra[1].a: duplicate key \"x\" at line 1 column 47"),
        );
    }

    #[test]
    fn two_spellings_of_one_key_are_the_same_key() {
        check(
            r#"{"protected": true, "prot\u0065cted": false}"#,
            Err("body: duplicate key \"protected\" at line 1 column 36"),
        );
    }

    #[test]
    fn equal_keys_of_different_objects_are_accepted() {
        check(r#"[{"a": 1}, {"a": {"a": [{"a": 1.5}, {"a": -1, "b": "a"}]}}]"#, Ok(()));
        check(r#"{"a": true, "A": null, "": 1, " ": 2}"#, Ok(()));
    }

    #[test]
    fn invalid_json_is_left_to_the_parser() {
        check(r#"{"a": 1, "#, Ok(()));
        check("", Ok(()));
        check(&"[".repeat(100_000), Ok(()));
    }

    proptest! {
        #[test]
        fn no_text_panics(text: Vec<u8>) {
            let _ = check_unique_keys(&text);
        }

        #[test]
        fn json_written_by_serde_is_accepted(keys in proptest::collection::btree_set(".{0,4}", 0..8)) {
            let object: serde_json::Map<_, _> =
                keys.into_iter().map(|key| (key, serde_json::Value::Null)).collect();
            let text = serde_json::to_vec(&object).unwrap();
            prop_assert_eq!(check_unique_keys(&text), Ok(()));
        }
    }
}
