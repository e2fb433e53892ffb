//! The count and the span of each request to one BMC.

use bmc::BmcError;
use metrics::{BmcCall, BmcCallTimer, BmcMetrics};
use spans::{Span, SpanKind};

/// Counts and traces the requests to one BMC.
#[derive(Clone, Debug, Default)]
pub(crate) struct CallCounter {
    pub(crate) metrics: BmcMetrics,
    /// The driver of the node.
    pub(crate) driver: &'static str,
    /// The vendor of the machine, as one of a few words.
    pub(crate) vendor: &'static str,
}

/// A request in progress.
pub(super) struct Call {
    timer: BmcCallTimer,
    span: Span,
}

impl CallCounter {
    /// Begins a request. It carries no trace context, because no BMC knows one and a BMC fails more easily than any other server.
    pub(super) fn begin(&self, capability: &'static str) -> Call {
        let CallCounter { driver, vendor, .. } = *self;
        let timer = self.metrics.begin(BmcCall { driver, vendor, capability });
        let mut span = Span::child(SpanKind::Client, || format!("BMC {capability}"));
        span.set("bedplate.bmc.driver", driver);
        span.set("bedplate.bmc.vendor", vendor);
        Call { timer, span }
    }
}

impl Call {
    /// Counts the answer, and ends the span.
    pub(super) fn end<T>(mut self, answer: &Result<T, BmcError>) {
        let outcome = outcome(answer);
        self.timer.ended(outcome);
        if answer.is_err() {
            self.span.fail(outcome);
        }
    }
}

/// The word under which an answer is counted.
fn outcome<T>(answer: &Result<T, BmcError>) -> &'static str {
    match answer {
        Ok(_) => "ok",
        Err(BmcError::Unreachable { .. }) => "unreachable",
        Err(BmcError::Untrusted { .. }) => "untrusted",
        Err(BmcError::Unauthorized { .. }) => "unauthorized",
        Err(BmcError::LoginWithheld { .. }) => "login_withheld",
        Err(BmcError::Busy { .. }) => "busy",
        Err(BmcError::Stopped { .. }) => "stopped",
        Err(BmcError::InUse { .. }) => "in_use",
        Err(BmcError::Refused { .. }) => "refused",
        Err(BmcError::Malformed { .. }) => "malformed",
        Err(BmcError::Unsupported { .. }) => "unsupported",
    }
}
