//! Converts spans into the messages of OTLP.

use std::time::{SystemTime, UNIX_EPOCH};

use spans::{AttributeValue, EndedSpan, SpanKind};

use crate::message::{
    AnyValue, ExportRequest, KeyValue, Kind, Resource, ResourceSpans, Scope, ScopeSpans, Span,
    Status, StatusCode, Value,
};

/// The scope of all spans.
const SCOPE: &str = "bedplate";

/// Returns the request with a batch of spans of one program.
pub(crate) fn request(resource: &Resource, version: &str, spans: Vec<EndedSpan>) -> ExportRequest {
    let scope = Scope { name: SCOPE.to_owned(), version: version.to_owned() };
    let spans = spans.into_iter().map(message).collect();
    let scope_spans = vec![ScopeSpans { scope: Some(scope), spans }];
    let resource = Some(resource.clone());
    ExportRequest { resource_spans: vec![ResourceSpans { resource, scope_spans }] }
}

/// Returns an attribute of the resource.
pub(crate) fn attribute(key: &str, value: impl Into<String>) -> KeyValue {
    let value = Some(AnyValue { value: Some(Value::Text(value.into())) });
    KeyValue { key: key.to_owned(), value }
}

fn message(span: EndedSpan) -> Span {
    let EndedSpan { context, parent, name, kind, begun_at, ended_at, attributes, is_failed } = span;
    let attributes = attributes.into_iter().map(|(key, value)| {
        let value = match value {
            AttributeValue::Text(text) => Value::Text(text.into_owned()),
            AttributeValue::Number(number) => Value::Number(number),
        };
        KeyValue { key: key.to_owned(), value: Some(AnyValue { value: Some(value) }) }
    });
    Span {
        trace_id: context.trace_id.bytes().to_vec(),
        span_id: context.span_id.bytes().to_vec(),
        trace_state: context.state.as_str().unwrap_or_default().to_owned(),
        parent_span_id: parent.map(|parent| parent.bytes().to_vec()).unwrap_or_default(),
        name: name.into_owned(),
        kind: kind_of(kind).into(),
        start_time_unix_nano: nanoseconds(begun_at),
        end_time_unix_nano: nanoseconds(ended_at),
        attributes: attributes.collect(),
        status: is_failed.then(|| Status { code: StatusCode::Error.into() }),
        flags: u32::from(context.is_sampled()),
    }
}

fn kind_of(kind: SpanKind) -> Kind {
    match kind {
        SpanKind::Internal => Kind::Internal,
        SpanKind::Server => Kind::Server,
        SpanKind::Client => Kind::Client,
        SpanKind::Consumer => Kind::Consumer,
    }
}

fn nanoseconds(at: SystemTime) -> u64 {
    let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use prost::Message;
    use spans::{SpanId, TraceContext};

    use super::*;

    /// The bytes follow from the field numbers and wire types of OpenTelemetry's trace.proto. `tests/compat` decodes requests with
    /// OpenTelemetry's own classes.
    #[test]
    fn a_span_has_the_bytes_of_the_protocol() {
        let parent = "00-0102030405060708090a0b0c0d0e0f10-1112131415161718-01";
        let parent = TraceContext::of_headers(parent, &["a=1"]).unwrap();
        let span = EndedSpan {
            context: parent.child(SpanId::of_random(0x2122_2324_2526_2728)),
            parent: Some(parent.span_id),
            name: "n".into(),
            kind: SpanKind::Client,
            begun_at: UNIX_EPOCH + Duration::from_nanos(1),
            ended_at: UNIX_EPOCH + Duration::from_nanos(2),
            attributes: vec![("k", "v".into()), ("i", 5_i64.into())],
            is_failed: true,
        };
        let bytes = message(span).encode_to_vec();
        let want: Vec<u8> = [
            &[0x0a, 16][..],
            &(1..=16).collect::<Vec<u8>>(),
            &[0x12, 8, 0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28],
            &[0x1a, 3, b'a', b'=', b'1'],
            &[0x22, 8, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18],
            &[0x2a, 1, b'n'],
            &[0x30, 3],
            &[0x39, 1, 0, 0, 0, 0, 0, 0, 0],
            &[0x41, 2, 0, 0, 0, 0, 0, 0, 0],
            &[0x4a, 8, 0x0a, 1, b'k', 0x12, 3, 0x0a, 1, b'v'],
            &[0x4a, 7, 0x0a, 1, b'i', 0x12, 2, 0x18, 5],
            &[0x7a, 2, 0x18, 2],
            &[0x85, 1, 1, 0, 0, 0],
        ]
        .concat();
        assert_eq!(bytes, want);
    }
}
