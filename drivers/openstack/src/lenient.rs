//! Tolerant parsing of values that services write in several ways.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use serde::{Deserialize, Deserializer};

/// Parses a time; a time without a zone is UTC, as some services write it. An unreadable time is `None`, because no decision depends on it.
pub(crate) fn time<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Timestamp>, D::Error> {
    Ok(Option::<String>::deserialize(from)?.and_then(|text| {
        let zoned = text.parse::<Timestamp>().ok();
        let plain = || text.parse::<DateTime>().ok()?.to_zoned(TimeZone::UTC).ok();
        zoned.or_else(|| plain().map(|zoned| zoned.timestamp()))
    }))
}

/// Parses null as the default value.
pub(crate) fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    from: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

/// Defines an enum of a service's words; an unknown word is kept as text.
macro_rules! words {
    ($(#[$about:meta])* $name:ident { $($(#[$what:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$about])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash, serde::Deserialize)]
        #[serde(from = "String")]
        pub enum $name {
            $($(#[$what])* $variant,)+
            /// A word of a newer version or another vendor.
            Other(String),
        }

        impl $name {
            /// Returns the service's word.
            pub fn as_str(&self) -> &str {
                match self {
                    $($name::$variant => $word,)+
                    $name::Other(word) => word,
                }
            }
        }

        impl From<String> for $name {
            fn from(word: String) -> $name {
                match word.as_str() {
                    $($word => $name::$variant,)+
                    _ => $name::Other(word),
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

pub(crate) use words;

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Deserialize)]
    struct Times {
        #[serde(default, deserialize_with = "time")]
        at: Option<Timestamp>,
    }

    #[test]
    fn times_are_utc_whether_they_say_so_or_not() {
        let read =
            |json: &str| serde_json::from_str::<Times>(json).unwrap().at.map(|at| at.to_string());
        let want = Some("2026-01-02T03:04:05Z".to_owned());
        assert_eq!(read(r#"{"at": "2026-01-02T03:04:05Z"}"#), want);
        assert_eq!(read(r#"{"at": "2026-01-02T03:04:05.000000"}"#), want);
        assert_eq!(read(r#"{"at": "2026-01-02 03:04:05"}"#), want);
        assert_eq!(read(r#"{"at": "2026-01-02T05:04:05+02:00"}"#), want);
        for none in [r#"{"at": null}"#, r#"{"at": "soon"}"#, "{}"] {
            assert_eq!(read(none), None, "{none}");
        }
    }
}
