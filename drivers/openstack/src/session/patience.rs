//! Decides when a call is retried, and how long to wait before.

use std::time::Duration;

use jiff::Timestamp;
use reqwest::{Method, StatusCode};

use crate::config::RetryPolicy;
use crate::error::CloudError;

/// The longest wait that a service can impose; after it, the caller's next turn retries.
const LONGEST_WAIT: Duration = Duration::from_secs(24 * 3600);

/// Whether a request may be repeated although the first one may have been executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Repeat {
    /// Harmless: the repetition finds the effect of the first request.
    Safe,
    /// Harmful: the repetition would have a second effect.
    Unsafe,
}

#[derive(Debug)]
pub(super) struct Failure {
    pub(super) error: CloudError,
    /// Whether the request certainly did not reach the service: no connection could be made.
    pub(super) unsent: bool,
}

impl Repeat {
    /// RFC 9110 §9.2.2. Neutron's and Nova's PUTs are in fact idempotent too: each sets the named fields.
    pub(super) fn of(method: &Method) -> Repeat {
        let safe = [Method::GET, Method::HEAD, Method::PUT, Method::DELETE].contains(method);
        if safe { Repeat::Safe } else { Repeat::Unsafe }
    }
}

impl Failure {
    /// Whether a retry now is useful and harmless.
    pub(super) fn may_repeat(&self, repeat: Repeat) -> bool {
        let safe = repeat == Repeat::Safe;
        match &self.error {
            CloudError::Unreachable { .. } => self.unsent || safe,
            CloudError::Busy { answer, retry_after } => match answer.status {
                // The resource is being changed, which takes longer than a call.
                StatusCode::CONFLICT => false,
                StatusCode::TOO_MANY_REQUESTS | StatusCode::PAYLOAD_TOO_LARGE => true,
                // A service that sends `Retry-After` has refused the request and done nothing.
                StatusCode::SERVICE_UNAVAILABLE => safe || retry_after.is_some(),
                _ => safe,
            },
            CloudError::Untrusted { .. }
            | CloudError::Failed(_)
            | CloudError::Unauthorized(_)
            | CloudError::Forbidden(_)
            | CloudError::NotFound(_)
            | CloudError::Conflict(_)
            | CloudError::QuotaExceeded(_)
            | CloudError::Refused(_)
            | CloudError::Malformed { .. }
            | CloudError::NoEndpoint { .. }
            | CloudError::InvalidId { .. } => false,
        }
    }
}

/// Returns the pause after attempt number `attempt`, counted from one: doubled each time, with a random part so that clients do not retry
/// together.
pub(super) fn pause(patience: &RetryPolicy, attempt: u32) -> Duration {
    let doubled = patience.pause.saturating_mul(1 << attempt.saturating_sub(1).min(6));
    doubled.mul_f64(rand::random_range(0.5..1.0))
}

/// Parses `Retry-After`, in seconds or as a date (RFC 9110 §10.2.3).
pub(super) fn retry_after(raw: &str, now: Timestamp) -> Option<Duration> {
    let raw = raw.trim();
    let wait = match raw.parse::<u64>() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => {
            let date = jiff::fmt::rfc2822::parse(raw).ok()?.timestamp();
            Duration::try_from(date.duration_since(now)).unwrap_or_default()
        }
    };
    Some(wait.min(LONGEST_WAIT))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_is_read_in_both_forms() {
        let now: Timestamp = "1994-11-06T08:49:30Z".parse().unwrap();
        let seconds = |raw| retry_after(raw, now).map(|wait| wait.as_secs());
        assert_eq!(seconds("7"), Some(7));
        assert_eq!(seconds("Sun, 06 Nov 1994 08:49:37 GMT"), Some(7));
        assert_eq!(seconds("Sun, 06 Nov 1994 08:49:20 GMT"), Some(0));
        assert_eq!(seconds("99999999999"), Some(86400));
        assert_eq!(seconds("-1"), None);
        assert_eq!(seconds("soon"), None);
    }

    #[test]
    fn pauses_double_and_stay_bounded() {
        let patience = RetryPolicy { pause: Duration::from_secs(1), ..RetryPolicy::default() };
        for (attempt, most) in [(0, 1), (1, 1), (2, 2), (3, 4), (7, 64), (u32::MAX, 64)] {
            let pause = pause(&patience, attempt);
            assert!(pause <= Duration::from_secs(most), "{attempt}: {pause:?}");
            assert!(pause >= Duration::from_secs(most) / 2, "{attempt}: {pause:?}");
        }
    }
}
