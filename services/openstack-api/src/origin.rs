//! The origin under which a client reached the API, which is the start of every link.

use std::fmt;

use axum::extract::FromRequestParts;
use http::HeaderMap;
use http::header::HOST;
use http::request::Parts;

use crate::ApiError;

/// The scheme of a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    Http,
    Https,
}

/// Whether `X-Forwarded-Proto`, `-Host` and `-Prefix` are trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forwarded {
    /// A trusted proxy sets the headers.
    Believed,
    /// Any client could have set the headers.
    Ignored,
}

/// Scheme, host and path prefix used by the client: `https://cloud.example:6385/baremetal`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin(String);

impl Origin {
    /// Determines the origin of a request. `authority` comes from the request line, which HTTP/2 uses instead of `Host`.
    pub fn new(
        headers: &HeaderMap,
        authority: Option<&str>,
        scheme: Scheme,
        forwarded: Forwarded,
    ) -> Result<Self, ApiError> {
        let first = |name: &str| {
            let value = headers.get(name)?.to_str().ok()?.split(',').next()?.trim();
            (forwarded == Forwarded::Believed && !value.is_empty()).then_some(value)
        };
        let scheme = match (first("x-forwarded-proto"), scheme) {
            (Some("https"), _) => "https",
            (Some("http"), _) => "http",
            (Some(_) | None, Scheme::Http) => "http",
            (Some(_) | None, Scheme::Https) => "https",
        };
        let said = headers.get(HOST).and_then(|value| value.to_str().ok());
        let host = first("x-forwarded-host").or(authority).or(said).unwrap_or("localhost");
        let prefix = first("x-forwarded-prefix").unwrap_or("").trim_end_matches('/');

        let legal = |more: &[u8], text: &str| {
            text.bytes().all(|byte| byte.is_ascii_alphanumeric() || more.contains(&byte))
        };
        if host.is_empty() || !legal(b".-_:[]", host) {
            return Err(ApiError::bad_field("Host", "is not a host name"));
        }
        if !legal(b"/.-_~", prefix) || !(prefix.is_empty() || prefix.starts_with('/')) {
            return Err(ApiError::bad_field("X-Forwarded-Prefix", "is not a path"));
        }
        Ok(Origin([scheme, "://", host, prefix].concat()))
    }

    /// The origin as text, without a trailing slash.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<S: Sync> FromRequestParts<S> for Origin {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let (scheme, forwarded) =
            parts.extensions.get().copied().unwrap_or((Scheme::Http, Forwarded::Ignored));
        let authority = parts.uri.authority().map(http::uri::Authority::as_str);
        Origin::new(&parts.headers, authority, scheme, forwarded)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(headers: &[(&'static str, &'static str)], forwarded: Forwarded, want: &str) {
        let headers = headers.iter().map(|(name, value)| {
            (http::HeaderName::from_static(name), http::HeaderValue::from_static(value))
        });
        let got = Origin::new(&headers.collect(), None, Scheme::Http, forwarded);
        assert_eq!(got.map_or_else(|why| why.message, |origin| origin.0), want);
    }

    #[test]
    fn links_begin_with_the_origin_that_the_client_used() {
        check(&[("host", "10.0.0.1:6385")], Forwarded::Ignored, "http://10.0.0.1:6385");
        check(&[("host", "[::1]:6385")], Forwarded::Ignored, "http://[::1]:6385");
    }

    #[test]
    fn headers_of_a_proxy_are_used_only_if_trusted() {
        let proxied = [
            ("host", "10.0.0.1:6385"),
            ("x-forwarded-proto", "https"),
            ("x-forwarded-host", "cloud.example, inner"),
            ("x-forwarded-prefix", "/baremetal/"),
        ];
        check(&proxied, Forwarded::Ignored, "http://10.0.0.1:6385");
        check(&proxied, Forwarded::Believed, "https://cloud.example/baremetal");
    }

    #[test]
    fn an_invalid_host_is_refused() {
        check(&[("host", "a/b")], Forwarded::Ignored, "Host: is not a host name");
        check(&[("host", "\"><script>")], Forwarded::Ignored, "Host: is not a host name");
    }
}
