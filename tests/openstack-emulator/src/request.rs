//! Parsed requests, answers, and refusals in the form of each service.

use bytes::Bytes;
use http::{HeaderMap, Method};
use serde_json::{Value, json};

use crate::glob;
use crate::object::{Fields, ReadFields};
use crate::service::Service;

/// The caller of a request, according to its token.
#[derive(Clone, Debug, Default)]
pub(crate) struct Caller {
    pub(crate) token: String,
    pub(crate) user: String,
    pub(crate) project: String,
    pub(crate) roles: Vec<String>,
    /// Whether the token came from a restricted application credential, which may not create others.
    pub(crate) restricted: bool,
    /// The access rules of the application credential: `service`, `method`, `path`. Empty if there are none.
    pub(crate) rules: Vec<Value>,
}

/// The roles of Keystone's bootstrap. Each implies those before it.
const IMPLIED: [&str; 4] = ["reader", "member", "manager", "admin"];

impl Caller {
    pub(crate) fn is_admin(&self) -> bool {
        self.roles.iter().any(|role| role == "admin")
    }

    pub(crate) fn may(&self, role: &str) -> bool {
        let rank = |role: &str| IMPLIED.iter().position(|it| *it == role);
        let has =
            |mine: &String| mine == role || rank(role).is_some_and(|it| rank(mine) > Some(it));
        self.is_admin() || self.roles.iter().any(has)
    }
}

#[derive(Clone, Debug)]
pub(crate) struct ApiRequest {
    pub(crate) service: Service,
    pub(crate) method: Method,
    /// The whole path, as the client sent it.
    pub(crate) path: String,
    /// The decoded path segments after the service's prefix and version.
    pub(crate) segments: Vec<String>,
    pub(crate) query: Vec<(String, String)>,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    /// Scheme, host and port, as the client used them.
    pub(crate) base: String,
    pub(crate) request_id: String,
    pub(crate) caller: Caller,
    /// The minor part of the microversion.
    pub(crate) version: u32,
}

impl ApiRequest {
    /// The URL of the service, without its version.
    pub(crate) fn root(&self) -> String {
        format!("{}/{}", self.base, self.service.prefix())
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    pub(crate) fn query(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// Whether a flag in the query is set.
    pub(crate) fn flag(&self, name: &str) -> bool {
        self.query(name).is_some_and(|value| {
            ["", "1", "t", "true", "on", "yes"].contains(&value.to_ascii_lowercase().as_str())
        })
    }

    /// Whether the microversion is `minor` or later.
    pub(crate) fn since(&self, minor: u32) -> bool {
        self.version >= minor
    }

    /// Whether the microversion is in `versions`: from `52` on, or in the range `1-56`. Empty versions include all.
    pub(crate) fn within(&self, versions: &str) -> bool {
        includes(versions, self.version)
    }

    pub(crate) fn json(&self) -> ApiResult<Value> {
        serde_json::from_slice(&self.body)
            .map_err(|error| ApiError::bad(format!("Malformed request body: {error}")))
    }

    /// The object under `key` in the body.
    pub(crate) fn wrapped(&self, key: &str) -> ApiResult<Fields> {
        match self.json()?.get_mut(key).map(Value::take) {
            Some(Value::Object(map)) => Ok(map),
            _ => Err(ApiError::bad(format!(
                "Invalid input for field/attribute {key}. '{key}' is a required property"
            ))),
        }
    }

    /// Refuses requests outside of the application credential's access rules.
    pub(crate) fn within_rules(&self) -> ApiResult {
        let path =
            self.path.strip_prefix(&format!("/{}", self.service.prefix())).unwrap_or(&self.path);
        let allowed = self.caller.rules.is_empty()
            || self.caller.rules.iter().any(|rule| {
                self.service.types().contains(&rule.text("service"))
                    && rule.text("method") == self.method.as_str()
                    && glob::matches(&glob::without_names(rule.text("path")), path)
            });
        if allowed { Ok(()) } else { Err(ApiError::unauthorized()) }
    }

    /// Refuses callers other than administrators.
    pub(crate) fn admin(&self, rule: &str) -> ApiResult {
        self.allow(self.caller.is_admin(), rule)
    }

    /// Refuses a request that a rule does not allow.
    pub(crate) fn allow(&self, is_allowed: bool, rule: &str) -> ApiResult {
        let refusal = || format!("Policy doesn't allow {rule} to be performed.");
        if is_allowed { Ok(()) } else { Err(ApiError::forbidden(refusal())) }
    }

    /// Refuses callers who may only read.
    pub(crate) fn writer(&self) -> ApiResult {
        self.allow(self.caller.may("member"), "this action")
    }

    /// Whether the caller may see objects of this project.
    pub(crate) fn sees(&self, project: &str) -> bool {
        self.caller.is_admin() || self.caller.project == project
    }
}

/// Whether `versions` (`52` or `1-56`) includes this version.
pub(crate) fn includes(versions: &str, version: u32) -> bool {
    let (first, last) = versions.split_once('-').unwrap_or((versions, ""));
    let read = |text: &str, other| text.parse::<u32>().unwrap_or(other);
    (read(first, 0)..=read(last, u32::MAX)).contains(&version)
}

#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Bytes,
}

impl Answer {
    pub(crate) fn json(status: u16, body: Value) -> Answer {
        let headers = vec![("content-type", "application/json".to_owned())];
        Answer { status, headers, body: body.to_string().into() }
    }

    pub(crate) fn ok(body: Value) -> Answer {
        Answer::json(200, body)
    }

    pub(crate) fn empty(status: u16) -> Answer {
        Answer { status, headers: Vec::new(), body: Bytes::new() }
    }

    pub(crate) fn with(mut self, name: &'static str, value: impl Into<String>) -> Answer {
        self.headers.push((name, value.into()));
        self
    }
}

/// The answer of a service, or the reason for a refusal.
pub(crate) type ApiAnswer = ApiResult<Answer>;

/// The result of a request, or the reason for a refusal.
pub(crate) type ApiResult<T = ()> = Result<T, ApiError>;

/// Declares the errors of a service, one a line: the status, the service's name of the error if it has one, a function that makes the error,
/// and the message.
macro_rules! refusals {
    ($($status:literal $($kind:literal)? $name:ident($($field:ident),*): $message:literal;)*) => {$(
        pub(super) fn $name($($field: impl std::fmt::Display),*) -> $crate::request::ApiError {
            let message = std::fmt::format(format_args!($message));
            $crate::request::ApiError::new($status, concat!("" $(, $kind)?), message)
        }
    )*};
}
pub(crate) use refusals;

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
        if status == 401 && service != Service::ObjectStore {
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
            Service::ObjectStore => return ("text/html; charset=UTF-8", swift_page(status)),
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

/// Swift's errors are HTML pages with a sentence for each status.
fn swift_page(status: u16) -> String {
    let sentence = match status {
        401 => {
            "This server could not verify that you are authorized to access the document you requested."
        }
        403 => "Access was denied to this resource.",
        404 => "The resource could not be found.",
        405 => "The method is not allowed for this resource.",
        409 => "There was a conflict when trying to complete your request.",
        412 => "A precondition for this request was not met.",
        413 => "The body of your request was too large for this server.",
        503 => "The server is currently unavailable. Please try again at a later time.",
        507 => "There was not enough space to save the resource.",
        _ => "",
    };
    format!("<html><h1>{}</h1><p>{sentence}</p></html>", title(status))
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
