//! One question over UDP: sent again until it is answered or patience ends.

use std::io;
use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use crate::port::Route;

/// How long to wait after each sending; the last one repeats.
const SCHEDULE: [Duration; 3] =
    [Duration::from_millis(500), Duration::from_secs(1), Duration::from_secs(2)];

/// When to stop asking.
#[derive(Clone, Copy)]
pub(crate) struct Patience {
    pub(crate) deadline: Instant,
    /// How often the question is sent at most.
    pub(crate) sendings: usize,
}

impl Patience {
    /// Asks until `deadline`, however often that is.
    pub(crate) const fn until(deadline: Instant) -> Self {
        Patience { deadline, sendings: usize::MAX }
    }

    /// Asks as often as there are steps in the schedule: 3.5 s without an answer.
    pub(crate) const fn short(deadline: Instant) -> Self {
        Patience { deadline, sendings: SCHEDULE.len() }
    }
}

/// A question and how to know its answer.
pub(crate) trait Question {
    type Answer;

    /// The datagram to send; asked for once per sending.
    fn datagram(&mut self) -> Vec<u8>;

    /// The answer, if this datagram is one; anything else is dropped.
    fn accept(&mut self, datagram: &[u8]) -> Option<Self::Answer>;
}

/// Asks until there is an answer; `None` when there was none in time.
pub(crate) async fn ask<Q: Question>(
    route: &mut Route<'_>,
    question: &mut Q,
    patience: Patience,
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
