//! The span of a request, with the attributes that OpenTelemetry's conventions give an HTTP server.
//!
//! The path and the query are no attributes: they have names of users' objects, and some paths have a capability. The template of the route
//! is one.

use axum::extract::{MatchedPath, Request};
use axum::response::Response;
use http::{HeaderMap, Method};
use spans::{Span, SpanKind, TRACEPARENT, TRACESTATE, TraceContext, Tracer};

use crate::Scheme;

/// The word of the conventions for a method that is not a known one.
const OTHER: &str = "_OTHER";

/// Begins the span of a request, in the trace of its caller.
pub(crate) fn begin(tracer: &Tracer, request: &Request, scheme: Scheme) -> Span {
    let method = known_method(request.method());
    let route = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str);
    let caller = caller(request.headers());
    let mut span = tracer.begin(caller.as_ref(), SpanKind::Server, || {
        route.map_or_else(|| method.to_owned(), |route| format!("{method} {route}"))
    });
    if span.is_recorded() {
        span.set("http.request.method", method);
        if let Some(route) = route {
            span.set("http.route", route.to_owned());
        }
        span.set(
            "url.scheme",
            match scheme {
                Scheme::Http => "http",
                Scheme::Https => "https",
            },
        );
    }
    span
}

/// Ends the span of a request, with its id and the status of the answer. A refusal of the client's request is no failure of the server.
pub(crate) fn end(mut span: Span, answer: &Response) {
    if !span.is_recorded() {
        return;
    }
    let status = answer.status();
    span.set("http.response.status_code", status.as_u16());
    let id = answer.headers().get("openstack-request-id").and_then(|id| id.to_str().ok());
    if let Some(id) = id {
        span.set("bedplate.request.id", id.to_owned());
    }
    if status.is_server_error() {
        span.fail(status.as_str().to_owned());
    }
}

/// The span of the caller. Several `traceparent` headers are none (W3C Trace Context §3.2).
fn caller(headers: &HeaderMap) -> Option<TraceContext> {
    let mut parents = headers.get_all(TRACEPARENT).iter();
    let parent = parents.next().filter(|_| parents.next().is_none())?;
    let states = headers.get_all(TRACESTATE).iter().map(|state| state.to_str());
    // A state that is not text is dropped as a whole.
    let states = states.collect::<Result<Vec<_>, _>>().unwrap_or_default();
    TraceContext::of_headers(parent.to_str().ok()?, &states)
}

fn known_method(method: &Method) -> &'static str {
    match method.as_str() {
        "GET" => "GET",
        "HEAD" => "HEAD",
        "POST" => "POST",
        "PUT" => "PUT",
        "PATCH" => "PATCH",
        "DELETE" => "DELETE",
        "OPTIONS" => "OPTIONS",
        "TRACE" => "TRACE",
        "CONNECT" => "CONNECT",
        _ => OTHER,
    }
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::body::Body;
    use axum::routing::get;
    use http::StatusCode;
    use spans::{AttributeValue, EndedSpan, KeptSpans};
    use tower::ServiceExt;

    use super::*;

    const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    /// The span of a request with these headers to a route that answers with this status.
    async fn traced(headers: &[(&str, &str)], status: StatusCode) -> EndedSpan {
        let kept = KeptSpans::default();
        let tracer = kept.tracer(1.0);
        let answer = move |request: Request| async move {
            let span = begin(&tracer, &request, Scheme::Https);
            let answer = Response::builder().status(status);
            let answer =
                answer.header("openstack-request-id", "req-1").body(Body::empty()).unwrap();
            end(span, &answer);
            answer
        };
        let router = Router::new().route("/v1/nodes/{node}", get(answer));
        let mut request = http::Request::builder().uri("/v1/nodes/secret?token=secret");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        router.oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
        kept.take_all().pop().unwrap()
    }

    #[tokio::test]
    async fn a_request_continues_the_trace_of_its_caller_and_tells_nothing_of_its_path() {
        let state = [("tracestate", "a=1"), ("tracestate", "b=2")];
        let headers = [&[("traceparent", PARENT)][..], &state].concat();
        let span = traced(&headers, StatusCode::NOT_FOUND).await;
        assert_eq!(span.context.trace_id.to_string(), "0af7651916cd43dd8448eb211c80319c");
        assert_eq!(span.context.state.as_str(), Some("a=1,b=2"));
        assert_eq!(span.parent.unwrap().to_string(), "b7ad6b7169203331");
        assert_eq!((&*span.name, span.kind), ("GET /v1/nodes/{node}", SpanKind::Server));
        let want: Vec<(&str, AttributeValue)> = vec![
            ("http.request.method", "GET".into()),
            ("http.route", "/v1/nodes/{node}".into()),
            ("url.scheme", "https".into()),
            ("http.response.status_code", AttributeValue::Number(404)),
            ("bedplate.request.id", "req-1".into()),
        ];
        assert_eq!((span.attributes, span.is_failed), (want, false));
    }

    #[tokio::test]
    async fn a_request_without_a_valid_context_begins_a_trace() {
        let twice = [("traceparent", PARENT), ("traceparent", PARENT)];
        let wrong = [("traceparent", "00-0-0-01"), ("tracestate", "a=1")];
        for headers in [&[][..], &twice, &wrong] {
            let span = traced(headers, StatusCode::SERVICE_UNAVAILABLE).await;
            assert_eq!((span.parent, span.is_failed), (None, true));
            assert_eq!(span.context.state.as_str(), None);
            assert_eq!(span.attributes.last(), Some(&("error.type", "503".to_owned().into())));
        }
    }
}
