//! Error answers to machines and agents.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use baremetal_conductor::BootError;
use openstack_api::ApiError;
use serde_json::json;
use tracing::error;

/// An error in the Bare Metal API's envelope, which agents understand.
pub struct ErrorAnswer {
    status: StatusCode,
    message: String,
}

impl ErrorAnswer {
    /// 404.
    pub fn not_found(what: &str) -> Self {
        ErrorAnswer { status: StatusCode::NOT_FOUND, message: format!("{what} not found") }
    }

    /// 400, with this message.
    pub fn bad_request(message: String) -> Self {
        ErrorAnswer { status: StatusCode::BAD_REQUEST, message }
    }
}

impl From<BootError> for ErrorAnswer {
    fn from(error: BootError) -> ErrorAnswer {
        let status = match &error {
            BootError::NotFound { .. } => StatusCode::NOT_FOUND,
            BootError::Forbidden => StatusCode::UNAUTHORIZED,
            BootError::Invalid { .. } | BootError::Node(_) => StatusCode::BAD_REQUEST,
            BootError::Glance(cause) => {
                error!("Glance does not send an image to a machine: {cause}");
                StatusCode::BAD_GATEWAY
            }
            BootError::Registry(cause) => {
                error!("an OCI registry does not send an image to a machine: {cause}");
                StatusCode::BAD_GATEWAY
            }
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
        let body = Json(json!({"error_message": inner.to_string()}));
        let mut answer = (self.status, body).into_response();
        // The API writes its refusals itself, from this extension. The provisioning listener sends the body.
        answer.extensions_mut().insert(ApiError::new(self.status, self.message));
        answer
    }
}
