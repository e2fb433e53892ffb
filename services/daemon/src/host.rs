//! Checks that a request has exactly one `Host` header.

use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, HOST};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Response, StatusCode, Version};

/// Returns the answer to a request with two `Host` headers, or with none in HTTP/1.1; `None` for a valid request.
///
/// RFC 9112 §3.2: such a request must be answered with 400. Otherwise a proxy in front of the service could act on the first of two headers
/// while the handlers act on the last.
pub(crate) fn refusal(head: &Parts) -> Option<Response<Body>> {
    let why = match (head.headers.get_all(HOST).iter().count(), head.version) {
        (0, Version::HTTP_09 | Version::HTTP_10) | (1, _) => return None,
        (0, _) => "the request has no Host header\n",
        (_, _) => "the request has more than one Host header\n",
    };
    let mut refusal = Response::new(Body::from(why));
    *refusal.status_mut() = StatusCode::BAD_REQUEST;
    let text = HeaderValue::from_static("text/plain; charset=utf-8");
    refusal.headers_mut().insert(CONTENT_TYPE, text);
    Some(refusal)
}
