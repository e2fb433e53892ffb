//! Lengths of time as people write them, such as `14d` or `1d12h`.

use std::fmt;
use std::str::FromStr;

use jiff::SignedDuration;
use serde::{Deserialize, Serialize};

/// Every unit with its seconds, largest first. The parser accepts units only in this order.
const UNITS: [(char, u64); 5] = [('w', 604_800), ('d', 86_400), ('h', 3600), ('m', 60), ('s', 1)];

/// The upper limit of a length in seconds: ten years.
const MAX_SECONDS: u64 = 3650 * 86_400;

/// A length of time in whole seconds, from one second to ten years: `14d`, `36h`, `1d12h`, `2w`.
///
/// A day has 24 hours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Length(u32);

/// The error for text or numbers that are not a valid `Length`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be a length of time from 1s to 3650d, such as 14d, 36h or 1d12h")]
pub struct InvalidLength;

impl Length {
    pub(crate) const HOUR: Length = Length(3600);

    /// Makes a length of `seconds`, which have to be between one second and ten years.
    pub fn from_secs(seconds: u64) -> Result<Length, InvalidLength> {
        let seconds = Some(seconds).filter(|it| (1..=MAX_SECONDS).contains(it));
        seconds.and_then(|it| u32::try_from(it).ok()).map(Length).ok_or(InvalidLength)
    }

    /// Returns the length in seconds.
    pub fn as_secs(self) -> u64 {
        self.0.into()
    }

    /// Returns the length as a `SignedDuration`, to add to or subtract from timestamps.
    pub fn as_duration(self) -> SignedDuration {
        SignedDuration::from_secs(self.0.into())
    }

    /// Makes a length of `days` for constants in this crate.
    pub(crate) const fn days(days: u32) -> Length {
        assert!(days <= 3650, "a length is at most ten years");
        Length(days * 86_400)
    }
}

impl FromStr for Length {
    type Err = InvalidLength;

    fn from_str(raw: &str) -> Result<Self, InvalidLength> {
        let (mut rest, mut seconds, mut units) = (raw, 0_u64, UNITS.iter());
        while !rest.is_empty() {
            let end = rest.find(|c: char| !c.is_ascii_digit()).ok_or(InvalidLength)?;
            let (number, tail) = rest.split_at(end);
            let unit = tail.chars().next().ok_or(InvalidLength)?;
            // The iterator moves forward only, so units have to come in order and each at most once.
            let (_, worth) = units.find(|(name, _)| *name == unit).ok_or(InvalidLength)?;
            let number: u64 = number.parse().map_err(|_| InvalidLength)?;
            let more = number.checked_mul(*worth).ok_or(InvalidLength)?;
            seconds = seconds.checked_add(more).ok_or(InvalidLength)?;
            rest = tail.strip_prefix(unit).unwrap_or_default();
        }
        Length::from_secs(seconds)
    }
}

impl fmt::Display for Length {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.as_secs();
        // Weeks are accepted in input and never written: `2w` is shown as `14d`.
        for (name, worth) in UNITS.iter().skip(1) {
            if rest >= *worth {
                write!(f, "{}{name}", rest / worth)?;
            }
            rest %= worth;
        }
        Ok(())
    }
}

words::strings!(Length);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_read_and_written_as_people_do() {
        let cases = [
            ("14d", 1_209_600, "14d"),
            ("2w", 1_209_600, "14d"),
            ("36h", 129_600, "1d12h"),
            ("1d12h", 129_600, "1d12h"),
            ("90m", 5400, "1h30m"),
            ("1s", 1, "1s"),
            ("3650d", 315_360_000, "3650d"),
        ];
        for (raw, seconds, written) in cases {
            let length: Length = raw.parse().unwrap();
            assert_eq!(length.as_secs(), seconds, "{raw}");
            assert_eq!(length.to_string(), written, "{raw}");
            assert_eq!(written.parse::<Length>(), Ok(length), "{raw}");
            assert_eq!(String::from(length), written, "{raw}");
        }
    }

    #[test]
    fn malformed_lengths_are_refused() {
        let wrong = [
            "",
            "14",
            "d",
            "0d",
            "-1d",
            "+1d",
            "1.5d",
            "1 d",
            "1d ",
            "12h1d",
            "1d1d",
            "3651d",
            "1y",
            "1D",
            "99999999999999999999d",
            "9999999999999999w",
            "١d",
        ];
        for raw in wrong {
            assert_eq!(raw.parse::<Length>(), Err(InvalidLength), "{raw}");
        }
    }
}
