//! The clock of a BMC, which may be wrong.

use jiff::tz::{Offset, TimeZone};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct BmcClock {
    /// How far the clock is ahead of the host's, in seconds.
    pub(crate) ahead_s: i64,
    /// The offset of local time from UTC, in seconds.
    offset_s: i32,
}

impl BmcClock {
    pub(crate) fn now(self) -> Timestamp {
        Timestamp::now() + SignedDuration::from_secs(self.ahead_s)
    }

    /// The time as a BMC shows it: local time in whole seconds, with its offset from UTC.
    pub(crate) fn shown(self) -> String {
        self.now()
            .to_zoned(TimeZone::fixed(self.offset()))
            .strftime("%Y-%m-%dT%H:%M:%S%:z")
            .to_string()
    }

    pub(crate) fn shown_offset(self) -> String {
        self.now().to_zoned(TimeZone::fixed(self.offset())).strftime("%:z").to_string()
    }

    pub(crate) fn set(&mut self, time: Option<Timestamp>, offset: Option<Offset>) {
        if let Some(time) = time {
            self.ahead_s = time.duration_since(Timestamp::now()).as_secs();
        }
        self.offset_s = offset.map_or(self.offset_s, Offset::seconds);
    }

    fn offset(self) -> Offset {
        Offset::from_seconds(self.offset_s).unwrap_or(Offset::UTC)
    }
}
