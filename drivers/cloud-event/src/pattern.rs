//! The types of events that a webhook gets.

use std::fmt;
use std::str::FromStr;

/// A type of events, or the beginning of types: `baremetal.node.*`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventPattern {
    beginning: String,
    is_whole: bool,
}

/// The text is no pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{raw:?} is no type of events: write a type such as baremetal.node.create.end, or its beginning with .* at its end"
)]
pub struct InvalidPattern {
    /// The text, cut to 64 characters.
    pub raw: String,
}

impl EventPattern {
    /// Whether events of this type match.
    pub fn matches(&self, kind: &str) -> bool {
        if self.is_whole { kind == self.beginning } else { kind.starts_with(&self.beginning) }
    }
}

impl FromStr for EventPattern {
    type Err = InvalidPattern;

    fn from_str(raw: &str) -> Result<Self, InvalidPattern> {
        // With its dot, the beginning ends with a whole word.
        let (beginning, is_whole) = match raw.strip_suffix('*') {
            Some(beginning) => (beginning, false),
            None => (raw, true),
        };
        let legal = |c: char| c.is_ascii_lowercase() || c == '_' || c == '.';
        let is_complete = is_whole || beginning.is_empty() || beginning.ends_with('.');
        if raw.is_empty() || !is_complete || !beginning.chars().all(legal) {
            return Err(InvalidPattern { raw: raw.chars().take(64).collect() });
        }
        Ok(EventPattern { beginning: beginning.to_owned(), is_whole })
    }
}

impl fmt::Display for EventPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.beginning)?;
        f.write_str(if self.is_whole { "" } else { "*" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_matches_a_type_or_its_beginning() {
        let matches = |pattern: &str, kind: &str| -> bool {
            let read: EventPattern = pattern.parse().unwrap();
            assert_eq!(read.to_string(), pattern);
            read.matches(kind)
        };
        assert!(matches("*", "magnum.cluster.create"));
        assert!(matches("baremetal.node.*", "baremetal.node.power_set.start"));
        assert!(!matches("baremetal.node.*", "baremetal.port.create.end"));
        assert!(matches("magnum.cluster.create", "magnum.cluster.create"));
        assert!(!matches("magnum.cluster", "magnum.cluster.create"));
    }

    #[test]
    fn other_texts_are_refused() {
        for wrong in ["", "baremetal*", "baremetal.*.create", "Baremetal.*", "a b"] {
            assert!(wrong.parse::<EventPattern>().is_err(), "{wrong}");
        }
    }
}
