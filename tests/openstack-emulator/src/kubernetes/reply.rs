//! Requests to the API of a cluster, and answers.

use serde_json::{Value, json};

use super::auth::User;

/// Status and body of an answer.
pub(super) type Reply = (u16, Value);

/// A parsed request.
pub(super) struct ParsedRequest<'r> {
    pub(super) user: User,
    pub(super) method: &'r str,
    pub(super) path: &'r str,
    pub(super) query: &'r str,
    pub(super) accept: &'r str,
    pub(super) kind: &'r str,
    pub(super) body: &'r [u8],
}

impl ParsedRequest<'_> {
    /// The value of a query parameter. Empty if it is missing.
    pub(super) fn parameter(&self, wanted: &str) -> String {
        let mut pairs = url::form_urlencoded::parse(self.query.as_bytes());
        let found = pairs.find(|(key, _)| key == wanted);
        found.map(|(_, value)| value.into_owned()).unwrap_or_default()
    }
}

/// A `Status` object for an error.
pub(super) fn failure(code: u16, reason: &str, message: &str) -> Reply {
    (
        code,
        json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message, "reason": reason, "code": code}),
    )
}
