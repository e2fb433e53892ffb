//! Begins traces, and continues those of callers.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use trace_context::{SpanId, TraceContext, TraceId};

use crate::{Span, SpanKind, SpanSink};

/// Begins the first span of a request or of a turn. Clones share one sink; the default records nothing.
#[derive(Clone, Default)]
pub struct Tracer(Option<Tracing>);

#[derive(Clone)]
struct Tracing {
    sink: Arc<dyn SpanSink>,
    ratio: SampleRatio,
}

/// The part of the traces without a caller's decision that is recorded: from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SampleRatio(f64);

/// The number is not between 0 and 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be between 0 and 1")]
pub struct InvalidRatio;

impl TryFrom<f64> for SampleRatio {
    type Error = InvalidRatio;

    fn try_from(ratio: f64) -> Result<Self, InvalidRatio> {
        if (0.0..=1.0).contains(&ratio) { Ok(SampleRatio(ratio)) } else { Err(InvalidRatio) }
    }
}

impl SampleRatio {
    /// Whether a trace is recorded: the ids of all traces are spread evenly between 0 and 1.
    fn takes(self, trace: TraceId) -> bool {
        // A double has 53 bits.
        ((trace.sampling_number() >> 11) as f64 / (1_u64 << 53) as f64) < self.0
    }
}

impl Tracer {
    /// Makes a tracer that gives all spans to `sink`.
    pub fn new(sink: Arc<dyn SpanSink>, ratio: SampleRatio) -> Tracer {
        Tracer(Some(Tracing { sink, ratio }))
    }

    /// Begins a span below `parent`, or a trace of its own.
    pub fn begin<N: Into<Cow<'static, str>>>(
        &self,
        parent: Option<&TraceContext>,
        kind: SpanKind,
        name: impl FnOnce() -> N,
    ) -> Span {
        let Some(Tracing { sink, ratio }) = &self.0 else { return Span::default() };
        let id = SpanId::of_random(rand::random());
        let context = parent.map_or_else(
            || {
                let trace = TraceId::of_random(rand::random());
                TraceContext::root(trace, id, ratio.takes(trace))
            },
            |parent| parent.child(id),
        );
        let parent = parent.map(|parent| parent.span_id);
        Span::begin(context, parent, sink.clone(), kind, name)
    }
}

impl fmt::Debug for Tracer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Tracer(on)" } else { "Tracer" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ratio_decides_by_the_id_of_the_trace() {
        let taken = |ratio: f64| {
            let ratio = SampleRatio::try_from(ratio).unwrap();
            let ids = (0..1000_u128).map(|n| TraceId::of_random((n << 54) | 1));
            ids.filter(|id| ratio.takes(*id)).count()
        };
        assert_eq!((taken(0.0), taken(1.0)), (0, 1000));
        // The ids are evenly spread over 1024 steps.
        assert_eq!(taken(0.25), 256);
        assert!(SampleRatio::try_from(1.5).is_err() && SampleRatio::try_from(f64::NAN).is_err());
    }
}
