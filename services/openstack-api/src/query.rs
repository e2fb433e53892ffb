//! Parses query strings strictly: an unknown parameter is refused.

use std::borrow::Cow;

use axum::extract::FromRequestParts;
use http::request::Parts;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use crate::ApiError;

/// The parameters of a query, in the order of the request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    /// Decoded names and values.
    pub pairs: Vec<(String, String)>,
}

/// The characters that are not encoded in a value: the unreserved characters of RFC 3986, and the comma in lists of fields.
const PLAIN: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b',');

impl Query {
    /// Parses a query string.
    pub fn parse(raw: &str) -> Result<Self, ApiError> {
        let decode = |text: &str| -> Result<String, ApiError> {
            let spaced: Cow<'_, str> =
                if text.contains('+') { text.replace('+', " ").into() } else { text.into() };
            let decoded = percent_decode_str(&spaced).decode_utf8();
            decoded
                .map(Cow::into_owned)
                .map_err(|_| ApiError::bad_field("query", "is not percent-encoded UTF-8"))
        };
        let words = raw.split('&').filter(|word| !word.is_empty());
        let pairs = words.map(|word| {
            let (name, value) = word.split_once('=').unwrap_or((word, ""));
            Ok((decode(name)?, decode(value)?))
        });
        Ok(Query { pairs: pairs.collect::<Result<_, ApiError>>()? })
    }

    /// Removes the parameter `name` and returns its value; the last value if the parameter was given several times.
    pub fn take(&mut self, name: &str) -> Option<String> {
        let mut found = None;
        self.pairs.retain_mut(|(key, value)| {
            let other = key != name;
            if !other {
                found = Some(std::mem::take(value));
            }
            other
        });
        found
    }

    /// Refuses a parameter that is given several times: two readers of the query could act on different values.
    fn check_unique(&self) -> Result<(), ApiError> {
        let mut names: Vec<&str> = self.pairs.iter().map(|(name, _)| name.as_str()).collect();
        names.sort_unstable();
        match names.windows(2).find(|pair| pair[0] == pair[1]) {
            None => Ok(()),
            Some(pair) => {
                let name: String = pair[0].chars().take(64).collect();
                Err(ApiError::bad_field(&name, "is given more than once"))
            }
        }
    }

    /// Refuses parameters that were not taken, as unknown.
    pub fn finish(self) -> Result<(), ApiError> {
        match self.pairs.first() {
            None => Ok(()),
            Some((name, _)) => {
                let name: String = name.chars().take(64).collect();
                Err(ApiError::bad_request(format!("{name}: unknown parameter")))
            }
        }
    }

    pub(crate) fn encode(&self) -> String {
        let mut text = String::new();
        for (name, value) in &self.pairs {
            text.push(if text.is_empty() { '?' } else { '&' });
            text.extend(utf8_percent_encode(name, PLAIN));
            text.push('=');
            text.extend(utf8_percent_encode(value, PLAIN));
        }
        text
    }
}

impl<S: Sync> FromRequestParts<S> for Query {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let query = parts.uri.query().map_or_else(|| Ok(Query::default()), Query::parse)?;
        query.check_unique()?;
        Ok(query)
    }
}

/// Parses a boolean in the spellings that OpenStack accepts (`strutils.bool_from_string`).
pub fn flag(name: &str, raw: &str) -> Result<bool, ApiError> {
    match raw.to_ascii_lowercase().as_str() {
        "1" | "t" | "true" | "on" | "y" | "yes" => Ok(true),
        "0" | "f" | "false" | "off" | "n" | "no" => Ok(false),
        _ => Err(ApiError::bad_field(name, "must be true or false")),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_unknown_parameter_is_refused_by_name() {
        let mut query = Query::parse("limit=5&bogus=%C3%A9+x&limit=6").unwrap();
        assert_eq!(query.take("limit").as_deref(), Some("6"));
        assert_eq!(query.pairs, [("bogus".to_owned(), "é x".to_owned())]);
        assert_eq!(query.finish().unwrap_err().message, "bogus: unknown parameter");
    }

    #[test]
    fn a_repeated_parameter_is_refused_by_name() {
        let refused = |query: &str| Query::parse(query).unwrap().check_unique().err();
        assert_eq!(refused("limit=5&marker=a"), None);
        let why = refused("limit=5&marker=a&limit=5").expect("a refusal");
        assert_eq!(why.message, "limit: is given more than once");
    }

    #[test]
    fn booleans_are_parsed_in_every_usual_spelling() {
        assert_eq!(flag("detail", "True"), Ok(true));
        assert_eq!(flag("detail", "0"), Ok(false));
        assert_eq!(flag("detail", "maybe").unwrap_err().message, "detail: must be true or false");
    }

    proptest! {
        #[test]
        fn no_query_panics(raw: String) {
            let _ = Query::parse(&raw);
        }

        #[test]
        fn an_encoded_query_is_parsed_back(pairs in proptest::collection::vec((".{0,8}", ".{0,8}"), 0..4)) {
            let query = Query { pairs };
            let text = query.encode();
            prop_assert_eq!(Query::parse(text.trim_start_matches('?')).unwrap(), query);
        }
    }
}
