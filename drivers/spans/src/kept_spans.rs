//! A sink for tests.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::{EndedSpan, SampleRatio, SpanSink, Tracer};

/// Keeps the spans that ended. Clones keep the same spans.
#[derive(Clone, Debug, Default)]
pub struct KeptSpans(Arc<Mutex<Vec<EndedSpan>>>);

impl KeptSpans {
    /// Makes a tracer whose spans are kept here; `ratio` is the part of its own traces that is recorded.
    pub fn tracer(&self, ratio: f64) -> Tracer {
        let ratio = SampleRatio::try_from(ratio).expect("the test gives a number from 0 to 1");
        Tracer::new(Arc::new(self.clone()), ratio)
    }

    /// Returns the spans that ended since the last call, the first one first.
    pub fn take_all(&self) -> Vec<EndedSpan> {
        std::mem::take(&mut *self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Vec<EndedSpan>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SpanSink for KeptSpans {
    fn take(&self, span: EndedSpan) {
        self.lock().push(span);
    }
}
