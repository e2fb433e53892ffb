//! What was asked, in order.

use std::collections::VecDeque;

use serde::Serialize;
use tokio::time::Instant;

/// How many calls are kept; the oldest go first.
const KEPT: usize = 200_000;

/// One call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Call {
    /// Its number, counted from 1 in the order of arrival.
    pub number: u64,
    /// Milliseconds from the cloud's start to its arrival.
    pub at_millis: u64,
    /// Milliseconds it took; `None` while it is under way.
    pub took_millis: Option<u64>,
    /// The HTTP method.
    pub method: String,
    /// The path, with the service's prefix.
    pub path: String,
    /// The query, as it was sent.
    pub query: String,
    /// The caller's project; empty without a valid token.
    pub project: String,
    /// The status that was answered; `None` when nothing was.
    pub status: Option<u16>,
    /// Whether the service did the work, or refused it by itself; false when a rule stepped in before.
    pub worked: bool,
    /// The request's id.
    pub request_id: String,
    /// The id that whoever sent it gave it (`X-Openstack-Request-Id`); empty where that is none.
    pub global_request_id: String,
}

#[derive(Debug)]
pub(crate) struct Log {
    calls: VecDeque<Call>,
    next: u64,
    started: Instant,
}

impl Log {
    pub(crate) fn new() -> Log {
        Log { calls: VecDeque::new(), next: 1, started: Instant::now() }
    }

    pub(crate) fn begin(
        &mut self,
        method: &str,
        path: &str,
        query: &str,
        (request_id, global): (&str, &str),
    ) -> u64 {
        if self.calls.len() == KEPT {
            self.calls.pop_front();
        }
        let number = self.next;
        self.next += 1;
        self.calls.push_back(Call {
            number,
            at_millis: elapsed(self.started),
            took_millis: None,
            method: method.to_owned(),
            path: path.to_owned(),
            query: query.to_owned(),
            project: String::new(),
            status: None,
            worked: false,
            request_id: request_id.to_owned(),
            global_request_id: global.to_owned(),
        });
        number
    }

    fn entry(&mut self, number: u64) -> Option<&mut Call> {
        let first = self.calls.front()?.number;
        self.calls.get_mut(usize::try_from(number.checked_sub(first)?).ok()?)
    }

    pub(crate) fn worked(&mut self, number: u64, project: &str) {
        if let Some(call) = self.entry(number) {
            call.worked = true;
            call.project = project.to_owned();
        }
    }

    pub(crate) fn end(&mut self, number: u64, status: Option<u16>) {
        let now = elapsed(self.started);
        if let Some(call) = self.entry(number) {
            call.status = status;
            call.took_millis = Some(now.saturating_sub(call.at_millis));
        }
    }

    pub(crate) fn calls(&self) -> Vec<Call> {
        self.calls.iter().cloned().collect()
    }

    pub(crate) fn count(&self, want: impl Fn(&Call) -> bool) -> usize {
        self.calls.iter().filter(|call| want(call)).count()
    }

    /// Forgets all calls; numbers go on.
    pub(crate) fn clear(&mut self) {
        self.calls.clear();
    }
}

fn elapsed(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}
