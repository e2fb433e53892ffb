//! Empty lists of resources that do not exist here, because clients query these lists before they act.

use axum::response::Response;
use http::StatusCode;
use openstack_api::Hidden::Resource;
use openstack_api::{Caller, Hidden, JsonShape, Microversion, Route, Routes, Rule, json_field};

use crate::app::App;
use crate::microversion as since;

/// A path, the key of its list, the microversion that introduced it, the answer to earlier versions, and who may read it.
type EmptyList = (&'static str, &'static str, Microversion, Hidden, Rule);

/// Ironic's `SYSTEM_READER`.
const OPERATORS: Rule = Rule { owner: None, lessee: None, ..Rule::ANY_READER };

/// The lists.
const LISTS: [EmptyList; 1] =
    [("/v1/inspection_rules", "inspection_rules", since::INSPECTION_RULES, Resource, OPERATORS)];

/// The routes of empty lists.
pub(crate) fn routes() -> Routes<App> {
    let mut routes = Routes::new("nothing");
    for (path, key, came, before, rule) in LISTS {
        let list = move |_caller: Caller| async move { nothing(key) };
        routes = routes.at(
            path,
            [Route::get("List (always empty)", list)
                .hidden_before(came, before)
                .with_rule(rule)
                .returns(empty(key))],
        );
    }
    routes
}

fn empty(key: &str) -> JsonShape {
    JsonShape::object([(key, JsonShape::list(JsonShape::anything()))])
}

fn nothing(key: &str) -> Response {
    json_field(StatusCode::OK, key, &[(); 0])
}
