//! One request over UDP, sent again until an answer arrives or the time is up.

use std::io;
use std::time::Duration;

use bmc::BmcError;
use tokio::time::{Instant, timeout_at};

use crate::port::Route;
use crate::target::Target;

/// How long to wait after each sending; the last value repeats.
const SCHEDULE: [Duration; 3] =
    [Duration::from_millis(500), Duration::from_secs(1), Duration::from_secs(2)];

/// The limits of repeating a request.
#[derive(Clone, Copy)]
pub(crate) struct RetryLimits {
    pub(crate) deadline: Instant,
    /// The most sendings of the request.
    pub(crate) sendings: usize,
}

impl RetryLimits {
    /// Repeats until `deadline`, however often that is.
    pub(crate) const fn until(deadline: Instant) -> Self {
        RetryLimits { deadline, sendings: usize::MAX }
    }

    /// Repeats once for each step of the schedule: 3.5 s without an answer.
    pub(crate) const fn short(deadline: Instant) -> Self {
        RetryLimits { deadline, sendings: SCHEDULE.len() }
    }
}

/// A request, and how to recognize its answer.
pub(crate) trait Question {
    type Answer;

    /// Returns the datagram to send; called once per sending.
    fn datagram(&mut self) -> Vec<u8>;

    /// Returns the answer if this datagram is one; any other datagram is dropped.
    fn accept(&mut self, datagram: &[u8]) -> Option<Self::Answer>;
}

/// Sends the request until an answer arrives; `None` if no answer came in time.
pub(crate) async fn ask<Q: Question>(
    route: &mut Route<'_>,
    question: &mut Q,
    patience: RetryLimits,
) -> io::Result<Option<Q::Answer>> {
    let waits = SCHEDULE.into_iter().chain(std::iter::repeat(SCHEDULE[SCHEDULE.len() - 1]));
    for wait in waits.take(patience.sendings) {
        route.send(&question.datagram()).await?;

        let until = patience.deadline.min(Instant::now() + wait);
        while let Ok(Some(datagram)) = timeout_at(until, route.receive()).await {
            if let Some(answer) = question.accept(&datagram) {
                return Ok(Some(answer));
            }
        }
        if Instant::now() >= patience.deadline {
            break;
        }
    }
    Ok(None)
}

/// Makes the error for a missing answer.
pub(crate) fn unreachable(target: &Target, why: &'static str) -> BmcError {
    let source = io::Error::new(io::ErrorKind::TimedOut, why);
    BmcError::Unreachable { host: target.address.to_string(), source }
}
