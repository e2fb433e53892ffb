//! Times, durations and sizes as people read them. JSON and YAML keep the exact values of the API.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::output::text;

/// RFC 3339: a time of the API to the second; another text stays as it is.
pub(crate) fn time(value: &Value) -> String {
    let text = text(value);
    text.parse().map_or(text, to_second)
}

/// RFC 3339: a time to the second.
pub(crate) fn to_second(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// A duration of the API, such as `PT20M`; another text stays as it is.
pub(crate) fn length(value: &Value) -> String {
    let text = text(value);
    text.parse().map_or(text, span)
}

/// A duration with at most two units, such as `20 min` or `1 d 12 h`.
pub(crate) fn span(length: SignedDuration) -> String {
    let seconds = length.as_secs().max(0);
    let units = [(seconds / 86400, "d"), (seconds / 3600 % 24, "h"), (seconds / 60 % 60, "min")];
    let units = units.into_iter().chain([(seconds % 60, "s")]);
    let mut units = units.skip_while(|(count, _)| *count == 0);
    let Some((count, unit)) = units.next() else { return "0 s".to_owned() };
    match units.next() {
        // Seconds do not matter beside ten minutes.
        Some((rest, smaller)) if rest > 0 && (smaller != "s" || count < 10) => {
            format!("{count} {unit} {rest} {smaller}")
        }
        Some(_) | None => format!("{count} {unit}"),
    }
}

/// A size in GiB, or in MiB below one GiB.
pub(crate) fn mib(size: u64) -> String {
    match (size / 1024, size % 1024 * 10 / 1024) {
        (0, _) => format!("{size} MiB"),
        (gib, 0) => format!("{gib} GiB"),
        (gib, tenths) => format!("{gib}.{tenths} GiB"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn times_have_no_fractions() {
        assert_eq!(time(&json!("2026-11-24T16:16:05.123456Z")), "2026-11-24T16:16:05Z");
        assert_eq!(time(&json!("2026-11-24T17:16:05+01:00")), "2026-11-24T16:16:05Z");
        assert_eq!(time(&json!("never")), "never");
        assert_eq!(time(&Value::Null), "");
    }

    #[test]
    fn durations_have_two_units_at_most() {
        for (given, want) in [
            ("PT0S", "0 s"),
            ("PT12S", "12 s"),
            ("PT3M10S", "3 min 10 s"),
            ("PT20M", "20 min"),
            ("PT39M10S", "39 min"),
            ("PT2H", "2 h"),
            ("PT9H30M", "9 h 30 min"),
            ("PT36H", "1 d 12 h"),
            ("PT72H5M", "3 d"),
            ("forever", "forever"),
        ] {
            assert_eq!(length(&json!(given)), want, "{given}");
        }
    }

    #[test]
    fn sizes_are_gib() {
        assert_eq!([512, 1536, 2048, 65536].map(mib), ["512 MiB", "1.5 GiB", "2 GiB", "64 GiB"]);
    }
}
