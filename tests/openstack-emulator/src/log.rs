//! The log of calls, in the order of arrival.

use std::collections::VecDeque;

use serde::Serialize;
use tokio::time::Instant;

/// How many calls the log keeps. A full log drops the oldest.
const KEPT: usize = 200_000;

/// One logged call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Call {
    /// The number of the call, counted from 1 in the order of arrival.
    pub number: u64,
    /// Milliseconds from the start of the cloud to the arrival of the call.
    pub at_millis: u64,
    /// Milliseconds until the answer. `None` while the call is in progress.
    pub took_millis: Option<u64>,
    pub method: String,
    /// The path, with the prefix of the service.
    pub path: String,
    /// The query, as the client sent it.
    pub query: String,
    /// The project of the caller. Empty without a valid token.
    pub project: String,
    /// The status of the answer. `None` if there was no answer.
    pub status: Option<u16>,
    /// Whether the service handled the call, even if it refused. False if a fault rule prevented that.
    pub worked: bool,
    pub request_id: String,
    /// The id that the client sent (`X-Openstack-Request-Id`). Empty if the client sent none.
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

    pub(crate) fn clear(&mut self) {
        self.calls.clear();
    }
}

fn elapsed(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}
