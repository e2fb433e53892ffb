//! Terms: how long resources are lent by default, at most, and at least.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::Length;
use crate::timestamp::after;

/// How long resources of one kind are lent by default, at most, and at least.
///
/// The shortest lease limits notices: the end of every lease is announced by mail and webhook, so a caller who leases for one second again
/// and again would flood other people's mailboxes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "RawTerms")]
pub struct Terms {
    default: Option<Length>,
    longest: Option<Length>,
    shortest: Length,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RawTerms {
    default: Option<Length>,
    longest: Option<Length>,
    shortest: Option<Length>,
}

/// Why a configuration of terms is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TermsError {
    /// A caller who names no length would always be refused.
    #[error("default: longer than the longest lease of {longest}")]
    DefaultTooLong { longest: Length },
    /// No length, or not even the default, would be accepted.
    #[error("shortest: {shortest} exceeds the default or longest lease of {than}")]
    ShortestTooLong {
        shortest: Length,
        /// The smaller one of the default and the longest lease, which `shortest` must not exceed.
        than: Length,
    },
}

/// Why a requested length is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TermError {
    #[error("a lease lasts at most {longest}")]
    TooLong { longest: Length },
    #[error("a lease lasts at least {shortest}")]
    TooShort { shortest: Length },
}

impl TryFrom<RawTerms> for Terms {
    type Error = TermsError;

    fn try_from(raw: RawTerms) -> Result<Self, TermsError> {
        let terms = Terms::new(raw.default, raw.longest)?;
        raw.shortest.map_or(Ok(terms), |shortest| terms.with_shortest(shortest))
    }
}

impl Default for Terms {
    fn default() -> Self {
        Terms { default: None, longest: None, shortest: Length::HOUR }
    }
}

impl Terms {
    /// Makes terms with a default and a longest lease; `None` means without end. The shortest lease is one hour, or less if the default or
    /// the longest lease is shorter than that.
    pub fn new(default: Option<Length>, longest: Option<Length>) -> Result<Terms, TermsError> {
        match (default, longest) {
            (Some(default), Some(longest)) if default > longest => {
                Err(TermsError::DefaultTooLong { longest })
            }
            (default, longest) => {
                let shortest = default.into_iter().chain(longest).fold(Length::HOUR, Length::min);
                Ok(Terms { default, longest, shortest })
            }
        }
    }

    /// Returns the terms with `shortest` as the shortest lease, or an error if the default or the longest lease is shorter.
    pub fn with_shortest(self, shortest: Length) -> Result<Terms, TermsError> {
        match self.default.into_iter().chain(self.longest).min() {
            Some(than) if shortest > than => Err(TermsError::ShortestTooLong { shortest, than }),
            Some(_) | None => Ok(Terms { shortest, ..self }),
        }
    }

    /// Returns the terms limited to `longest`, which is the quota of a project or of a user. A quota below the shortest lease means that
    /// nothing is lent.
    pub fn limited_to(self, longest: Option<Length>) -> Terms {
        let longest = self.longest.into_iter().chain(longest).min();
        let default = self.default.map(|default| longest.map_or(default, |it| default.min(it)));
        Terms { default, longest, ..self }
    }

    /// Returns the longest lease, counted from the time of the request; `None` means without end.
    pub fn longest(self) -> Option<Length> {
        self.longest
    }

    /// Returns the shortest lease, counted from the time of the request.
    pub fn shortest(self) -> Length {
        self.shortest
    }

    /// Returns the length of a lease whose caller asked for `asked`; `None` means without end.
    ///
    /// A caller who names no length gets the default, or the longest lease if there is no default.
    pub(crate) fn length(self, asked: Option<Length>) -> Result<Option<Length>, TermError> {
        let length = asked.or(self.default).or(self.longest);
        length.map(|length| self.check(length).map(|()| length)).transpose()
    }

    /// Checks that `length` is neither too long nor too short.
    pub fn check(self, length: Length) -> Result<(), TermError> {
        match self.longest {
            Some(longest) if length > longest => Err(TermError::TooLong { longest }),
            Some(_) | None if length < self.shortest => {
                Err(TermError::TooShort { shortest: self.shortest })
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Returns the latest end that a caller can ask for at `now`; `None` means that every end is accepted.
    pub fn latest(self, now: Timestamp) -> Option<Timestamp> {
        self.longest.map(|longest| after(now, longest.as_duration()))
    }

    /// Returns the earliest end that a caller can ask for at `now`.
    pub fn earliest(self, now: Timestamp) -> Timestamp {
        after(now, self.shortest.as_duration())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    /// Asserts the days granted for `asked` by terms of `default` and `longest` days within a quota of `limit` days.
    #[track_caller]
    fn check(
        (default, longest, limit): (Option<u32>, Option<u32>, Option<u32>),
        asked: Option<u32>,
        want: Result<Option<i64>, u32>,
    ) {
        let days = |days: Option<u32>| days.map(Length::days);
        let terms = Terms::new(days(default), days(longest)).unwrap().limited_to(days(limit));
        let granted = terms.grant(days(asked), NOW);
        let granted = granted.map(|it| it.map(|it| it.until.duration_since(NOW).as_hours() / 24));
        let want = want.map_err(|longest| TermError::TooLong { longest: Length::days(longest) });
        assert_eq!(granted, want);
    }

    #[test]
    fn the_quota_limits_the_default_and_the_longest_lease() {
        check((None, None, None), None, Ok(None));
        check((None, None, None), Some(3), Ok(Some(3)));
        check((Some(5), None, None), None, Ok(Some(5)));
        check((Some(5), Some(9), None), None, Ok(Some(5)));
        check((None, Some(9), None), None, Ok(Some(9)));
        check((None, Some(9), None), Some(9), Ok(Some(9)));
        check((None, Some(9), None), Some(10), Err(9));
        // The quota of a project or user applies in addition to the configuration.
        check((Some(5), Some(9), Some(2)), None, Ok(Some(2)));
        check((Some(5), Some(9), Some(2)), Some(3), Err(2));
        check((Some(5), Some(9), Some(20)), Some(10), Err(9));
        check((None, None, Some(2)), None, Ok(Some(2)));
        check((Some(5), None, Some(2)), None, Ok(Some(2)));
    }

    #[test]
    fn a_default_beyond_the_longest_is_refused() {
        let refused = toml::from_str::<Terms>("default = '2d'\nlongest = '1d'").unwrap_err();
        assert!(refused.message().contains("the longest lease of 1d"), "{refused}");
    }

    #[test]
    fn nothing_is_lent_for_less_than_the_shortest() {
        let seconds = |seconds| Length::from_secs(seconds).unwrap();
        let refused = Terms::default().grant(Some(seconds(3599)), NOW).unwrap_err();
        assert_eq!(refused.to_string(), "a lease lasts at least 1h");
        assert!(Terms::default().grant(Some(seconds(3600)), NOW).is_ok());
        // A configured default or longest lease below one hour lowers the shortest lease to the same length.
        let read = |raw: &str| toml::from_str::<Terms>(raw);
        assert_eq!(read("default = '12s'\nlongest = '1d'").unwrap().shortest(), seconds(12));
        assert_eq!(read("longest = '5m'").unwrap().shortest(), seconds(300));
        let reported = read("shortest = '2d'\nlongest = '3d'").unwrap();
        assert!(reported.grant(Some(Length::days(1)), NOW).is_err());
        assert!(reported.grant(Some(Length::days(2)), NOW).is_ok());
        let refused = read("shortest = '2d'\nlongest = '1d'").unwrap_err();
        assert!(refused.message().contains("shortest: 2d exceeds"), "{refused}");
        // A default or longest lease as short as the shortest lease leaves one length to choose.
        assert_eq!(read("shortest = '2d'\nlongest = '2d'").unwrap().shortest(), Length::days(2));
        // A quota below the shortest lease refuses every request, short ones too.
        let little = Terms::default().limited_to(Some(seconds(1)));
        assert!(little.grant(None, NOW).is_err() && little.grant(Some(seconds(1)), NOW).is_err());
    }
}
