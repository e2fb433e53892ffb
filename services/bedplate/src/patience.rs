//! `--wait` and `--timeout`: whether somebody waits, and how long.

use std::time::Duration;

use clap::Args;
use jiff::SignedDuration;
use tokio::time::{Instant, sleep};

use crate::exit::{Exit, Failure};

/// How often what is waited for is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Whether somebody waits.
#[derive(Args, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Patience {
    /// Waits until it is so, or turns out not to become so, and shows how far it is.
    #[arg(long)]
    pub(crate) wait: bool,
    /// Waits no longer than this, such as 90s, 15m or 2h; what was asked for goes on.
    #[arg(long, value_name = "LENGTH", value_parser = length, requires = "wait")]
    timeout: Option<Duration>,
}

/// Until when somebody waits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline {
    begun: Instant,
    timeout: Option<Duration>,
}

impl Patience {
    /// Waits as long as it takes.
    pub(crate) const ENDLESS: Patience = Patience { wait: true, timeout: None };

    /// From now on.
    pub(crate) fn begin(self) -> Deadline {
        Deadline::after(self.timeout)
    }
}

impl Deadline {
    /// After so long; never, where nothing is said.
    pub(crate) fn after(timeout: Option<Duration>) -> Deadline {
        Deadline { begun: Instant::now(), timeout }
    }

    /// Waits a moment before the next look at `what`; an error once it was waited long enough.
    pub(crate) async fn pause(self, what: &str) -> Result<(), Failure> {
        let left = self.timeout.map(|timeout| timeout.saturating_sub(self.begun.elapsed()));
        if left.is_some_and(|left| left.is_zero()) {
            let secs = self.timeout.unwrap_or_default().as_secs();
            return Err(Failure::new(
                Exit::TimedOut,
                format!(
                    "{what} is not there after {secs} s. It goes on by itself. To go on: wait again, or longer by --timeout"
                ),
            ));
        }
        sleep(left.map_or(LOOK_EVERY, |left| left.min(LOOK_EVERY))).await;
        Ok(())
    }
}

/// A length of time as people write it.
pub(crate) fn length(text: &str) -> Result<Duration, String> {
    let wrong = || "it must be a length of time, such as 90s, 15m or 2h".to_owned();
    let length: SignedDuration = text.parse().map_err(|_| wrong())?;
    Duration::try_from(length).ok().filter(|length| !length.is_zero()).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_read_as_people_write_them() {
        assert_eq!(length("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(length("1h30m"), Ok(Duration::from_mins(90)));
        for wrong in ["", "soon", "5", "-1s", "0s"] {
            assert!(length(wrong).is_err(), "{wrong:?}");
        }
    }

    #[tokio::test]
    async fn who_waited_long_enough_is_told_so() {
        let deadline = Deadline::after(Some(Duration::from_millis(1)));
        let failure = loop {
            if let Err(failure) = deadline.pause("rack r1").await {
                break failure;
            }
        };
        assert_eq!(failure.exit, Exit::TimedOut);
        assert!(failure.to_string().starts_with("rack r1 is not there after"), "{failure}");
    }
}
