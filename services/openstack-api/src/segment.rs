//! Extracts the parameters of a path.

use axum::extract::{FromRequestParts, Path};
use http::StatusCode;
use http::request::Parts;
use serde::de::DeserializeOwned;

use crate::ApiError;

/// Path parameters as text: like [`Path`], but a refusal uses the envelope of the API.
#[derive(Clone, Debug)]
pub struct PathParam<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for PathParam<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let unreadable = |_| {
            ApiError::protocol(StatusCode::BAD_REQUEST, "the path is not percent-encoded UTF-8")
        };
        Path::from_request_parts(parts, state)
            .await
            .map(|Path(read)| PathParam(read))
            .map_err(unreadable)
    }
}
