//! Parsed requests, and answers.

use bytes::Bytes;
use http::{HeaderMap, Method};
use serde_json::{Map, Value};

use crate::glob;
use crate::problem::ApiError;
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

impl Caller {
    pub(crate) fn is_admin(&self) -> bool {
        self.roles.iter().any(|role| role == "admin")
    }

    pub(crate) fn may(&self, role: &str) -> bool {
        self.is_admin() || self.roles.iter().any(|mine| mine == role)
    }
}

/// A request to a service.
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

    /// Parses the body as JSON.
    pub(crate) fn json(&self) -> Result<Value, ApiError> {
        serde_json::from_slice(&self.body)
            .map_err(|error| ApiError::bad(format!("Malformed request body: {error}")))
    }

    /// The object under `key` in the body.
    pub(crate) fn wrapped(&self, key: &str) -> Result<Map<String, Value>, ApiError> {
        match self.json()?.get_mut(key).map(Value::take) {
            Some(Value::Object(map)) => Ok(map),
            _ => Err(ApiError::bad(format!(
                "Invalid input for field/attribute {key}. '{key}' is a required property"
            ))),
        }
    }

    /// Refuses requests outside of the application credential's access rules.
    pub(crate) fn within_rules(&self) -> Result<(), ApiError> {
        let path =
            self.path.strip_prefix(&format!("/{}", self.service.prefix())).unwrap_or(&self.path);
        let allowed = self.caller.rules.is_empty()
            || self.caller.rules.iter().any(|rule| {
                let text = |key: &str| rule[key].as_str().unwrap_or_default();
                self.service.types().contains(&text("service"))
                    && text("method") == self.method.as_str()
                    && glob::matches(&glob::without_names(text("path")), path)
            });
        if allowed { Ok(()) } else { Err(ApiError::unauthorized()) }
    }

    /// Refuses callers other than administrators.
    pub(crate) fn admin(&self, rule: &str) -> Result<(), ApiError> {
        if self.caller.is_admin() {
            return Ok(());
        }
        Err(ApiError::forbidden(format!("Policy doesn't allow {rule} to be performed.")))
    }

    /// Refuses callers who may only read.
    pub(crate) fn writer(&self) -> Result<(), ApiError> {
        if self.caller.may("member") {
            return Ok(());
        }
        Err(ApiError::forbidden("Policy doesn't allow this action to be performed."))
    }

    /// Whether the caller may see objects of this project.
    pub(crate) fn sees(&self, project: &str) -> bool {
        self.caller.is_admin() || self.caller.project == project
    }
}

/// An answer to a request.
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
pub(crate) type AnswerResult = Result<Answer, ApiError>;
