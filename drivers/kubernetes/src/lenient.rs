//! Tolerant parsing of values that API servers omit or send as null.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Deserializer};

/// The longest wait that a server can impose.
const LONGEST_WAIT: Duration = Duration::from_secs(3600);

/// Parses null as the default value.
pub(crate) fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    from: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

/// Parses a time; `None` if it cannot be parsed.
pub(crate) fn time<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Timestamp>, D::Error> {
    Ok(Option::<String>::deserialize(from)?.and_then(|text| text.parse().ok()))
}

/// Parses `Retry-After`, in seconds or as a date (RFC 9110 §10.2.3).
pub(crate) fn retry_after(raw: &str, now: Timestamp) -> Option<Duration> {
    let raw = raw.trim();
    let wait = match raw.parse::<u64>() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => {
            let date = jiff::fmt::rfc2822::parse(raw).ok()?.timestamp();
            Duration::try_from(date.duration_since(now)).unwrap_or_default()
        }
    };
    Some(wait.min(LONGEST_WAIT))
}

/// Returns the text on one line, without control characters, cut to `longest` characters.
pub(crate) fn plain(text: &str, longest: usize) -> String {
    let clean: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let line = clean.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut short: String = line.chars().take(longest).collect();
    if short.len() < line.len() {
        short.push('…');
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_is_read_in_both_forms() {
        let now: Timestamp = "1994-11-06T08:49:30Z".parse().unwrap();
        let seconds = |raw| retry_after(raw, now).map(|wait| wait.as_secs());
        assert_eq!(seconds("7"), Some(7));
        assert_eq!(seconds("Sun, 06 Nov 1994 08:49:37 GMT"), Some(7));
        assert_eq!(seconds("Sun, 06 Nov 1994 08:49:20 GMT"), Some(0));
        assert_eq!(seconds("99999999999"), Some(3600));
        assert_eq!(seconds("soon"), None);
    }

    #[test]
    fn what_a_server_says_fits_into_a_line() {
        assert_eq!(plain("a\n\tb\u{1b}[31mc", 20), "a b [31mc");
        assert_eq!(plain("abcdef", 3), "abc…");
    }
}
