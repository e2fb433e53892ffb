//! Declares routes. The types make sure that no route lacks an authenticated caller, a description, or a row in the policy table.

mod describe;
mod described_routes;
mod erased;
mod route;
mod table;

use axum::routing::MethodRouter;
use axum::{Extension, Router};

use crate::Microversion;
use crate::admission::Gate;
use crate::policy::ApiState;
use crate::request_recorder::Recorded;
pub use describe::REFUSAL;
pub(crate) use describe::{refusal, refusal_name};
pub(crate) use described_routes::DescribedRoutes;
pub(crate) use route::no_such_method;
use route::refuse_method;
pub use route::{Authenticated, Guarded, Hidden, Route};
pub use table::{PolicyRow, PolicyTable};

/// Routes, with their descriptions and rules.
pub struct Routes<S> {
    pub(crate) router: Router<S>,
    pub(crate) described: DescribedRoutes,
    pub(crate) table: PolicyTable,
    tag: &'static str,
}

impl<S: ApiState + Clone + Send + Sync + 'static> Routes<S> {
    /// Starts a group of routes, described under `tag`.
    pub fn new(tag: &'static str) -> Self {
        Routes {
            router: Router::new(),
            described: DescribedRoutes::default(),
            table: PolicyTable::default(),
            tag,
        }
    }

    /// Adds the routes of one path.
    pub fn at(mut self, path: &'static str, handles: impl IntoIterator<Item = Route<S>>) -> Self {
        let handles: Vec<Route<S>> = handles.into_iter().collect();
        let mut methods = MethodRouter::new();
        // Only if every route of the path is hidden before some version, the path itself does not exist there.
        let hidden = handles.iter().map(|handle| handle.hidden);
        let came = hidden.map(|hidden| hidden.map(|(came, _)| came)).min().flatten();
        if came.is_some() {
            methods =
                methods.fallback(move |version: Option<Extension<Microversion>>| async move {
                    refuse_method(version.as_deref(), came)
                });
        }
        for handle in handles {
            self.described.add(self.tag, path, &handle);
            self.table.add(&handle.method, path, handle.rule, handle.recorded);
            // The check and the table get the same rule.
            let recorded = Recorded { action: handle.summary, effect: handle.effect };
            let recorded = handle.recorded.then_some(recorded);
            methods = methods.merge(match handle.rule {
                Some(rule) => handle.methods.route_layer(Extension(Gate { rule, recorded })),
                None => handle.methods,
            });
        }
        self.router = self.router.route(path, methods);
        self
    }

    /// Combines these routes and `others`.
    pub fn merge(self, others: Routes<S>) -> Self {
        Routes {
            router: self.router.merge(others.router),
            described: self.described.and(others.described),
            table: self.table.and(others.table),
            tag: self.tag,
        }
    }
}
