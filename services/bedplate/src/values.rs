//! Times, durations and sizes as people read them. JSON and YAML keep the exact values of the API.

use jiff::Timestamp;
use serde_json::Value;

use crate::output::text;

/// A time of the API as RFC 3339, to the second. Another text stays as it is.
pub(crate) fn time(value: &Value) -> String {
    let text = text(value);
    text.parse::<Timestamp>().map_or(text, readable::time)
}

/// A duration of the API, such as `PT20M`, with at most two units. Another text stays as it is.
pub(crate) fn length(value: &Value) -> String {
    readable::iso_duration(&text(value))
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
        assert_eq!(length(&json!("PT36H")), "1 d 12 h");
        assert_eq!(length(&json!("forever")), "forever");
    }

    #[test]
    fn sizes_are_gib() {
        assert_eq!([512, 1536, 2048, 65536].map(mib), ["512 MiB", "1.5 GiB", "2 GiB", "64 GiB"]);
    }
}
