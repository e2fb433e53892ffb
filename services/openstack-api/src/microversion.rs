//! Microversions: the version that a client requested, and the version that introduced a feature.

use std::fmt;

use axum::extract::FromRequestParts;
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

use crate::ApiError;

/// A version of the API, `1.N`. The major version of both APIs has always been 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Microversion(u16);

impl Microversion {
    /// Version `1.minor`.
    pub const fn new(minor: u16) -> Self {
        Microversion(minor)
    }

    /// Whether this version includes a feature introduced in version `came`.
    pub const fn has(self, came: Microversion) -> bool {
        self.0 >= came.0
    }

    /// Returns `value` if this version includes a feature introduced in version `came`.
    pub fn since<T>(self, came: Microversion, value: T) -> Option<T> {
        self.has(came).then_some(value)
    }

    /// Refuses with 406 to use `what`, introduced in version `came`, in an earlier version.
    pub fn need(self, came: Microversion, what: &str) -> Result<(), ApiError> {
        if self.has(came) {
            return Ok(());
        }
        Err(ApiError::not_acceptable(format!(
            "{what}: the requested version is {self}; the minimal required API version is {came}"
        )))
    }
}

impl fmt::Display for Microversion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "1.{}", self.0)
    }
}

/// The requested version, as negotiated by [`crate::apply`].
impl<S: Sync> FromRequestParts<S> for Microversion {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        parts.extensions.get().copied().ok_or_else(|| ApiError::broken("no version was negotiated"))
    }
}

/// The headers and the range of microversions of one API.
#[derive(Clone, Debug)]
pub struct VersionHeaders {
    /// The header with the version, in requests and answers.
    pub header: HeaderName,
    /// The prefix of the version in that header: `container-infra `, or empty.
    pub prefix: &'static str,
    /// The header with the lowest version.
    pub minimum_header: HeaderName,
    /// The header with the highest version.
    pub maximum_header: HeaderName,
    /// The lowest version, which also serves clients that request no version.
    pub minimum: Microversion,
    pub maximum: Microversion,
}

/// Why the requested version cannot be served.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAcceptable {
    #[error(
        "invalid value for the {header} header: {raw:?} is neither \"latest\" nor a version such as 1.1"
    )]
    Unreadable {
        header: HeaderName,
        /// The value, cut to a length that fits into a message.
        raw: String,
    },
    #[error(
        "version {asked} was requested but is not supported by this service; the supported version range is [{minimum}, {maximum}]"
    )]
    OutOfRange { asked: String, minimum: Microversion, maximum: Microversion },
}

impl From<NotAcceptable> for ApiError {
    fn from(why: NotAcceptable) -> Self {
        ApiError::protocol(StatusCode::NOT_ACCEPTABLE, why.to_string())
    }
}

impl VersionHeaders {
    /// Returns the requested version; the lowest one if `headers` request none.
    pub fn negotiate(&self, headers: &HeaderMap) -> Result<Microversion, NotAcceptable> {
        let Some(value) = headers.get(&self.header) else { return Ok(self.minimum) };
        let unreadable = || NotAcceptable::Unreadable {
            header: self.header.clone(),
            raw: String::from_utf8_lossy(value.as_bytes()).chars().take(64).collect(),
        };
        let raw = value.to_str().map_err(|_| unreadable())?;
        // The header may list versions of several services (API-SIG, microversion specification).
        let named = raw.split(',').find_map(|part| part.trim().strip_prefix(self.prefix));
        let Some(asked) = named.map(str::trim) else { return Ok(self.minimum) };
        if asked.is_empty() {
            return Ok(self.minimum);
        }
        if asked.eq_ignore_ascii_case("latest") {
            return Ok(self.maximum);
        }

        let (major, minor) = asked.split_once('.').ok_or_else(unreadable)?;
        let digits = |text: &str| {
            !text.is_empty() && text.len() <= 5 && text.bytes().all(|byte| byte.is_ascii_digit())
        };
        if !digits(major) || !digits(minor) {
            return Err(unreadable());
        }
        let minor = minor.parse().map(Microversion);
        match minor {
            Ok(minor) if major == "1" && (self.minimum..=self.maximum).contains(&minor) => {
                Ok(minor)
            }
            _ => Err(NotAcceptable::OutOfRange {
                asked: asked.to_owned(),
                minimum: self.minimum,
                maximum: self.maximum,
            }),
        }
    }

    /// Adds the supported range to the answer, and the version that was served, if any.
    pub fn announce(&self, headers: &mut HeaderMap, served: Option<Microversion>) {
        headers.insert(self.minimum_header.clone(), self.value(self.minimum, ""));
        headers.insert(self.maximum_header.clone(), self.value(self.maximum, ""));
        if let Some(served) = served {
            headers.insert(self.header.clone(), self.value(served, self.prefix));
        }
    }

    fn value(&self, version: Microversion, prefix: &str) -> HeaderValue {
        HeaderValue::try_from(format!("{prefix}{version}"))
            .expect("a version and a service's name are visible ASCII")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn dialect(prefix: &'static str) -> VersionHeaders {
        VersionHeaders {
            header: HeaderName::from_static("x-version"),
            prefix,
            minimum_header: HeaderName::from_static("x-minimum"),
            maximum_header: HeaderName::from_static("x-maximum"),
            minimum: Microversion::new(1),
            maximum: Microversion::new(115),
        }
    }

    #[track_caller]
    fn check(prefix: &'static str, asked: &[u8], want: Result<u16, &str>) {
        let mut headers = HeaderMap::new();
        headers.insert("x-version", HeaderValue::from_bytes(asked).unwrap());
        let got = dialect(prefix).negotiate(&headers);
        assert_eq!(
            got.map_err(|why| why.to_string()),
            want.map(Microversion).map_err(str::to_owned)
        );
    }

    #[test]
    fn a_version_in_range_is_served() {
        check("", b"1.1", Ok(1));
        check("", b"1.115", Ok(115));
        check("", b"latest", Ok(115));
        check("", b"LATEST", Ok(115));
        check("", b"", Ok(1));
        check("container-infra ", b"container-infra 1.7", Ok(7));
        check("container-infra ", b"baremetal 1.9, container-infra latest", Ok(115));
        check("container-infra ", b"baremetal 1.9", Ok(1));
        assert_eq!(dialect("").negotiate(&HeaderMap::new()), Ok(Microversion(1)));
    }

    #[test]
    fn a_version_out_of_range_is_not() {
        let range =
            "but is not supported by this service; the supported version range is [1.1, 1.115]";
        for asked in ["1.116", "1.0", "2.1", "1.99999"] {
            let want = format!("version {asked} was requested {range}");
            check("", asked.as_bytes(), Err(&want));
        }
    }

    #[test]
    fn an_invalid_version_is_named() {
        check(
            "",
            b"abc",
            Err(
                "invalid value for the x-version header: \"abc\" is neither \"latest\" nor a version such as 1.1",
            ),
        );
        for asked in [&b"1"[..], b"1.", b".1", b"1.+1", b"1.1.1", b"\xff"] {
            let mut headers = HeaderMap::new();
            headers.insert("x-version", HeaderValue::from_bytes(asked).unwrap());
            assert!(dialect("").negotiate(&headers).is_err(), "{asked:?} passed");
        }
    }

    #[test]
    fn a_field_appears_with_the_version_that_introduced_it() {
        let owner = Microversion::new(50);
        assert_eq!(Microversion::new(49).since(owner, "me"), None);
        assert_eq!(Microversion::new(50).since(owner, "me"), Some("me"));
    }

    proptest! {
        #[test]
        fn no_header_panics(raw: Vec<u8>) {
            if let Ok(value) = HeaderValue::from_bytes(&raw) {
                let mut headers = HeaderMap::new();
                headers.insert("x-version", value);
                let _ = dialect("").negotiate(&headers);
            }
        }
    }
}
