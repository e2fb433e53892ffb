//! The descriptions of all routes.

use std::collections::{BTreeMap, BTreeSet};

use http::StatusCode;
use serde_json::value::{RawValue, to_raw_value};
use utoipa::openapi::path::HttpMethod;

use super::describe::{describe, refusals};
use super::route::Route;

/// The operations of an OpenAPI document. Each is kept as text: as values, those of one API take 20 MiB, and an allocator rarely returns
/// that to the operating system.
#[derive(Default)]
pub(crate) struct DescribedRoutes {
    /// The operations by path and method.
    pub(crate) paths: BTreeMap<&'static str, BTreeMap<&'static str, Box<RawValue>>>,
    /// The statuses with which any of the routes may refuse a request.
    pub(crate) refusals: BTreeSet<StatusCode>,
}

impl DescribedRoutes {
    pub(super) fn add<S>(&mut self, tag: &str, path: &'static str, route: &Route<S>) {
        let text = to_raw_value(&describe(tag, path, route));
        let text = text.expect("a description has text alone for keys");
        self.paths.entry(path).or_default().insert(key(&route.method), text);
        self.refusals.extend(refusals(path, route));
    }

    pub(super) fn and(mut self, others: DescribedRoutes) -> Self {
        for (path, operations) in others.paths {
            self.paths.entry(path).or_default().extend(operations);
        }
        self.refusals.extend(others.refusals);
        self
    }
}

/// The key of an operation in its path (OpenAPI 3.1, Path Item Object).
fn key(method: &HttpMethod) -> &'static str {
    match method {
        HttpMethod::Get => "get",
        HttpMethod::Post => "post",
        HttpMethod::Put => "put",
        HttpMethod::Patch => "patch",
        HttpMethod::Delete => "delete",
        HttpMethod::Options => "options",
        HttpMethod::Head => "head",
        HttpMethod::Trace => "trace",
    }
}
