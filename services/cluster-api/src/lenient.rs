//! Reads values as leniently as Magnum's types: a number or a boolean may come as text, and a label as a number or a boolean.

use std::collections::BTreeMap;

use serde::de::{Deserialize, Deserializer, Error};

#[derive(serde::Deserialize)]
#[serde(untagged)]
enum Scalar {
    Flag(bool),
    Whole(i64),
    Part(f64),
    Text(String),
}

impl Scalar {
    fn into_text(self) -> String {
        match self {
            Scalar::Flag(flag) => flag.to_string(),
            Scalar::Whole(number) => number.to_string(),
            Scalar::Part(number) => number.to_string(),
            Scalar::Text(text) => text,
        }
    }
}

fn scalar<'de, D: Deserializer<'de>>(from: D, want: &str) -> Result<Option<Scalar>, D::Error> {
    Option::<Scalar>::deserialize(from).map_err(|_| D::Error::custom(want))
}

/// Reads a boolean or `null`.
pub(crate) fn flag<'de, D: Deserializer<'de>>(from: D) -> Result<Option<bool>, D::Error> {
    let want = "must be true or false";
    let Some(read) = scalar(from, want)? else { return Ok(None) };
    match read.into_text().to_ascii_lowercase().as_str() {
        "true" | "1" | "yes" | "on" => Ok(Some(true)),
        "false" | "0" | "no" | "off" => Ok(Some(false)),
        _ => Err(D::Error::custom(want)),
    }
}

/// Reads a whole number that is not negative, or `null`.
pub(crate) fn count<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u32>, D::Error> {
    let want = "must be a whole number that is not negative";
    let Some(read) = scalar(from, want)? else { return Ok(None) };
    read.into_text().parse().map(Some).map_err(|_| D::Error::custom(want))
}

/// Reads text of at most 4096 bytes, or `null`. Empty text means `null`.
pub(crate) fn text<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    let want = "must be text of at most 4096 bytes, without control characters";
    let read = Option::<String>::deserialize(from).map_err(|_| D::Error::custom(want))?;
    match read {
        Some(text) if text.len() > 4096 || text.chars().any(char::is_control) => {
            Err(D::Error::custom(want))
        }
        read => Ok(read.filter(|text| !text.is_empty())),
    }
}

/// Reads labels or `null`.
pub(crate) fn labels<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<BTreeMap<String, String>>, D::Error> {
    let want = "must be an object whose values are text, numbers or booleans";
    let read = Option::<BTreeMap<String, Scalar>>::deserialize(from);
    let read = read.map_err(|_| D::Error::custom(want))?;
    Ok(read
        .map(|labels| labels.into_iter().map(|(name, value)| (name, value.into_text())).collect()))
}
