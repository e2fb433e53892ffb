//! The step that sets the clock of a BMC, by Ironic's names.

use jiff::Timestamp;
use jiff::fmt::strtime;
use jiff::tz::Offset;
use serde_json::{Map, Value};

/// The step that sets the clock of the BMC.
pub const SET_BMC_CLOCK: &str = "set_bmc_clock";

pub(crate) const TIME: &str = "target_datetime";
pub(crate) const OFFSET: &str = "datetime_local_offset";

/// The arguments of the step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockSetting {
    /// The time to set. `None` is the time at which the step runs.
    pub time: Option<Timestamp>,
    /// The offset of the BMC's local time from UTC. `None` leaves the offset as it is.
    pub offset: Option<Offset>,
}

/// Why an argument of the step is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{argument}: must be {form}")]
pub struct ClockRefused {
    pub argument: &'static str,
    /// The right form, in words.
    pub form: &'static str,
}

/// Parses the arguments of the step. An argument that is null counts as missing.
pub fn parse_clock_setting(args: &Map<String, Value>) -> Result<ClockSetting, ClockRefused> {
    let given = |argument| args.get(argument).filter(|value| !value.is_null());
    let time = given(TIME).map(|value| {
        let time = value.as_str().and_then(|text| text.parse().ok());
        let form = "a time of ISO 8601 with its offset from UTC, such as 2026-01-31T23:59:00Z";
        time.ok_or(ClockRefused { argument: TIME, form })
    });
    let offset = given(OFFSET).map(|value| {
        let form = "an offset from UTC such as +01:00";
        value.as_str().and_then(offset).ok_or(ClockRefused { argument: OFFSET, form })
    });
    Ok(ClockSetting { time: time.transpose()?, offset: offset.transpose()? })
}

fn offset(text: &str) -> Option<Offset> {
    strtime::parse("%:z", text).ok()?.offset().filter(|offset| offset.seconds() % 60 == 0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parsed(args: Value) -> Result<ClockSetting, String> {
        parse_clock_setting(args.as_object().unwrap()).map_err(|why| why.to_string())
    }

    #[test]
    fn the_time_and_the_offset_of_a_clock_are_parsed() {
        assert_eq!(parsed(json!({})), Ok(ClockSetting::default()));
        assert_eq!(parsed(json!({TIME: null, OFFSET: null})), Ok(ClockSetting::default()));
        let setting = parsed(json!({TIME: "2026-01-31T23:59:00-01:00", OFFSET: "-05:30"}));
        let time = "2026-02-01T00:59:00Z".parse().unwrap();
        let offset = Offset::from_seconds(-(5 * 3600 + 1800)).unwrap();
        assert_eq!(setting, Ok(ClockSetting { time: Some(time), offset: Some(offset) }));
    }

    #[test]
    fn another_form_is_refused_by_its_argument() {
        for wrong in [json!("2026-01-31T23:59:00"), json!("now"), json!(1_769_903_940), json!("")] {
            let why = parsed(json!({TIME: wrong})).unwrap_err();
            assert!(why.starts_with("target_datetime: must be a time of ISO 8601"), "{why}");
        }
        for wrong in
            [json!("1"), json!("+01:00:30"), json!("Europe/Berlin"), json!("+25:61"), json!(1)]
        {
            let why = parsed(json!({OFFSET: wrong})).unwrap_err();
            assert_eq!(why, "datetime_local_offset: must be an offset from UTC such as +01:00");
        }
    }
}
