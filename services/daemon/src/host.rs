//! Whether a request says once which host it is for.

use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, HOST};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Response, StatusCode, Version};

/// The refusal of a request with two `Host` headers, or with none in HTTP/1.1.
///
/// RFC 9112 §3.2: such a request must be answered with 400. A proxy before this service may read the first of two headers where
/// handlers read the last.
pub(crate) fn refusal(head: &Parts) -> Option<Response<Body>> {
    let why = match (head.headers.get_all(HOST).iter().count(), head.version) {
        (0, Version::HTTP_09 | Version::HTTP_10) | (1, _) => return None,
        (0, _) => "Host: the request has no such header\n",
        (_, _) => "Host: the request has this header more than once\n",
    };
    let mut refusal = Response::new(Body::from(why));
    *refusal.status_mut() = StatusCode::BAD_REQUEST;
    let text = HeaderValue::from_static("text/plain; charset=utf-8");
    refusal.headers_mut().insert(CONTENT_TYPE, text);
    Some(refusal)
}
