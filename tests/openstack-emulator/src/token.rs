//! A token that Keystone issued.

use jiff::Timestamp;
use serde_json::Value;
use tokio::time::Instant;

/// A token that was issued.
#[derive(Clone, Debug)]
pub(crate) struct Token {
    pub(crate) user: String,
    /// The id of the project. Empty for a token without a project scope.
    pub(crate) project: String,
    /// Whether the token has the scope of the only domain.
    pub(crate) domain: bool,
    pub(crate) roles: Vec<String>,
    pub(crate) methods: Vec<Value>,
    pub(crate) issued: Timestamp,
    pub(crate) expires: Timestamp,
    pub(crate) until: Instant,
    pub(crate) audit: String,
    pub(crate) application_credential: Option<String>,
    pub(crate) trust: Option<String>,
}
