//! A span that ended, as a sink takes it.

use std::borrow::Cow;
use std::time::SystemTime;

use trace_context::{SpanId, TraceContext};

/// Takes the spans that ended, and returns at once.
pub trait SpanSink: Send + Sync + 'static {
    /// Takes a span, or drops it if there are too many.
    fn take(&self, span: EndedSpan);
}

/// A span that ended.
#[derive(Clone, Debug, PartialEq)]
pub struct EndedSpan {
    pub context: TraceContext,
    /// The span in which this one began; `None` for the first span of a trace.
    pub parent: Option<SpanId>,
    pub name: Cow<'static, str>,
    pub kind: SpanKind,
    pub begun_at: SystemTime,
    pub ended_at: SystemTime,
    pub attributes: Vec<(&'static str, AttributeValue)>,
    /// Whether the operation failed.
    pub is_failed: bool,
}

/// The place of a span between two programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanKind {
    /// An operation within the program.
    Internal,
    /// The answer to a request.
    Server,
    /// A request to another program, and its answer.
    Client,
    /// Work that a request asked for before.
    Consumer,
}

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq)]
pub enum AttributeValue {
    Text(Cow<'static, str>),
    Number(i64),
}

impl From<&'static str> for AttributeValue {
    fn from(word: &'static str) -> Self {
        AttributeValue::Text(word.into())
    }
}

impl From<String> for AttributeValue {
    fn from(text: String) -> Self {
        AttributeValue::Text(text.into())
    }
}

impl From<i64> for AttributeValue {
    fn from(number: i64) -> Self {
        AttributeValue::Number(number)
    }
}

impl From<u16> for AttributeValue {
    fn from(number: u16) -> Self {
        AttributeValue::Number(number.into())
    }
}
