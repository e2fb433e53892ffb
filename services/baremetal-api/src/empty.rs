//! Empty lists of resources that do not exist here, because clients query these lists before they act.

use axum::response::Response;
use http::StatusCode;
use openstack_api::Hidden::{Path, Resource};
use openstack_api::{
    Caller, Hidden, JsonShape, Microversion, PathParam, Route, Routes, Rule, json_field,
};

use crate::app::App;
use crate::error::Error;
use crate::microversion as since;
use crate::request::Request;
use crate::rule::READ;

/// A path, the key of its list, the microversion that introduced it, the answer to earlier versions, and who may read it.
type EmptyList = (&'static str, &'static str, Microversion, Hidden, Rule);

/// For lists that Ironic filters by project: any caller may read an empty one.
const ANYONE: Rule = Rule::ANY_READER;
/// Ironic's `SYSTEM_READER`.
const OPERATORS: Rule = Rule { owner: None, lessee: None, ..Rule::ANY_READER };

/// Lists that do not belong to a node.
const LISTS: [EmptyList; 2] = [
    ("/v1/runbooks", "runbooks", since::RUNBOOKS, Path, ANYONE),
    ("/v1/inspection_rules", "inspection_rules", since::INSPECTION_RULES, Resource, OPERATORS),
];

/// Lists of a node.
const NODE_LISTS: [EmptyList; 2] = [
    ("/v1/nodes/{node}/bios", "bios", since::BIOS, Path, READ),
    ("/v1/nodes/{node}/firmware", "firmware", since::FIRMWARE, Path, READ),
];

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
    for (path, key, came, before, rule) in NODE_LISTS {
        let list = move |request: Request, ident: PathParam<String>| of_node(request, ident, key);
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

async fn of_node(
    request: Request,
    PathParam(ident): PathParam<String>,
    key: &'static str,
) -> Result<Response, Error> {
    request.node(&ident).await?;
    Ok(nothing(key))
}

fn nothing(key: &str) -> Response {
    json_field(StatusCode::OK, key, &[(); 0])
}
