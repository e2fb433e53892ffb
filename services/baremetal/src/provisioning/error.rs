//! Error answers on the provisioning listener.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use baremetal_conductor::BootError;
use serde_json::json;
use tracing::error;

/// An error in the Bare Metal API's envelope, which agents understand.
pub(super) struct ErrorAnswer {
    status: StatusCode,
    message: String,
}

impl ErrorAnswer {
    pub(super) fn not_found(what: &str) -> Self {
        ErrorAnswer { status: StatusCode::NOT_FOUND, message: format!("{what} not found") }
    }

    pub(super) fn bad_request(message: String) -> Self {
        ErrorAnswer { status: StatusCode::BAD_REQUEST, message }
    }
}

impl From<BootError> for ErrorAnswer {
    fn from(error: BootError) -> ErrorAnswer {
        let status = match &error {
            BootError::NotFound { .. } => StatusCode::NOT_FOUND,
            BootError::Forbidden => StatusCode::UNAUTHORIZED,
            BootError::Invalid { .. } => StatusCode::BAD_REQUEST,
            BootError::Store(source) => {
                error!(error = %source, "the database does not answer for a machine");
                StatusCode::SERVICE_UNAVAILABLE
            }
        };
        ErrorAnswer { status, message: error.to_string() }
    }
}

impl IntoResponse for ErrorAnswer {
    fn into_response(self) -> Response {
        let fault = if self.status.is_server_error() { "Server" } else { "Client" };
        let inner = json!({"faultcode": fault, "faultstring": self.message, "debuginfo": null});
        (self.status, Json(json!({"error_message": inner.to_string()}))).into_response()
    }
}
