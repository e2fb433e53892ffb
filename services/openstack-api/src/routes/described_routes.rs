//! The descriptions of all routes.

use std::collections::{BTreeMap, BTreeSet};

use http::StatusCode;
use serde_json::value::{RawValue, to_raw_value};

use super::describe::{describe, refusals};
use super::route::Route;
use super::table::method_name;

/// The operations of an OpenAPI document. Each is kept as text: as values, those of baremetald take 19 MB, and glibc keeps that memory after
/// the start.
#[derive(Default)]
pub(crate) struct DescribedRoutes {
    /// The operations by path and method, which is in lower case (OpenAPI 3.1, Path Item Object).
    pub(crate) paths: BTreeMap<&'static str, BTreeMap<String, Box<RawValue>>>,
    /// The statuses with which any of the routes may refuse a request.
    pub(crate) refusals: BTreeSet<StatusCode>,
}

impl DescribedRoutes {
    pub(super) fn add<S>(&mut self, tag: &str, path: &'static str, route: &Route<S>) {
        let text = to_raw_value(&describe(tag, path, route));
        let text = text.expect("a description has text alone for keys");
        let method = method_name(&route.method).to_ascii_lowercase();
        self.paths.entry(path).or_default().insert(method, text);
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
