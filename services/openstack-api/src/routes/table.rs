//! The table of who may use which route.

use serde::Serialize;
use utoipa::openapi::path::HttpMethod;

use crate::{Rule, Shape};

/// Every route, and who may use it; the answer of `GET /bedplate/v1/policy`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Table {
    /// One for each route, in the order in which they are described.
    pub policy: Vec<Row>,
}

/// A route, and who may use it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Row {
    /// The method.
    pub method: &'static str,
    /// The path, its parts that vary in braces.
    pub path: &'static str,
    /// Whether anyone may use it, unasked.
    pub public: bool,
    /// Whether it is recorded who used it, and what for.
    pub recorded: bool,
    /// Who may use it that is not public.
    #[serde(flatten)]
    pub rule: Option<Rule>,
}

impl Table {
    /// As it is served.
    pub(super) fn shape() -> Shape {
        let role = || Shape::word(["reader", "member", "manager", "admin"]);
        let row = Shape::object([
            ("method", Shape::text()),
            ("path", Shape::text()),
            ("public", Shape::flag()),
            ("recorded", Shape::flag()),
        ]);
        let row = row.maybe([
            ("cloud", role()),
            ("services", Shape::flag()),
            ("owner", role().or_null()),
            ("lessee", role().or_null()),
        ]);
        Shape::object([("policy", Shape::list(row))])
    }

    /// Adds a row.
    pub(super) fn add(
        &mut self,
        method: &HttpMethod,
        path: &'static str,
        rule: Option<Rule>,
        recorded: bool,
    ) {
        let method = match method {
            HttpMethod::Get => "GET",
            HttpMethod::Post => "POST",
            HttpMethod::Put => "PUT",
            HttpMethod::Patch => "PATCH",
            HttpMethod::Delete => "DELETE",
            HttpMethod::Options => "OPTIONS",
            HttpMethod::Head => "HEAD",
            HttpMethod::Trace => "TRACE",
        };
        self.policy.push(Row { method, path, public: rule.is_none(), recorded, rule });
    }

    /// These rows and `others`.
    pub(super) fn and(mut self, others: Table) -> Self {
        self.policy.extend(others.policy);
        self
    }
}
