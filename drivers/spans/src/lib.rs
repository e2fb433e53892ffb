#![doc = include_str!("../README.md")]

mod span;
mod tracer;

mod ended_span;
#[cfg(any(test, feature = "samples"))]
mod kept_spans;

pub use ended_span::{AttributeValue, EndedSpan, SpanKind, SpanSink};
#[cfg(any(test, feature = "samples"))]
pub use kept_spans::KeptSpans;
pub use span::{Span, current, current_headers};
pub use trace_context::{SpanId, TRACEPARENT, TRACESTATE, TraceContext, TraceId};
pub use tracer::{InvalidRatio, SampleRatio, Tracer};
