//! The policy table: who may use which route.

use serde::Serialize;
use utoipa::openapi::path::HttpMethod;

use crate::{JsonShape, Rule};

/// The policy table of an API; the answer of `GET /bedplate/v1/policy`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PolicyTable {
    /// The rows, in the order in which the routes were declared.
    pub policy: Vec<PolicyRow>,
}

/// A route and its rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PolicyRow {
    pub method: &'static str,
    /// The path, with parameters in braces.
    pub path: &'static str,
    /// Whether the route needs no authentication.
    pub public: bool,
    /// Whether requests are recorded in the audit trail.
    pub recorded: bool,
    /// `None` for a public route.
    #[serde(flatten)]
    pub rule: Option<Rule>,
}

impl PolicyTable {
    pub(crate) fn shape() -> JsonShape {
        let role = || JsonShape::enumeration(["reader", "member", "manager", "admin"]);
        let row = JsonShape::object([
            ("method", JsonShape::text()),
            ("path", JsonShape::text()),
            ("public", JsonShape::boolean()),
            ("recorded", JsonShape::boolean()),
        ]);
        let row = row.maybe([
            ("cloud", role()),
            ("services", JsonShape::boolean()),
            ("owner", role().or_null()),
            ("lessee", role().or_null()),
        ]);
        JsonShape::object([("policy", JsonShape::list(row))])
    }

    pub(super) fn add(
        &mut self,
        method: &HttpMethod,
        path: &'static str,
        rule: Option<Rule>,
        recorded: bool,
    ) {
        let method = method_name(method);
        self.policy.push(PolicyRow { method, path, public: rule.is_none(), recorded, rule });
    }

    pub(super) fn and(mut self, others: PolicyTable) -> Self {
        self.policy.extend(others.policy);
        self
    }
}

/// The name of a method in a request.
pub(super) fn method_name(method: &HttpMethod) -> &'static str {
    match method {
        HttpMethod::Get => "GET",
        HttpMethod::Post => "POST",
        HttpMethod::Put => "PUT",
        HttpMethod::Patch => "PATCH",
        HttpMethod::Delete => "DELETE",
        HttpMethod::Options => "OPTIONS",
        HttpMethod::Head => "HEAD",
        HttpMethod::Trace => "TRACE",
    }
}
