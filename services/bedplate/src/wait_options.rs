//! `--wait` and `--timeout`: whether a command waits for the result, and how long.

use std::time::Duration;

use clap::Args;
use jiff::SignedDuration;
use tokio::time::{Instant, sleep};

use crate::exit::{Exit, Failure};

/// How often the awaited resource is read.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Whether a command waits, and how long.
#[derive(Args, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WaitOptions {
    /// Wait for completion or failure, and show the progress.
    #[arg(long)]
    pub(crate) wait: bool,
    /// Stop waiting after this time, for example 90s, 15m or 2h; the operation continues.
    #[arg(long, value_name = "LENGTH", value_parser = length, requires = "wait")]
    timeout: Option<Duration>,
}

/// The end of the waiting time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline {
    begun: Instant,
    timeout: Option<Duration>,
}

impl WaitOptions {
    pub(crate) const ENDLESS: WaitOptions = WaitOptions { wait: true, timeout: None };

    /// Starts the waiting time.
    pub(crate) fn begin(self) -> Deadline {
        Deadline::after(self.timeout)
    }
}

impl Deadline {
    /// Starts a waiting time of `timeout`; `None` means without a timeout.
    pub(crate) fn after(timeout: Option<Duration>) -> Deadline {
        Deadline { begun: Instant::now(), timeout }
    }

    /// Waits a moment before the next look at `what`. Returns an error once the timeout has passed.
    pub(crate) async fn pause(self, what: &str) -> Result<(), Failure> {
        let left = self.timeout.map(|timeout| timeout.saturating_sub(self.begun.elapsed()));
        if left.is_some_and(|left| left.is_zero()) {
            let timeout = SignedDuration::try_from(self.timeout.unwrap_or_default());
            let timeout = readable::duration(timeout.unwrap_or(SignedDuration::MAX));
            return Err(Failure::new(
                Exit::TimedOut,
                format!(
                    "timed out after {timeout} waiting for {what}. The operation continues. Hint: wait again, or longer with --timeout"
                ),
            ));
        }
        sleep(left.map_or(LOOK_EVERY, |left| left.min(LOOK_EVERY))).await;
        Ok(())
    }
}

/// Parses a duration such as `90s`.
pub(crate) fn length(text: &str) -> Result<Duration, String> {
    let wrong = || "must be a duration, for example 90s, 15m or 2h".to_owned();
    let length: SignedDuration = text.parse().map_err(|_| wrong())?;
    Duration::try_from(length).ok().filter(|length| !length.is_zero()).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_parsed() {
        assert_eq!(length("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(length("1h30m"), Ok(Duration::from_mins(90)));
        for wrong in ["", "soon", "5", "-1s", "0s"] {
            assert!(length(wrong).is_err(), "{wrong:?}");
        }
    }

    #[tokio::test]
    async fn a_passed_timeout_is_an_error() {
        let deadline = Deadline::after(Some(Duration::from_millis(1)));
        let failure = loop {
            if let Err(failure) = deadline.pause("rack r1").await {
                break failure;
            }
        };
        assert_eq!(failure.exit, Exit::TimedOut);
        assert!(
            failure.to_string().starts_with("timed out after 0 s waiting for rack r1"),
            "{failure}"
        );
    }
}
