#![doc = include_str!("../README.md")]

mod state;

use std::fmt;
use std::num::{NonZeroU64, NonZeroU128};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

pub use state::TraceState;

/// The name of the header with trace, span and flags.
pub const TRACEPARENT: &str = "traceparent";
/// The name of the header with the entries of other tracing systems.
pub const TRACESTATE: &str = "tracestate";

/// The length of a `traceparent` of version 00.
const LENGTH: usize = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".len();
/// The flags that this version of the specification defines.
const KNOWN_FLAGS: u8 = SAMPLED | RANDOM;
const SAMPLED: u8 = 1;
/// The trace id is random (W3C Trace Context, level 2).
const RANDOM: u8 = 2;

/// The id of a trace: the requests and the work that follow from one request.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceId(NonZeroU128);

/// The id of a span: one operation of a trace.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SpanId(NonZeroU64);

/// A span of a trace, as another program or a later turn knows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TraceContext {
    pub trace_id: TraceId,
    pub span_id: SpanId,
    flags: u8,
    pub state: TraceState,
}

/// The text is no trace context.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{raw:?} is not a trace context")]
pub struct InvalidTraceContext {
    /// The text, cut to 64 characters.
    pub raw: String,
}

impl TraceId {
    /// Makes an id of random bits.
    pub fn of_random(bits: u128) -> Self {
        TraceId(NonZeroU128::new(bits).unwrap_or(NonZeroU128::MIN))
    }

    /// The id in the order of the wire.
    pub fn bytes(self) -> [u8; 16] {
        self.0.get().to_be_bytes()
    }

    /// A number that is the same for all spans of the trace and evenly distributed, so that all programs sample the same traces.
    pub fn sampling_number(self) -> u64 {
        (self.0.get() & u128::from(u64::MAX)) as u64
    }
}

impl SpanId {
    /// Makes an id of random bits.
    pub fn of_random(bits: u64) -> Self {
        SpanId(NonZeroU64::new(bits).unwrap_or(NonZeroU64::MIN))
    }

    /// The id in the order of the wire.
    pub fn bytes(self) -> [u8; 8] {
        self.0.get().to_be_bytes()
    }
}

impl TraceContext {
    /// Begins a trace with a random id.
    pub fn root(trace_id: TraceId, span_id: SpanId, is_sampled: bool) -> Self {
        let flags = RANDOM | if is_sampled { SAMPLED } else { 0 };
        TraceContext { trace_id, span_id, flags, state: TraceState::default() }
    }

    /// Continues the trace with another span.
    pub fn child(&self, span_id: SpanId) -> Self {
        TraceContext { span_id, ..self.clone() }
    }

    /// Reads the headers of a request. A wrong `tracestate` is dropped alone.
    pub fn of_headers(traceparent: &str, tracestate: &[&str]) -> Option<Self> {
        let (trace_id, span_id, flags) = read_parent(traceparent.trim())?;
        let state = TraceState::of_headers(tracestate);
        Some(TraceContext { trace_id, span_id, flags, state })
    }

    /// Whether the spans of the trace are recorded.
    pub fn is_sampled(&self) -> bool {
        self.flags & SAMPLED != 0
    }

    /// The value of the header `traceparent`.
    pub fn traceparent(&self) -> String {
        let TraceContext { trace_id, span_id, flags, .. } = self;
        format!("00-{trace_id}-{span_id}-{flags:02x}")
    }

    /// The headers of a request that belongs to the trace.
    pub fn headers(&self) -> impl Iterator<Item = (&'static str, String)> {
        let state = self.state.as_str().map(|state| (TRACESTATE, state.to_owned()));
        [(TRACEPARENT, self.traceparent())].into_iter().chain(state)
    }
}

/// Reads a `traceparent`. W3C Trace Context §3.2.2: fields may follow those of version 00 in a higher version.
fn read_parent(raw: &str) -> Option<(TraceId, SpanId, u8)> {
    if !raw.is_ascii() || raw.len() < LENGTH {
        return None;
    }
    let (known, further) = raw.split_at(LENGTH);
    let mut fields = known.split('-');
    let version = fields.next().filter(|version| version.len() == 2 && is_hex(version))?;
    let is_readable = match version {
        "00" => further.is_empty(),
        "ff" => false,
        _ => further.is_empty() || further.starts_with('-'),
    };
    let trace = fields.next().filter(|trace| trace.len() == 32 && is_hex(trace))?;
    let span = fields.next().filter(|span| span.len() == 16 && is_hex(span))?;
    let flags = fields.next().filter(|flags| flags.len() == 2 && is_hex(flags))?;
    if !is_readable || fields.next().is_some() {
        return None;
    }
    let trace = NonZeroU128::new(u128::from_str_radix(trace, 16).ok()?)?;
    let span = NonZeroU64::new(u64::from_str_radix(span, 16).ok()?)?;
    let flags = u8::from_str_radix(flags, 16).ok()? & KNOWN_FLAGS;
    Some((TraceId(trace), SpanId(span), flags))
}

/// Whether the text has only digits of lower-case hexadecimal numbers.
fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl fmt::Debug for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The text form for a record: `traceparent`, and after a space `tracestate`, if there is one.
impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.traceparent())?;
        self.state.as_str().map_or(Ok(()), |state| write!(f, " {state}"))
    }
}

impl FromStr for TraceContext {
    type Err = InvalidTraceContext;

    fn from_str(raw: &str) -> Result<Self, InvalidTraceContext> {
        let (parent, state) = raw.split_once(' ').unwrap_or((raw, ""));
        TraceContext::of_headers(parent, &[state])
            .ok_or_else(|| InvalidTraceContext { raw: raw.chars().take(64).collect() })
    }
}

words::strings!(TraceContext);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    /// Asserts the `traceparent` that is sent on for one that came, or `None` if it is ignored.
    #[track_caller]
    fn check(raw: &str, want: Option<&str>) {
        let read = TraceContext::of_headers(raw, &[]);
        assert_eq!(read.map(|context| context.traceparent()).as_deref(), want);
    }

    #[test]
    fn a_traceparent_is_passed_on() {
        check(PARENT, Some(PARENT));
        check(&format!(" {PARENT}\t"), Some(PARENT));
        let unsampled = PARENT.replace("-01", "-00");
        check(&unsampled, Some(&unsampled));
    }

    #[test]
    fn the_known_part_of_a_later_version_is_read() {
        check(&PARENT.replacen("00", "cc", 1), Some(PARENT));
        check(&format!("{}-more", PARENT.replacen("00", "01", 1)), Some(PARENT));
        check(&PARENT.replace("-01", "-ff"), Some(&PARENT.replace("-01", "-03")));
    }

    #[test]
    fn a_traceparent_that_the_specification_forbids_is_ignored() {
        check("", None);
        check(&PARENT[1..], None);
        check(&format!("{PARENT}-more"), None);
        check(&format!("{}.more", PARENT.replacen("00", "01", 1)), None);
        check(&PARENT.replacen("00", "ff", 1), None);
        check(&PARENT.to_uppercase(), None);
        check(&PARENT.replace('-', "_"), None);
        check(&PARENT.replace("0af7651916cd43dd8448eb211c80319c", &"0".repeat(32)), None);
        check(&PARENT.replace("b7ad6b7169203331", &"0".repeat(16)), None);
        check(&PARENT.replace("0af7", "+af7"), None);
        check(&PARENT.replace("0af7", "äf7"), None);
    }

    #[test]
    fn a_child_stays_in_the_trace_and_in_its_sample() {
        let parent = TraceContext::of_headers(PARENT, &["a=1"]).unwrap();
        let child = parent.child(SpanId::of_random(7));
        assert_eq!(child.traceparent(), PARENT.replace("b7ad6b7169203331", "0000000000000007"));
        assert_eq!(child.state, parent.state);
        assert!(child.is_sampled());
        let root = TraceContext::root(parent.trace_id, SpanId::of_random(0), false);
        assert_eq!(root.traceparent(), format!("00-{}-0000000000000001-02", parent.trace_id));
    }

    #[test]
    fn a_record_keeps_the_whole_context() {
        let context = TraceContext::of_headers(PARENT, &["a=1, b=two", "c@d=x y"]).unwrap();
        let record = serde_json::to_string(&context).unwrap();
        assert_eq!(record, format!("\"{PARENT} a=1,b=two,c@d=x y\""));
        assert_eq!(serde_json::from_str::<TraceContext>(&record).unwrap(), context);
        let headers: Vec<_> = context.headers().map(|(name, _)| name).collect();
        assert_eq!(headers, [TRACEPARENT, TRACESTATE]);
        let without = TraceContext::of_headers(PARENT, &[]).unwrap();
        assert_eq!((without.to_string().as_str(), without.headers().count()), (PARENT, 1));
        assert!("00-1-2-3".parse::<TraceContext>().is_err());
    }

    proptest! {
        #[test]
        fn no_header_panics(parent: String, state: String) {
            let _ = TraceContext::of_headers(&parent, &[&state]);
        }

        #[test]
        fn every_context_is_read_back(trace: u128, span: u64, is_sampled: bool) {
            let (trace, span) = (TraceId::of_random(trace), SpanId::of_random(span));
            let context = TraceContext::root(trace, span, is_sampled);
            prop_assert_eq!(context.to_string().parse(), Ok(context));
        }
    }
}
