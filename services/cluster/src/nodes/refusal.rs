//! The only refusal of the listener: all refusals look the same, so that nobody can probe for claims.

use axum::response::{IntoResponse, Response};
use http::StatusCode;

pub(super) fn not_found() -> Response {
    (StatusCode::NOT_FOUND, "not found\n").into_response()
}
