//! Response headers that keep browsers from displaying, framing, caching or sharing the answers of an API.

use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, REFERRER_POLICY, STRICT_TRANSPORT_SECURITY,
    X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::Scheme;

/// The headers that OWASP's REST Security Cheat Sheet recommends for APIs. No route sends CORS headers, so pages of other sites cannot read
/// an answer.
const ALWAYS: [(HeaderName, HeaderValue); 4] = [
    (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    // Any answer may contain data of a single caller.
    (CACHE_CONTROL, HeaderValue::from_static("no-store")),
    (
        CONTENT_SECURITY_POLICY,
        HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'"),
    ),
    (REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
];

/// RFC 6797: a browser that has visited the API uses only TLS for a year.
const OVER_TLS: HeaderValue = HeaderValue::from_static("max-age=31536000");

/// Adds the headers to an answer.
pub(crate) fn guard(headers: &mut HeaderMap, scheme: Scheme) {
    for (name, value) in ALWAYS {
        headers.insert(name, value);
    }
    match scheme {
        Scheme::Https => drop(headers.insert(STRICT_TRANSPORT_SECURITY, OVER_TLS)),
        Scheme::Http => {}
    }
}
