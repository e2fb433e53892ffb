//! The stages at the end of a lease (warning, switch-off, snapshot, deletion) and the time between them.

use serde::{Deserialize, Serialize};

use crate::Length;

/// The maximum number of entries in `warn_before`.
const MAX_WARNINGS: usize = 8;

/// The stages at the end of a lease: its lessee is warned, the resource is switched off, a snapshot of the resource is kept, and the
/// resource is deleted when the undo window closes.
///
/// ```toml
/// warn_before = ["7d", "1d"]
/// notice = "1d"
/// undo_window = "7d"
/// undo_gives = "1d"
/// keep_copy = true
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "RawSchedule")]
pub struct LeaseSchedule {
    /// How long before the end the lessee is warned, longest first.
    pub(crate) warn_before: Vec<Length>,
    /// The least time between the first warning and the end. A lease shorter than twice this notice uses half of its own length.
    pub(crate) notice: Length,
    /// How long the resource stays switched off before it is deleted.
    pub(crate) undo_window: Length,
    /// How long the resource is lent again when the lessee undoes the end without naming a time.
    pub(crate) undo_gives: Length,
    /// Whether a snapshot is kept before the deletion. Ignored for resources that cannot be copied.
    pub(crate) keep_copy: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RawSchedule {
    warn_before: Vec<Length>,
    notice: Length,
    undo_window: Length,
    undo_gives: Length,
    keep_copy: bool,
}

/// Why a configuration of the stages is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleError {
    #[error("warn_before: more than {MAX_WARNINGS} warnings; remove some")]
    TooManyWarnings,
    /// No warning would come early enough, so the end of every lease would be postponed.
    #[error(
        "warn_before: the earliest warning comes less than the notice of {notice} before the end; add an earlier warning or shorten notice"
    )]
    WarnedTooLate { notice: Length },
}

impl Default for RawSchedule {
    fn default() -> Self {
        RawSchedule {
            warn_before: vec![Length::days(7), Length::days(1)],
            notice: Length::days(1),
            undo_window: Length::days(7),
            undo_gives: Length::days(1),
            keep_copy: true,
        }
    }
}

impl Default for LeaseSchedule {
    fn default() -> Self {
        LeaseSchedule::unchecked(RawSchedule::default())
    }
}

impl LeaseSchedule {
    /// Returns the same stages without the snapshot, for resources that cannot be copied, such as a cluster or a node.
    pub fn without_snapshot(self) -> LeaseSchedule {
        LeaseSchedule { keep_copy: false, ..self }
    }

    /// Returns how long a resource stays switched off before it is deleted.
    pub fn undo_window(&self) -> Length {
        self.undo_window
    }

    /// Returns how long a resource is lent again when its lessee undoes the end without naming a time.
    pub fn undo_gives(&self) -> Length {
        self.undo_gives
    }

    fn unchecked(raw: RawSchedule) -> LeaseSchedule {
        let RawSchedule { mut warn_before, notice, undo_window, undo_gives, keep_copy } = raw;
        warn_before.sort_unstable_by(|one, other| other.cmp(one));
        warn_before.dedup();
        LeaseSchedule { warn_before, notice, undo_window, undo_gives, keep_copy }
    }
}

impl TryFrom<RawSchedule> for LeaseSchedule {
    type Error = ScheduleError;

    fn try_from(raw: RawSchedule) -> Result<Self, ScheduleError> {
        let schedule = LeaseSchedule::unchecked(raw);
        if schedule.warn_before.len() > MAX_WARNINGS {
            return Err(ScheduleError::TooManyWarnings);
        }
        // With no configured warning at all, `first_warning` places one warning exactly one notice before the end.
        match schedule.warn_before.first() {
            Some(earliest) if *earliest < schedule.notice => {
                Err(ScheduleError::WarnedTooLate { notice: schedule.notice })
            }
            Some(_) | None => Ok(schedule),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_settings_get_their_defaults() {
        let read: LeaseSchedule = toml::from_str("warn_before = ['1h', '2d', '1h']").unwrap();
        let hours = read.warn_before.iter().map(|it| it.as_secs() / 3600);
        assert_eq!(hours.collect::<Vec<_>>(), [48, 1]);
        assert_eq!(read.undo_window, Length::days(7));
        assert_eq!(toml::from_str::<LeaseSchedule>("").unwrap(), LeaseSchedule::default());
    }

    #[test]
    fn a_wrong_setting_is_refused_with_its_name() {
        let refused =
            |raw: &str| toml::from_str::<LeaseSchedule>(raw).unwrap_err().message().to_owned();
        assert!(refused("warn_before = ['1h']\nnotice = '2h'").contains("the notice of 2h"));
        let many = (1..=9).map(|hours| format!("'{hours}h'")).collect::<Vec<_>>().join(",");
        assert!(refused(&format!("warn_before = [{many}]\nnotice = '1h'")).contains("8 warnings"));
        assert!(refused("undo_window = '0s'").contains("length of time"));
        assert!(refused("undo = '1d'").contains("unknown field"));
    }

    #[test]
    fn the_limits_themselves_are_accepted() {
        let read = |raw: &str| toml::from_str::<LeaseSchedule>(raw).unwrap();
        let many = (1..=8).map(|hours| format!("'{hours}h'")).collect::<Vec<_>>().join(",");
        let schedule = read(&format!("warn_before = [{many}]\nnotice = '8h'"));
        assert_eq!((schedule.warn_before.len(), schedule.notice.as_secs()), (8, 8 * 3600));
    }
}
