//! Times in the format of OpenStack.

use jiff::Timestamp;
use jiff::fmt::temporal::DateTimePrinter;
use jiff::tz::Offset;
use serde::ser::{Error, Serialize, Serializer};

const PRINTER: DateTimePrinter = DateTimePrinter::new().precision(Some(6));

/// A time that is serialized like `2026-01-31T23:59:59.000001+00:00`.
#[derive(Clone, Copy)]
pub struct Time(pub Timestamp);

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut text = String::with_capacity(32);
        PRINTER
            .print_timestamp_with_offset(&self.0, Offset::UTC, &mut text)
            .map_err(S::Error::custom)?;
        serializer.serialize_str(&text)
    }
}

impl Time {
    /// Wraps an optional time.
    pub fn some(at: Option<Timestamp>) -> Option<Time> {
        at.map(Time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_six_digits_after_its_seconds() {
        for (at, want) in [
            ("2026-01-31T23:59:59Z", "\"2026-01-31T23:59:59.000000+00:00\""),
            ("2026-01-31T23:59:59.0000019Z", "\"2026-01-31T23:59:59.000001+00:00\""),
        ] {
            assert_eq!(serde_json::to_string(&Time(at.parse().unwrap())).unwrap(), want);
        }
    }
}
