//! The pace at which one BMC gets requests.
//!
//! The bucket is four lines of `wait_for_permit`. The crate `governor` would wait by a timer of its own (`futures-timer`), which tests with
//! tokio's paused clock cannot advance.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bmc::BmcError;
use tokio::time::{Instant, sleep_until};
use tracing::warn;

/// The longest pause after errors.
const MAX_PAUSE: Duration = Duration::from_secs(30);

/// How often in a row a BMC may reject our credentials before it gets no further login. Many BMCs lock an account after five wrong passwords.
const MAX_REJECTIONS: u32 = 3;

/// How long such a BMC gets no login, unless `driver_info` changes: a changed node has a new gate.
const LOGIN_PAUSE: Duration = Duration::from_secs(60 * 60);

/// Delays requests, and refuses those that could lock the account.
pub(super) struct Pace {
    every: Duration,
    slack: Duration,
    state: Mutex<PaceState>,
}

struct PaceState {
    /// When the bucket will be full again. This is the virtual scheduling form of a token bucket: one timestamp replaces the counter.
    full_at: Instant,
    /// The end of the pause after errors. No request is sent before.
    rest_until: Instant,
    /// The number of errors in a row.
    errors: u32,
    /// How often the BMC has rejected our credentials since it last answered a request.
    rejections: u32,
    /// The name of a BMC that gets no login, and the end of that time.
    withheld: Option<(String, Instant)>,
}

impl Pace {
    pub(super) fn new(requests_per_second: u32, burst: u32) -> Self {
        let every = Duration::from_secs(1) / requests_per_second.max(1);
        let now = Instant::now();
        let state =
            PaceState { full_at: now, rest_until: now, errors: 0, rejections: 0, withheld: None };
        Pace { every, slack: every * burst.max(1), state: Mutex::new(state) }
    }

    /// Waits until the next request may be sent.
    pub(super) async fn wait_for_permit(&self) {
        let due = {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            let now = Instant::now();
            state.full_at = state.full_at.max(now) + self.every;
            let earliest = state.full_at.checked_sub(self.slack).unwrap_or(now);
            earliest.max(state.rest_until)
        };
        sleep_until(due).await;
    }

    /// Refuses a request to a BMC that has rejected our credentials too often.
    pub(super) fn check_login(&self) -> Result<(), BmcError> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match &state.withheld {
            Some((host, until)) if Instant::now() < *until => {
                Err(BmcError::LoginWithheld { host: host.clone(), times: state.rejections })
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Adapts the pause to an answer: every transient error in a row doubles it. Counts rejected credentials; silence does not end the
    /// count.
    pub(super) fn observe_answer<T>(&self, answer: &Result<T, BmcError>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if answer.is_ok() {
            state.rejections = 0;
            state.withheld = None;
        } else if let Err(BmcError::Unauthorized { host }) = answer {
            state.rejections += 1;
            if state.rejections >= MAX_REJECTIONS {
                warn!(
                    "the BMC at {host} rejected our credentials {} times in a row; it gets no login within an hour",
                    state.rejections
                );
                state.withheld = Some((host.clone(), Instant::now() + LOGIN_PAUSE));
            }
        }
        if answer.as_ref().is_err_and(BmcError::is_transient) {
            let rest = Duration::from_millis(250) * 2_u32.pow(state.errors.min(7));
            state.errors += 1;
            state.rest_until = Instant::now() + rest.min(MAX_PAUSE);
        } else {
            state.errors = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_burst_passes_immediately_and_the_rest_at_the_pace() {
        let pace = Pace::new(10, 5);
        let begun = Instant::now();
        for _ in 0..5 {
            pace.wait_for_permit().await;
        }
        assert_eq!(begun.elapsed(), Duration::ZERO);
        for _ in 0..10 {
            pace.wait_for_permit().await;
        }
        assert_eq!(begun.elapsed().as_millis() / 100, 10);
    }

    #[tokio::test(start_paused = true)]
    async fn consecutive_errors_lengthen_the_pause() {
        let pace = Pace::new(1000, 100);
        let busy = || {
            Err::<(), _>(BmcError::Busy { host: "bmc".to_owned(), reason: "slow down".to_owned() })
        };
        let mut rests = Vec::new();
        for _ in 0..3 {
            pace.observe_answer(&busy());
            let begun = Instant::now();
            pace.wait_for_permit().await;
            rests.push(begun.elapsed().as_millis());
        }
        assert_eq!(rests, [250, 500, 1000]);
        pace.observe_answer(&Ok(()));
        pace.observe_answer(&busy());
        let begun = Instant::now();
        pace.wait_for_permit().await;
        assert_eq!(begun.elapsed().as_millis(), 250);
    }

    #[tokio::test(start_paused = true)]
    async fn a_bmc_that_rejects_our_credentials_gets_no_login_for_an_hour() {
        let pace = Pace::new(1000, 100);
        let rejected = || Err::<(), _>(BmcError::Unauthorized { host: "bmc".to_owned() });
        let silent = || {
            let source = std::io::ErrorKind::TimedOut.into();
            Err::<(), _>(BmcError::Unreachable { host: "bmc".to_owned(), source })
        };
        pace.observe_answer(&rejected());
        pace.observe_answer(&rejected());
        pace.observe_answer(&Ok(()));
        // An answer begins a new count, and silence does not.
        pace.observe_answer(&rejected());
        pace.observe_answer(&silent());
        pace.observe_answer(&rejected());
        pace.check_login().unwrap();
        pace.observe_answer(&rejected());
        let refused = pace.check_login().unwrap_err().to_string();
        let words = "the BMC at bmc rejected our credentials 3 times in a row; it gets no other";
        assert!(refused.starts_with(words), "{refused}");
        // After the hour there is one try.
        tokio::time::advance(LOGIN_PAUSE).await;
        pace.check_login().unwrap();
        pace.observe_answer(&rejected());
        pace.check_login().unwrap_err();
        tokio::time::advance(LOGIN_PAUSE).await;
        pace.observe_answer(&Ok(()));
        pace.observe_answer(&rejected());
        pace.check_login().unwrap();
    }
}
