//! Spans in progress, and the current span of a task.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use tokio::task_local;
use trace_context::{SpanId, TraceContext};

use crate::{AttributeValue, EndedSpan, SpanKind, SpanSink};

task_local! {
    static CURRENT: Option<CurrentSpan>;
}

/// The span in which a task runs, as the spans below it see it.
#[derive(Clone)]
struct CurrentSpan {
    context: TraceContext,
    sink: Arc<dyn SpanSink>,
}

/// An operation in progress. It ends when the value is dropped.
#[must_use]
#[derive(Default)]
pub struct Span(Option<OpenSpan>);

struct OpenSpan {
    current: CurrentSpan,
    /// `None` if the trace is not recorded.
    recording: Option<Box<Recording>>,
}

/// The facts about a span that are known so far.
struct Recording {
    parent: Option<SpanId>,
    name: Cow<'static, str>,
    kind: SpanKind,
    begun_at: SystemTime,
    begun: Instant,
    attributes: Vec<(&'static str, AttributeValue)>,
    is_failed: bool,
}

/// Returns the context of the span in which the current task runs: for the headers of a request, or the record of an intent.
pub fn current() -> Option<TraceContext> {
    CURRENT.try_with(|current| current.as_ref().map(|it| it.context.clone())).ok().flatten()
}

/// Returns the headers of a request that is a part of the current span; none without a current span.
pub fn current_headers() -> Vec<(&'static str, String)> {
    current().map(|context| context.headers().collect()).unwrap_or_default()
}

impl Span {
    /// Begins an operation of the current span. Without a current span, nothing is recorded.
    pub fn child<N: Into<Cow<'static, str>>>(kind: SpanKind, name: impl FnOnce() -> N) -> Span {
        let Ok(Some(parent)) = CURRENT.try_with(Clone::clone) else { return Span(None) };
        let context = parent.context.child(SpanId::of_random(rand::random()));
        let parent_id = Some(parent.context.span_id);
        Span::begin(context, parent_id, parent.sink, kind, name)
    }

    pub(crate) fn begin<N: Into<Cow<'static, str>>>(
        context: TraceContext,
        parent: Option<SpanId>,
        sink: Arc<dyn SpanSink>,
        kind: SpanKind,
        name: impl FnOnce() -> N,
    ) -> Span {
        let recording = context.is_sampled().then(|| {
            Box::new(Recording {
                parent,
                name: name().into(),
                kind,
                begun_at: SystemTime::now(),
                begun: Instant::now(),
                attributes: Vec::new(),
                is_failed: false,
            })
        });
        Span(Some(OpenSpan { current: CurrentSpan { context, sink }, recording }))
    }

    /// Whether the span is recorded, so that its attributes are worth their making.
    pub fn is_recorded(&self) -> bool {
        self.0.as_ref().is_some_and(|open| open.recording.is_some())
    }

    /// The context of the span, for the headers of a request.
    pub fn context(&self) -> Option<&TraceContext> {
        self.0.as_ref().map(|open| &open.current.context)
    }

    /// Adds an attribute. Its value contains no text of a user and no secret.
    pub fn set(&mut self, name: &'static str, value: impl Into<AttributeValue>) {
        if let Some(recording) = self.recording() {
            recording.attributes.push((name, value.into()));
        }
    }

    /// Records that the operation failed; `reason` is one of a few words.
    pub fn fail(&mut self, reason: impl Into<AttributeValue>) {
        if let Some(recording) = self.recording() {
            recording.is_failed = true;
            recording.attributes.push(("error.type", reason.into()));
        }
    }

    /// Runs `work` with this span as the current one. Tasks that `work` spawns are not included.
    pub fn run<F: Future>(&self, work: F) -> impl Future<Output = F::Output> + use<F> {
        CURRENT.scope(self.0.as_ref().map(|open| open.current.clone()), work)
    }

    fn recording(&mut self) -> Option<&mut Recording> {
        self.0.as_mut()?.recording.as_deref_mut()
    }
}

impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Span").field(&self.context()).finish()
    }
}

impl Drop for Span {
    fn drop(&mut self) {
        let Some(OpenSpan { current, recording: Some(recording) }) = self.0.take() else { return };
        let Recording { parent, name, kind, begun_at, begun, attributes, is_failed } = *recording;
        let CurrentSpan { context, sink } = current;
        // The clock of the system may be set meanwhile.
        let ended_at = begun_at + begun.elapsed();
        let span =
            EndedSpan { context, parent, name, kind, begun_at, ended_at, attributes, is_failed };
        sink.take(span);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{KeptSpans, Tracer};

    fn tracer(ratio: f64) -> (KeptSpans, Tracer) {
        let kept = KeptSpans::default();
        (kept.clone(), kept.tracer(ratio))
    }

    async fn query(fails: bool) -> Option<TraceContext> {
        let mut span = Span::child(SpanKind::Client, || "query");
        span.set("db.system.name", "sqlite");
        if fails {
            span.fail("refused");
        }
        span.run(async { current() }).await
    }

    #[tokio::test]
    async fn spans_of_a_task_are_one_trace() {
        let (kept, tracer) = tracer(1.0);
        let mut root = tracer.begin(None, SpanKind::Server, || "GET /v1/nodes".to_owned());
        root.set("http.response.status_code", 200_u16);
        let inner = root.run(async { (query(false).await, query(true).await) }).await;
        let context = root.context().cloned().unwrap();
        drop(root);
        let [first, second, last]: [EndedSpan; 3] = kept.take_all().try_into().unwrap();
        assert_eq!((inner.0, inner.1), (Some(first.context.clone()), Some(second.context.clone())));
        assert_eq!((&*first.name, &*last.name), ("query", "GET /v1/nodes"));
        assert_eq!((first.is_failed, second.is_failed, last.is_failed), (false, true, false));
        assert_eq!(second.attributes[1], ("error.type", "refused".into()));
        assert_eq!(last.attributes, [("http.response.status_code", AttributeValue::Number(200))]);
        assert_eq!((last.parent, &last.context), (None, &context));
        for child in [&first, &second] {
            assert_eq!(child.parent, Some(context.span_id));
            assert_eq!(child.context.trace_id, context.trace_id);
            assert!(child.begun_at >= last.begun_at && child.ended_at <= last.ended_at);
        }
        assert_eq!(current(), None);
    }

    #[tokio::test]
    async fn the_caller_decides_whether_a_trace_is_recorded() {
        let (kept, tracer) = tracer(0.0);
        let parent = |flag| format!("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0{flag}");
        let parent = |flag| TraceContext::of_headers(&parent(flag), &["a=1"]).unwrap();
        for (flag, is_recorded) in [(0, false), (1, true)] {
            let span = tracer.begin(Some(&parent(flag)), SpanKind::Server, || "request");
            assert_eq!(span.is_recorded(), is_recorded);
            // The context is passed on in any case.
            let context = span.run(query(false)).await.unwrap();
            assert_eq!(context.trace_id, parent(flag).trace_id);
            assert_eq!((context.is_sampled(), context.state.as_str()), (is_recorded, Some("a=1")));
            drop(span);
            assert_eq!(kept.take_all().len(), if is_recorded { 2 } else { 0 });
        }
        assert!(!tracer.begin(None, SpanKind::Server, || "request").is_recorded());
    }

    #[tokio::test]
    async fn a_cancelled_operation_ends_its_span() {
        let (kept, tracer) = tracer(1.0);
        let root = tracer.begin(None, SpanKind::Consumer, || "turn");
        let waiting = root.run(async {
            let _span = Span::child(SpanKind::Client, || "call");
            std::future::pending::<()>().await;
        });
        let waited = tokio::time::timeout(std::time::Duration::from_millis(1), waiting).await;
        waited.unwrap_err();
        drop(root);
        let names: Vec<_> = kept.take_all().into_iter().map(|span| span.name).collect();
        assert_eq!(names, ["call", "turn"]);
    }

    #[tokio::test]
    async fn without_a_tracer_nothing_is_traced() {
        let root = Tracer::default()
            .begin(None, SpanKind::Server, || -> &'static str { panic!("unused") });
        assert_eq!((root.is_recorded(), root.context()), (false, None));
        assert_eq!(root.run(query(true)).await, None);
    }
}
