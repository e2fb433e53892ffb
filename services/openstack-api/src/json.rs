//! Answers in JSON.

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, StatusCode};
use serde::Serialize;

use crate::ApiError;

/// A JSON answer.
pub fn json(status: StatusCode, body: &impl Serialize) -> Response {
    json_of(status, body, 0)
}

/// A JSON answer of about so many bytes: a long one is copied over and over when it grows step by step.
pub fn json_of(status: StatusCode, body: &impl Serialize, about: usize) -> Response {
    let mut bytes = Vec::with_capacity(about);
    match serde_json::to_writer(&mut bytes, body) {
        Ok(()) => json_text(status, bytes.into()),
        Err(why) => {
            ApiError::broken(format!("the answer can not be written: {why}")).into_response()
        }
    }
}

/// A JSON answer that is written already.
pub(crate) fn json_text(status: StatusCode, text: Bytes) -> Response {
    let json = HeaderValue::from_static("application/json");
    (status, [(CONTENT_TYPE, json)], Body::from(text)).into_response()
}
