//! How long things are lent: by default, and at most.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{Lease, Length, after};

/// How long things of one kind are lent: by default, and at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "RawTerms")]
pub struct Terms {
    default: Option<Length>,
    longest: Option<Length>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RawTerms {
    default: Option<Length>,
    longest: Option<Length>,
}

/// Why there are no such terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "default: what nobody said anything of would be lent for longer than the longest lease of {longest}"
)]
pub struct TermsError {
    longest: Length,
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
}

impl TryFrom<RawTerms> for Terms {
    type Error = TermsError;

    fn try_from(raw: RawTerms) -> Result<Self, TermsError> {
        Terms::new(raw.default, raw.longest)
    }
}

impl Terms {
    /// So long by default and at most; `None` is without end.
    pub fn new(default: Option<Length>, longest: Option<Length>) -> Result<Terms, TermsError> {
        match (default, longest) {
            (Some(default), Some(longest)) if default > longest => Err(TermsError { longest }),
            (default, longest) => Ok(Terms { default, longest }),
        }
    }

    /// These, and nothing for longer than `longest` either: a project's limit, a person's grant.
    pub fn within(self, longest: Option<Length>) -> Terms {
        let longest = self.longest.into_iter().chain(longest).min();
        let default = self.default.map(|default| longest.map_or(default, |it| default.min(it)));
        Terms { default, longest }
    }

    /// The longest lease, counted from the moment that somebody asks.
    pub fn longest(self) -> Option<Length> {
        self.longest
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
            Some(_) | None => Ok(()),
        }
    }

    /// The latest end that may be asked for at `now`.
    pub fn latest(self, now: Timestamp) -> Option<Timestamp> {
        self.longest.map(|longest| after(now, longest.as_duration()))
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
}
