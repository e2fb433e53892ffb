//! Reads request bodies strictly: every refusal names the wrong part.

use std::sync::Arc;

use axum::body::HttpBody;
use axum::extract::{FromRequest, OptionalFromRequest, Request};
use bytes::Bytes;
use http::StatusCode;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use serde::de::DeserializeOwned;

use crate::limits::{Limiter, PermitSlot, check_shape};
use crate::{ApiError, Operation, check_unique_keys};

/// A JSON object as body, deserialized to `T`.
///
/// A body is refused if it is no object, is too large, is not UTF-8, is nested too deeply, has too many elements, has a key twice in an object, or does
/// not fit `T`. The last two refusals name the path of the mistake. As `Option<StrictJson<T>>` a missing body is `None`.
#[derive(Clone, Debug)]
pub struct StrictJson<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for StrictJson<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        let body = read(request, state).await?;
        if body.is_empty() {
            return Err(ApiError::bad_request(EMPTY));
        }
        parse_object(&body).map(StrictJson)
    }
}

impl<S: Send + Sync, T: DeserializeOwned> OptionalFromRequest<S> for StrictJson<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Option<Self>, ApiError> {
        let body = read(request, state).await?;
        if body.is_empty() {
            return Ok(None);
        }
        parse_object(&body).map(|body| Some(StrictJson(body)))
    }
}

/// A body of JSON Patch (RFC 6902), read as strictly as [`StrictJson`].
#[derive(Clone, Debug)]
pub struct JsonPatch(pub Vec<Operation>);

impl<S: Send + Sync> FromRequest<S> for JsonPatch {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        let body = read(request, state).await?;
        if body.is_empty() {
            return Err(ApiError::bad_request(EMPTY));
        }
        parse(&body).map(JsonPatch)
    }
}

const EMPTY: &str = "body: is empty, but JSON is required";

/// How many bytes are counted for a body of unknown length until it was read.
const OF_NO_LENGTH: usize = 4 << 20;

/// Returns the bytes of the body, up to the limit of the route.
///
/// A body whose `Content-Type` is not JSON is refused: a browser sends a form of another site without a CORS preflight, but not JSON.
async fn read<S: Send + Sync>(request: Request, state: &S) -> Result<Bytes, ApiError> {
    let declared = request.headers().get(CONTENT_TYPE).cloned();
    let known = request.extensions().get::<(Arc<Limiter>, PermitSlot)>().cloned();
    let seat = known.as_ref().and_then(|(_, seat)| seat.get());
    // The whole body is counted for the caller before any of it is read.
    if let Some(seat) = seat {
        let bytes = match request.headers().get(CONTENT_LENGTH) {
            Some(reported) => reported.to_str().ok().and_then(|reported| reported.parse().ok()),
            None if request.body().is_end_stream() => Some(0),
            None => None,
        };
        seat.hold_body(bytes.unwrap_or(OF_NO_LENGTH), 0)?;
    }
    let body = Bytes::from_request(request, state).await?;
    let json = declared.as_ref().and_then(|value| value.to_str().ok()).is_some_and(|value| {
        let media_type = value.split(';').next().unwrap_or(value).trim();
        media_type.eq_ignore_ascii_case("application/json")
            || media_type.eq_ignore_ascii_case("application/json-patch+json")
    });
    if !body.is_empty() && !json {
        return Err(ApiError::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "Content-Type: must be application/json",
        ));
    }
    let limits = known.as_ref().map(|(limiter, _)| limiter.limits);
    let elements = check_shape(&body, &limits.unwrap_or_default())?;
    if let Some(seat) = seat {
        seat.hold_body(body.len(), elements)?;
    }
    check_unique_keys(&body)?;
    Ok(body)
}

/// Parses `body`, which must be an object: serde would also fill the fields of a struct from an array, in their order.
fn parse_object<T: DeserializeOwned>(body: &[u8]) -> Result<T, ApiError> {
    match body.trim_ascii_start().first() {
        Some(b'[') => Err(ApiError::bad_field("body", "must be an object, not a list")),
        Some(_) | None => parse(body),
    }
}

/// Parses `body`. A body that cannot be parsed is parsed a second time with path tracking, which is slower, to name the mistake.
fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, ApiError> {
    if let Ok(read) = serde_json::from_slice(body) {
        return Ok(read);
    }
    if std::str::from_utf8(body).is_err() {
        return Err(ApiError::bad_field("body", "is not UTF-8"));
    }
    let mut deserializer = serde_json::Deserializer::from_slice(body);
    let why = match serde_path_to_error::deserialize::<_, T>(&mut deserializer) {
        Err(why) => why,
        Ok(_) => match deserializer.end() {
            Err(why) => return Err(ApiError::bad_field("body", short(&why.to_string()))),
            Ok(()) => return Err(ApiError::bad_field("body", "cannot be parsed")),
        },
    };
    let path = match why.path().to_string() {
        path if path == "." || path == "?" => "body".to_owned(),
        path => short(&path),
    };
    Err(ApiError::bad_field(&path, short(&why.into_inner().to_string())))
}

/// Cuts a text of the client to a length that fits into a message.
fn short(text: &str) -> String {
    text.chars().take(256).collect()
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use axum::extract::DefaultBodyLimit;
    use axum::routing::put;
    use axum::{Router, response::Response};
    use http::Request as HttpRequest;
    use proptest::prelude::*;
    use serde::Deserialize;
    use tower::ServiceExt;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Cat {
        #[expect(dead_code, reason = "the tests only check whether a value parses")]
        name: String,
        #[expect(dead_code, reason = "the tests only check whether a value parses")]
        #[serde(default)]
        friends: Vec<Cat>,
    }

    async fn put_cat(content_type: &str, body: Vec<u8>) -> Response {
        let app = Router::new()
            .route("/", put(|_: StrictJson<Cat>| async {}))
            .layer(DefaultBodyLimit::max(1024));
        let request = HttpRequest::put("/")
            .header(CONTENT_TYPE, content_type)
            .body(Body::from(body))
            .unwrap();
        app.oneshot(request).await.unwrap()
    }

    #[track_caller]
    fn check(body: &str, want: &str) {
        let why = parse::<Cat>(body.as_bytes()).expect_err("a refusal");
        assert_eq!(why.message, want);
    }

    #[test]
    fn the_path_of_a_mistake_is_named() {
        check(
            r#"{"name": "a", "friends": [{"name": 5}]}"#,
            "friends[0].name: invalid type: integer `5`, expected a string at line 1 column 36",
        );
        check(
            r#"{"nam": 1}"#,
            "nam: unknown field `nam`, expected `name` or `friends` at line 1 column 6",
        );
        check("{}", "body: missing field `name` at line 1 column 2");
        check("[", "body: EOF while parsing a list at line 1 column 1");
        check(r#"{"name": "a"} x"#, "body: trailing characters at line 1 column 15");
    }

    #[test]
    fn nesting_is_limited_and_the_position_is_named() {
        let deep = r#"{"name":"","friends":["#.repeat(200);
        let why = parse::<Cat>(deep.as_bytes()).unwrap_err();
        assert!(why.message.starts_with("friends[0].friends[0]"), "{why}");
        let deep = format!("{{\"extra\": {}", "[".repeat(100_000));
        let why = parse::<serde_json::Map<String, serde_json::Value>>(deep.as_bytes()).unwrap_err();
        assert!(why.message.starts_with("extra"), "{why}");
        assert!(why.message.contains("recursion limit exceeded"), "{why}");
        assert!(why.message.len() < 600, "{why}");
    }

    #[tokio::test]
    async fn a_body_that_is_too_large_or_not_json_is_refused() {
        let good = br#"{"name": "tom"}"#.to_vec();
        assert_eq!(put_cat("application/json; charset=utf-8", good.clone()).await.status(), 200);
        assert_eq!(put_cat("text/plain", good).await.status(), 415);
        assert_eq!(put_cat("application/json", vec![b' '; 1025]).await.status(), 413);
        assert_eq!(put_cat("application/json", Vec::new()).await.status(), 400);
        assert_eq!(put_cat("application/json", br#" ["tom", []]"#.to_vec()).await.status(), 400);
        assert_eq!(
            put_cat("application/json", b"{\"name\": \"\xff\"}".to_vec()).await.status(),
            400
        );
    }

    proptest! {
        #[test]
        fn no_body_panics(body: Vec<u8>) {
            let _ = parse::<Cat>(&body);
        }
    }
}
