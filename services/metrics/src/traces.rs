//! The spans of traces.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

/// Counts the spans that were to be sent to the collector. Clones count the same spans.
#[derive(Clone, Debug, Default)]
pub struct TraceMetrics {
    spans: Family<OutcomeLabels, Counter>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OutcomeLabels {
    outcome: &'static str,
}

/// The end of a span on its way to the collector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanOutcome {
    /// The collector took the span.
    Sent,
    /// The queue was full, or the collector was away for too long.
    Dropped,
    /// The collector refused the span.
    Refused,
}

impl TraceMetrics {
    /// Counts spans.
    pub fn ended(&self, outcome: SpanOutcome, count: u64) {
        let outcome = match outcome {
            SpanOutcome::Sent => "sent",
            SpanOutcome::Dropped => "dropped",
            SpanOutcome::Refused => "refused",
        };
        if count > 0 {
            self.spans.get_or_create(&OutcomeLabels { outcome }).inc_by(count);
        }
    }

    pub(crate) fn register(&self, registry: &mut Registry) {
        registry.register(
            "bedplate_trace_spans",
            "Spans of recorded traces, by whether the collector took them",
            self.spans.clone(),
        );
    }
}
