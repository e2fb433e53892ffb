//! Errors, and their form in the answers of each service.

use serde_json::{Value, json};

use crate::service::Service;

/// A refused request.
#[derive(Clone, Debug)]
pub(crate) struct ApiError {
    pub(crate) status: u16,
    /// The service's name of the error: Neutron's exception, Designate's type.
    pub(crate) kind: String,
    pub(crate) message: String,
    /// Seconds for the header `Retry-After`.
    pub(crate) retry_after: Option<u32>,
}

impl ApiError {
    pub(crate) fn new(status: u16, kind: &str, message: impl Into<String>) -> ApiError {
        ApiError { status, kind: kind.to_owned(), message: message.into(), retry_after: None }
    }

    pub(crate) fn bad(message: impl Into<String>) -> ApiError {
        ApiError::new(400, "", message)
    }

    pub(crate) fn forbidden(message: impl Into<String>) -> ApiError {
        ApiError::new(403, "", message)
    }

    pub(crate) fn missing(message: impl Into<String>) -> ApiError {
        ApiError::new(404, "", message)
    }

    pub(crate) fn conflict(message: impl Into<String>) -> ApiError {
        ApiError::new(409, "", message)
    }

    /// The error for an unknown path.
    pub(crate) fn unknown_path() -> ApiError {
        ApiError::new(404, "", "The resource could not be found.")
    }

    pub(crate) fn unauthorized() -> ApiError {
        ApiError::new(401, "", "The request you have made requires authentication.")
    }

    /// The content type and body of the answer.
    pub(crate) fn envelope(&self, service: Service, request_id: &str) -> (&'static str, String) {
        let json = "application/json";
        let (status, message) = (self.status, &self.message);
        // keystonemiddleware answers 401 before the request reaches the service.
        if status == 401 {
            let error =
                json!({"error": {"message": message, "code": 401, "title": "Unauthorized"}});
            return (json, error.to_string());
        }
        let body = match service {
            Service::Identity => {
                json!({"error": {"code": status, "message": message, "title": title(status)}})
            }
            Service::Compute | Service::Volume => {
                let mut fault = json!({"code": status, "message": message});
                if let Some(seconds) = self.retry_after {
                    fault["retryAfter"] = json!(seconds.to_string());
                }
                let mut body = json!({});
                body[fault_name(status)] = fault;
                body
            }
            Service::Network => {
                let kind = if self.kind.is_empty() { neutron_kind(status) } else { &self.kind };
                json!({"NeutronError": {"type": kind, "message": message, "detail": ""}})
            }
            Service::LoadBalancer => {
                let side = if status >= 500 { "Server" } else { "Client" };
                json!({"faultcode": side, "faultstring": message, "debuginfo": null})
            }
            Service::Dns => {
                let kind = if self.kind.is_empty() { designate_kind(status) } else { &self.kind };
                json!({"code": status, "type": kind, "message": message, "request_id": request_id})
            }
            Service::Placement => {
                let code =
                    if self.kind.is_empty() { "placement.undefined_code" } else { &self.kind };
                let error = json!({
                    "status": status, "title": title(status), "detail": message, "code": code, "request_id": request_id,
                });
                json!({"errors": [error]})
            }
            Service::Image => return ("text/html; charset=UTF-8", self.page()),
        };
        (json, body.to_string())
    }

    /// Glance's errors are HTML pages made by WebOb.
    fn page(&self) -> String {
        let title = format!("{} {}", self.status, title(self.status));
        let message = self.message.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        format!(
            "<html>\n <head>\n  <title>{title}</title>\n </head>\n <body>\n  <h1>{title}</h1>\n  {message}<br /><br />\n\n\n </body>\n</html>"
        )
    }
}

/// The reason phrase of a status.
pub(crate) fn title(status: u16) -> &'static str {
    let status = http::StatusCode::from_u16(status).ok();
    status.and_then(|status| status.canonical_reason()).unwrap_or("Error")
}

fn fault_name(status: u16) -> &'static str {
    match status {
        400 => "badRequest",
        403 => "forbidden",
        404 => "itemNotFound",
        405 => "badMethod",
        409 => "conflictingRequest",
        413 | 429 => "overLimit",
        415 => "badMediaType",
        501 => "notImplemented",
        503 => "serviceUnavailable",
        _ => "computeFault",
    }
}

fn neutron_kind(status: u16) -> &'static str {
    match status {
        400 => "HTTPBadRequest",
        403 => "PolicyNotAuthorized",
        404 => "HTTPNotFound",
        409 => "Conflict",
        503 => "ServiceUnavailable",
        _ => "HTTPInternalServerError",
    }
}

fn designate_kind(status: u16) -> &'static str {
    match status {
        400 => "bad_request",
        403 => "forbidden",
        404 => "not_found",
        409 => "conflict",
        413 => "over_quota",
        503 => "service_unavailable",
        _ => "unknown",
    }
}

/// The JSON body of errors of the control API.
pub(crate) fn plain(message: &str) -> Value {
    json!({"error": message})
}
