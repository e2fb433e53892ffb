//! Times, durations and sizes as people read them. JSON and YAML keep the exact values of the API.

use jiff::Timestamp;

use crate::output::text;

/// A time of the API as RFC 3339, to the second; empty without a time.
pub(crate) fn time(at: Option<Timestamp>) -> String {
    at.map(readable::time).unwrap_or_default()
}

/// A duration of the API, such as `PT20M`, with at most two units. Another text stays as it is.
pub(crate) fn length(value: Option<&str>) -> String {
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
    use super::*;

    #[test]
    fn durations_have_two_units_at_most() {
        assert_eq!(length(Some("PT36H")), "1 d 12 h");
        assert_eq!(length(Some("forever")), "forever");
        assert_eq!(length(None), "");
    }

    #[test]
    fn sizes_are_gib() {
        assert_eq!([512, 1536, 2048, 65536].map(mib), ["512 MiB", "1.5 GiB", "2 GiB", "64 GiB"]);
    }
}
