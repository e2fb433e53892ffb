#![doc = include_str!("../README.md")]

use jiff::{SignedDuration, Timestamp};

/// Formats a time as RFC 3339, to the second.
pub fn time(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Formats a duration with at most two units. A negative duration counts as none.
pub fn duration(length: SignedDuration) -> String {
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

/// Formats a duration of the API, such as `PT20M`. Another text stays as it is.
pub fn iso_duration(text: &str) -> String {
    text.parse().map_or_else(|_| text.to_owned(), duration)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_no_fractions() {
        let of = |text: &str| time(text.parse().unwrap());
        assert_eq!(of("2026-11-24T16:16:05.123456Z"), "2026-11-24T16:16:05Z");
        assert_eq!(of("2026-11-24T17:16:05+01:00"), "2026-11-24T16:16:05Z");
    }

    #[test]
    fn durations_have_two_units_at_most() {
        for (given, want) in [
            ("PT0S", "0 s"),
            ("-PT5S", "0 s"),
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
            assert_eq!(iso_duration(given), want, "{given}");
        }
    }
}
