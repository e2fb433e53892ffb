//! How long things are lent: by default, at most, and at least.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{Lease, Length, after};

/// How long things of one kind are lent: by default, at most, and at least.
///
/// Each end is told by mail and webhook: what is lent for a second, again and again, would have strangers told without end.
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

/// Why there are no such terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TermsError {
    /// Who says nothing would be refused.
    #[error(
        "default: what nobody said anything of would be lent for longer than the longest lease of {longest}"
    )]
    DefaultTooLong {
        /// The longest lease.
        longest: Length,
    },
    /// Nothing could be lent, or nothing to who says nothing.
    #[error(
        "shortest: {shortest} is longer than the default or the longest lease, which is {than}"
    )]
    ShortestTooLong {
        /// The shortest lease.
        shortest: Length,
        /// What it may not be longer than.
        than: Length,
    },
}

/// Why something is not lent that long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TermError {
    /// Nothing is lent for longer.
    #[error("nothing is lent for longer than {longest}")]
    TooLong {
        /// The longest lease.
        longest: Length,
    },
    /// Nothing is lent for less.
    #[error("nothing is lent for less than {shortest}")]
    TooShort {
        /// The shortest lease.
        shortest: Length,
    },
}

impl TryFrom<RawTerms> for Terms {
    type Error = TermsError;

    fn try_from(raw: RawTerms) -> Result<Self, TermsError> {
        let terms = Terms::new(raw.default, raw.longest)?;
        raw.shortest.map_or(Ok(terms), |shortest| terms.no_shorter_than(shortest))
    }
}

impl Default for Terms {
    fn default() -> Self {
        Terms { default: None, longest: None, shortest: Length::HOUR }
    }
}

impl Terms {
    /// So long by default and at most; `None` is without end. An hour at least, or what is given by default or at most, if that is less.
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

    /// These, and nothing for less than `shortest`.
    pub fn no_shorter_than(self, shortest: Length) -> Result<Terms, TermsError> {
        match self.default.into_iter().chain(self.longest).min() {
            Some(than) if shortest > than => Err(TermsError::ShortestTooLong { shortest, than }),
            Some(_) | None => Ok(Terms { shortest, ..self }),
        }
    }

    /// These, and nothing for longer than `longest` either: a project's limit, a person's grant. Where that is less than the shortest
    /// lease, nothing is lent.
    pub fn within(self, longest: Option<Length>) -> Terms {
        let longest = self.longest.into_iter().chain(longest).min();
        let default = self.default.map(|default| longest.map_or(default, |it| default.min(it)));
        Terms { default, longest, ..self }
    }

    /// The longest lease, counted from the moment that somebody asks.
    pub fn longest(self) -> Option<Length> {
        self.longest
    }

    /// The shortest lease, counted from the moment that somebody asks.
    pub fn shortest(self) -> Length {
        self.shortest
    }

    /// What is granted at `now` to who asked for `asked`: a lease, or none where things are lent without end.
    ///
    /// Who says nothing gets the default; where there is none but a longest lease, that.
    pub fn grant(self, asked: Option<Length>, now: Timestamp) -> Result<Option<Lease>, TermError> {
        let length = asked.or(self.default).or(self.longest);
        length.map(|length| self.check(length).map(|()| Lease::new(now, length))).transpose()
    }

    /// Whether that long is allowed.
    pub fn check(self, length: Length) -> Result<(), TermError> {
        match self.longest {
            Some(longest) if length > longest => Err(TermError::TooLong { longest }),
            Some(_) | None if length < self.shortest => {
                Err(TermError::TooShort { shortest: self.shortest })
            }
            Some(_) | None => Ok(()),
        }
    }

    /// The latest end that may be asked for at `now`.
    pub fn latest(self, now: Timestamp) -> Option<Timestamp> {
        self.longest.map(|longest| after(now, longest.as_duration()))
    }

    /// The earliest end that may be asked for at `now`.
    pub fn earliest(self, now: Timestamp) -> Timestamp {
        after(now, self.shortest.as_duration())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    /// For how many days `asked` is granted by terms of `default` and `longest` days within a limit of `limit` days.
    #[track_caller]
    fn check(
        (default, longest, limit): (Option<u32>, Option<u32>, Option<u32>),
        asked: Option<u32>,
        want: Result<Option<i64>, u32>,
    ) {
        let days = |days: Option<u32>| days.map(Length::days);
        let terms = Terms::new(days(default), days(longest)).unwrap().within(days(limit));
        let granted = terms.grant(days(asked), NOW);
        let granted = granted.map(|it| it.map(|it| it.until.duration_since(NOW).as_hours() / 24));
        let want = want.map_err(|longest| TermError::TooLong { longest: Length::days(longest) });
        assert_eq!(granted, want);
    }

    #[test]
    fn what_is_granted_is_a_table() {
        check((None, None, None), None, Ok(None));
        check((None, None, None), Some(3), Ok(Some(3)));
        check((Some(5), None, None), None, Ok(Some(5)));
        check((Some(5), Some(9), None), None, Ok(Some(5)));
        check((None, Some(9), None), None, Ok(Some(9)));
        check((None, Some(9), None), Some(9), Ok(Some(9)));
        check((None, Some(9), None), Some(10), Err(9));
        // What a project or a person is limited to binds beside the configuration.
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
        assert_eq!(refused.to_string(), "nothing is lent for less than 1h");
        assert!(Terms::default().grant(Some(seconds(3600)), NOW).is_ok());
        // What is configured to be lent is lent, however short it is.
        let read = |raw: &str| toml::from_str::<Terms>(raw);
        assert_eq!(read("default = '12s'\nlongest = '1d'").unwrap().shortest(), seconds(12));
        assert_eq!(read("longest = '5m'").unwrap().shortest(), seconds(300));
        let told = read("shortest = '2d'\nlongest = '3d'").unwrap();
        assert!(told.grant(Some(Length::days(1)), NOW).is_err());
        assert!(told.grant(Some(Length::days(2)), NOW).is_ok());
        let refused = read("shortest = '2d'\nlongest = '1d'").unwrap_err();
        assert!(refused.message().contains("shortest: 2d is longer than"), "{refused}");
        // Who may have nothing for so long has nothing, and not something for less.
        let little = Terms::default().within(Some(seconds(1)));
        assert!(little.grant(None, NOW).is_err() && little.grant(Some(seconds(1)), NOW).is_err());
    }
}
