//! The routes that every API has, and the router of an API.

use std::sync::{Arc, OnceLock};

use axum::Router;
use axum::extract::FromRef;
use bytes::Bytes;
use http::StatusCode;

use crate::json::json_text;
use crate::policy::ApiState;
use crate::{
    ApiDescription, Auth, Caller, JsonShape, PolicyTable, Route, Routes, Rule, audit_routes, json,
};

impl<S: ApiState + Clone + Send + Sync + 'static> Routes<S> {
    /// Finishes the router, and adds the routes of every API: `/openapi.json`, `/bedplate/v1/policy` with the policy table, and
    /// `/bedplate/v1/audit`.
    pub fn finish(self, description: ApiDescription) -> Router<S>
    where
        Auth: FromRef<S>,
    {
        let described = Arc::new(OnceLock::<Bytes>::new());
        let table = Arc::new(OnceLock::<PolicyTable>::new());
        let (reported, shown) = (described.clone(), table.clone());
        let describe = move || async move {
            json_text(StatusCode::OK, reported.get().cloned().unwrap_or_default())
        };
        let show = move |_: Caller| async move { json(StatusCode::OK, &shown.get()) };
        let show =
            Route::get("Show the access policy of all routes", show).with_rule(Rule::ANY_READER);
        let described_by = Route::public_get("Get the OpenAPI document", describe);
        let own = Routes::new("versions")
            .at("/openapi.json", [described_by.returns(JsonShape::any_object())])
            .at("/bedplate/v1/policy", [show.returns(PolicyTable::shape())]);
        let all = self.merge(own).merge(audit_routes::routes());
        described.get_or_init(|| description.document(all.described).into());
        table.get_or_init(|| all.table);
        all.router
    }
}
