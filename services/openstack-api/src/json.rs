//! Makes answers with a JSON body.

use std::collections::BTreeMap;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::header::{CONTENT_TYPE, LOCATION};
use http::{HeaderValue, StatusCode};
use serde::Serialize;

use crate::ApiError;

/// A value that is written as JSON text. serde_json searches each text for characters to escape, also the names of fields, which have none. A
/// type that appears in long lists can write them itself.
pub trait WriteJson {
    /// Appends the value to `text`.
    fn write_json(&self, text: &mut Vec<u8>) -> Result<(), serde_json::Error>;
}

impl<T: Serialize> WriteJson for T {
    fn write_json(&self, text: &mut Vec<u8>) -> Result<(), serde_json::Error> {
        serde_json::to_writer(text, self)
    }
}

/// An answer with a JSON body.
pub fn json(status: StatusCode, body: &impl WriteJson) -> Response {
    json_of(status, body, 0)
}

/// An answer whose JSON body is an object with one field.
pub fn json_field(status: StatusCode, name: &str, value: &impl Serialize) -> Response {
    json(status, &BTreeMap::from([(name, value)]))
}

/// An answer with a JSON body of `about` bytes. The capacity is reserved at once, because a long body that grows step by step is copied
/// again and again.
pub fn json_of(status: StatusCode, body: &impl WriteJson, about: usize) -> Response {
    let mut bytes = Vec::with_capacity(about);
    match body.write_json(&mut bytes) {
        Ok(()) => json_text(status, bytes.into()),
        Err(why) => ApiError::broken(format!("cannot serialize the answer: {why}")).into_response(),
    }
}

/// Adds the URL of the resource that the request created, if it can be a header.
pub fn with_location(mut answer: Response, url: &str) -> Response {
    if let Ok(location) = HeaderValue::try_from(url) {
        answer.headers_mut().insert(LOCATION, location);
    }
    answer
}

/// An answer without a body that names the URL where the client can follow the request.
pub fn accepted_at(status: StatusCode, url: &str) -> Response {
    with_location(status.into_response(), url)
}

/// An answer with a body that is JSON text already.
pub(crate) fn json_text(status: StatusCode, text: Bytes) -> Response {
    let json = HeaderValue::from_static("application/json");
    (status, [(CONTENT_TYPE, json)], Body::from(text)).into_response()
}
