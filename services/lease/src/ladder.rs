//! What comes before the end of a lease and after it, and how long each lasts.

use serde::{Deserialize, Serialize};

use crate::Length;

/// The most warnings before an end.
const MOST_WARNINGS: usize = 8;

/// What comes before the end of a lease and after it: its owner is warned, the thing is shut off, a copy of it is kept, and
/// once the undo window closed it is deleted.
///
/// ```toml
/// warn_before = ["7d", "1d"]
/// notice = "1d"
/// undo_window = "7d"
/// undo_gives = "1d"
/// keep_copy = true
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "RawLadder")]
pub struct Ladder {
    /// How long before the end its owner is warned; the longest first.
    pub(crate) warn_before: Vec<Length>,
    /// The least time between the first warning and what it warns of. A lease shorter than twice that has half of it.
    pub(crate) notice: Length,
    /// How long it stays shut off before it is deleted.
    pub(crate) undo_window: Length,
    /// How long it is lent again when its owner undoes the end and says no time.
    pub(crate) undo_gives: Length,
    /// Whether a copy is kept before it is deleted. Without meaning for what cannot be copied.
    pub(crate) keep_copy: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RawLadder {
    warn_before: Vec<Length>,
    notice: Length,
    undo_window: Length,
    undo_gives: Length,
    keep_copy: bool,
}

/// Why there is no such ladder.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LadderError {
    /// Too many warnings.
    #[error("warn_before: there may be {MOST_WARNINGS} warnings at most")]
    TooManyWarnings,
    /// Every end would be put off, for nobody was warned in time.
    #[error(
        "warn_before: the earliest warning has to come at least the notice of {notice} before the end"
    )]
    WarnedTooLate {
        /// The notice.
        notice: Length,
    },
}

impl Default for RawLadder {
    fn default() -> Self {
        RawLadder {
            warn_before: vec![Length::days(7), Length::days(1)],
            notice: Length::days(1),
            undo_window: Length::days(7),
            undo_gives: Length::days(1),
            keep_copy: true,
        }
    }
}

impl Default for Ladder {
    fn default() -> Self {
        Ladder::unchecked(RawLadder::default())
    }
}

impl Ladder {
    /// That of a thing of which no copy can be made, such as a cluster or a machine.
    pub fn without_copy(self) -> Ladder {
        Ladder { keep_copy: false, ..self }
    }

    /// How long it stays shut off before it is deleted.
    pub fn undo_window(&self) -> Length {
        self.undo_window
    }

    /// How long it is lent again when its owner undoes the end and says no time.
    pub fn undo_gives(&self) -> Length {
        self.undo_gives
    }

    fn unchecked(raw: RawLadder) -> Ladder {
        let RawLadder { mut warn_before, notice, undo_window, undo_gives, keep_copy } = raw;
        warn_before.sort_unstable_by(|one, other| other.cmp(one));
        warn_before.dedup();
        Ladder { warn_before, notice, undo_window, undo_gives, keep_copy }
    }
}

impl TryFrom<RawLadder> for Ladder {
    type Error = LadderError;

    fn try_from(raw: RawLadder) -> Result<Self, LadderError> {
        let ladder = Ladder::unchecked(raw);
        if ladder.warn_before.len() > MOST_WARNINGS {
            return Err(LadderError::TooManyWarnings);
        }
        // Where there is no warning at all, one comes as early as the notice wants it.
        match ladder.warn_before.first() {
            Some(earliest) if *earliest < ladder.notice => {
                Err(LadderError::WarnedTooLate { notice: ladder.notice })
            }
            Some(_) | None => Ok(ladder),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ladder_is_read_with_its_defaults() {
        let read: Ladder = toml::from_str("warn_before = ['1h', '2d', '1h']").unwrap();
        let hours = read.warn_before.iter().map(|it| it.as_secs() / 3600);
        assert_eq!(hours.collect::<Vec<_>>(), [48, 1]);
        assert_eq!(read.undo_window, Length::days(7));
        assert_eq!(toml::from_str::<Ladder>("").unwrap(), Ladder::default());
    }

    #[test]
    fn what_makes_no_sense_is_refused_by_name() {
        let refused = |raw: &str| toml::from_str::<Ladder>(raw).unwrap_err().message().to_owned();
        assert!(refused("warn_before = ['1h']\nnotice = '2h'").contains("the notice of 2h"));
        let many = (1..=9).map(|hours| format!("'{hours}h'")).collect::<Vec<_>>().join(",");
        assert!(refused(&format!("warn_before = [{many}]\nnotice = '1h'")).contains("8 warnings"));
        assert!(refused("undo_window = '0s'").contains("length of time"));
        assert!(refused("undo = '1d'").contains("unknown field"));
    }
}
