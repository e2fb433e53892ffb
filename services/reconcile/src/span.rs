//! The span of a turn. A turn continues the trace of the request that asked for its work.

use std::fmt::Display;

use spans::{Span, SpanKind, TraceContext, Tracer};

use crate::{TurnError, TurnErrorKind};

/// Begins the span of a turn: in the trace of the request that asked for the work in progress, or in a trace of its own. `id` is the
/// attribute with the id of the resource.
pub fn begin_span(
    tracer: &Tracer,
    request: Option<&TraceContext>,
    name: &'static str,
    id: (&'static str, impl Display),
) -> Span {
    let kind = if request.is_some() { SpanKind::Consumer } else { SpanKind::Internal };
    let mut span = tracer.begin(request, kind, || name);
    if span.is_recorded() {
        span.set(id.0, id.1.to_string());
    }
    span
}

/// Ends the span of a turn, with the error of the turn.
pub fn end_span<T, E: TurnError>(mut span: Span, ended: &Result<T, E>) {
    if let Err(error) = ended {
        span.fail(match error.kind() {
            TurnErrorKind::Stale => "stale",
            TurnErrorKind::Database => "database",
            TurnErrorKind::Elsewhere => "elsewhere",
            TurnErrorKind::Failed => "failed",
        });
    }
}
