//! Reading what services write in more than one way.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use serde::{Deserialize, Deserializer};

/// A time, which some services write without saying that it is UTC. What cannot be read is `None`: no decision
/// hangs on it.
pub(crate) fn time<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Timestamp>, D::Error> {
    Ok(Option::<String>::deserialize(from)?.and_then(|text| {
        let zoned = text.parse::<Timestamp>().ok();
        let plain = || text.parse::<DateTime>().ok()?.to_zoned(TimeZone::UTC).ok();
        zoned.or_else(|| plain().map(|zoned| zoned.timestamp()))
    }))
}

/// Something that may be null where it is empty.
pub(crate) fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    from: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

/// An enum of the words a service uses; one it does not know is kept as it is.
macro_rules! words {
    ($(#[$about:meta])* $name:ident { $($(#[$what:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$about])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash, serde::Deserialize)]
        #[serde(from = "String")]
        pub enum $name {
            $($(#[$what])* $variant,)+
            /// Another word, of a newer version or another maker.
            Other(String),
        }

        impl $name {
            /// The word as the service says it.
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
