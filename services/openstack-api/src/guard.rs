//! What every answer says to browsers, which have no business here: an API is neither shown, framed, kept nor read by other sites.

use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, REFERRER_POLICY, STRICT_TRANSPORT_SECURITY,
    X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::Scheme;

/// As OWASP's REST Security Cheat Sheet has them for APIs. There is no header of CORS here, nor anywhere: no other site's pages
/// may read an answer.
const ALWAYS: [(HeaderName, HeaderValue); 4] = [
    (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    // Any answer may hold what is one caller's own.
    (CACHE_CONTROL, HeaderValue::from_static("no-store")),
    (
        CONTENT_SECURITY_POLICY,
        HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'"),
    ),
    (REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
];

/// RFC 6797: a browser that was here once comes back over TLS only, for a year.
const OVER_TLS: HeaderValue = HeaderValue::from_static("max-age=31536000");

/// Puts them on an answer.
pub(crate) fn guard(headers: &mut HeaderMap, scheme: Scheme) {
    for (name, value) in ALWAYS {
        headers.insert(name, value);
    }
    match scheme {
        Scheme::Https => drop(headers.insert(STRICT_TRANSPORT_SECURITY, OVER_TLS)),
        Scheme::Http => {}
    }
}
