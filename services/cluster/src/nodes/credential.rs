//! The credential of a member, and the only refusal of the listener: all refusals look the same, so that nobody can probe for claims.

use axum::response::{IntoResponse, Response};
use http::header::AUTHORIZATION;
use http::{HeaderMap, StatusCode};

/// Returns the token of the header `Authorization`.
pub(super) fn bearer(headers: &HeaderMap) -> Option<&str> {
    headers.get(AUTHORIZATION)?.to_str().ok()?.strip_prefix("Bearer ")
}

pub(super) fn not_found() -> Response {
    (StatusCode::NOT_FOUND, "not found\n").into_response()
}
