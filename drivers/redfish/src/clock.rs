//! The clock of a BMC (DSP0268 `Manager`, `DateTime` and `DateTimeLocalOffset`).

use async_trait::async_trait;
use bmc::{BmcError, Result};
use jiff::tz::{Offset, TimeZone};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::document::Document;
use crate::service::{Resource, Service};

const TIME: &str = "DateTime";
const OFFSET: &str = "DateTimeLocalOffset";

/// How far the clock may be from the time that was set, when it is read back. A BMC that takes its time from NTP ignores what it is told.
const TOLERANCE: SignedDuration = SignedDuration::from_secs(60);

#[async_trait]
impl bmc::Clock for Service {
    async fn set_clock(&self, time: Timestamp, offset: Option<Offset>) -> Result<()> {
        let manager = self.manager_with_clock().await?;
        self.patch(&manager, change(time, offset)).await?;
        let shown = self.get(&manager.url).await?;
        let shown = shown.body.word(TIME);
        let differs = |shown: Timestamp| shown.duration_since(time).abs() > TOLERANCE;
        if shown.parse().map_or(true, differs) {
            return Err(BmcError::Refused {
                request: format!("to set its clock to {time}"),
                answer: format!("afterwards it shows {shown:?}"),
                transient: false,
            });
        }
        Ok(())
    }
}

impl Service {
    /// Returns the first manager of the system that shows its time.
    async fn manager_with_clock(&self) -> Result<Resource> {
        let system = self.system().await?.body;
        for manager in self.managers(&system).await? {
            if let Some(manager) = self.find(&manager).await?
                && !manager.body.word(TIME).is_empty()
            {
                return Ok(manager);
            }
        }
        Err(BmcError::Unsupported { what: "set its clock: it shows no time".to_owned() })
    }
}

/// Returns the properties that set the clock. Some BMCs show no fractions of a second and refuse them, so none are sent.
fn change(time: Timestamp, offset: Option<Offset>) -> Value {
    let local = time.to_zoned(TimeZone::fixed(offset.unwrap_or(Offset::UTC)));
    let mut change = json!({TIME: local.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string()});
    if offset.is_some() {
        change[OFFSET] = json!(local.strftime("%:z").to_string());
    }
    change
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(offset: Option<Offset>, want: Value) {
        let time = "2026-02-28T23:30:00.75Z".parse().unwrap();
        assert_eq!(change(time, offset), want);
    }

    #[test]
    fn the_time_is_sent_in_whole_seconds_of_the_offset() {
        check(None, json!({TIME: "2026-02-28T23:30:00+00:00"}));
        let east = Offset::from_seconds(5 * 3600 + 1800).unwrap();
        check(Some(east), json!({TIME: "2026-03-01T05:00:00+05:30", OFFSET: "+05:30"}));
        let west = Offset::from_seconds(-1800).unwrap();
        check(Some(west), json!({TIME: "2026-02-28T23:00:00-00:30", OFFSET: "-00:30"}));
    }
}
