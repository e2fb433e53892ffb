//! `/v1/nodes/{node}/traits`: the capabilities of a node, for scheduling.

use std::collections::BTreeSet;

use axum::response::Response;
use baremetal_core::{Node, Trait, check_change};
use http::StatusCode;
use openstack_api::{
    ApiError, Hidden, JsonShape, Origin, PathParam, Route, Routes, StrictJson, accepted_at,
    json_field,
};
use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::{PartialSchema, ToSchema};

use crate::app::App;
use crate::error::Result;
use crate::request::Request;
use crate::value::{list, text};
use crate::{microversion, rule};

pub(crate) fn routes() -> Routes<App> {
    let came = microversion::TRAITS;
    let all = [
        Route::get("List a node's traits", list_of_node)
            .hidden_before(came, Hidden::Version)
            .with_rule(rule::READ)
            .returns(JsonShape::object([("traits", JsonShape::list(JsonShape::text()))])),
        Route::put("Replace a node's traits", replace)
            .hidden_before(came, Hidden::Method)
            .with_rule(rule::SET_DRIVER)
            .reads(Body::schema())
            .answers(StatusCode::NO_CONTENT),
        Route::delete("Remove all of a node's traits", clear)
            .since(came)
            .with_rule(rule::SET_DRIVER)
            .answers(StatusCode::NO_CONTENT),
    ];
    let one = [
        Route::put("Add a trait", add)
            .hidden_before(came, Hidden::Method)
            .with_rule(rule::SET_DRIVER)
            .answers(StatusCode::NO_CONTENT),
        Route::delete("Remove a trait", remove)
            .since(came)
            .with_rule(rule::SET_DRIVER)
            .answers(StatusCode::NO_CONTENT),
    ];
    Routes::new("traits")
        .at("/v1/nodes/{node}/traits", all)
        .at("/v1/nodes/{node}/traits/{trait}", one)
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Body {
    #[schema(value_type = Vec<String>, example = json!(["CUSTOM_GPU"]))]
    traits: BTreeSet<Trait>,
}

/// The most traits that a node may have, as in Ironic. The same limit applies to runbooks.
pub(crate) const MOST: usize = 50;

pub(crate) fn parse_traits(name: &str, value: Value) -> Result<BTreeSet<String>, ApiError> {
    let given = list(name, value, MOST)?.into_iter().map(|one| {
        let one = text(name, one, 255)?.unwrap_or_default();
        Trait::try_from(one).map(String::from).map_err(|why| ApiError::bad_field(name, why))
    });
    given.collect()
}

/// `GET /v1/nodes/{node}/traits`: lists the traits of a node.
async fn list_of_node(request: Request, PathParam(ident): PathParam<String>) -> Result<Response> {
    let node = request.node(&ident).await?;
    Ok(json_field(StatusCode::OK, "traits", &node.traits))
}

/// `PUT /v1/nodes/{node}/traits`: replaces the traits of a node.
async fn replace(
    request: Request,
    PathParam(ident): PathParam<String>,
    StrictJson(body): StrictJson<Body>,
) -> Result<StatusCode> {
    let wanted: BTreeSet<String> = body.traits.into_iter().map(String::from).collect();
    change(&request, &ident, |traits| {
        traits.clone_from(&wanted);
        Ok(())
    })
    .await
}

/// `DELETE /v1/nodes/{node}/traits`: removes all traits of a node.
async fn clear(request: Request, PathParam(ident): PathParam<String>) -> Result<StatusCode> {
    change(&request, &ident, |traits| {
        traits.clear();
        Ok(())
    })
    .await
}

/// `PUT /v1/nodes/{node}/traits/{trait}`: adds a trait.
async fn add(
    request: Request,
    origin: Origin,
    PathParam((ident, name)): PathParam<(String, String)>,
    body: Option<StrictJson<Map<String, Value>>>,
) -> Result<Response> {
    if body.is_some_and(|StrictJson(body)| !body.is_empty()) {
        let why = "must be empty: the path names the trait to add";
        return Err(ApiError::bad_field("body", why).into());
    }
    let name = Trait::try_from(name).map_err(|why| ApiError::bad_field("trait", why))?;
    let name = String::from(name);
    let status = change(&request, &ident, |traits| {
        traits.insert(name.clone());
        Ok(())
    });
    Ok(accepted_at(status.await?, &format!("{origin}/v1/nodes/{ident}/traits/{name}")))
}

/// `DELETE /v1/nodes/{node}/traits/{trait}`: removes a trait.
async fn remove(
    request: Request,
    PathParam((ident, name)): PathParam<(String, String)>,
) -> Result<StatusCode> {
    let missing = || {
        let name: String = name.chars().take(64).collect();
        ApiError::not_found(format!("the node has no trait {name:?}"))
    };
    change(&request, &ident, |traits| if traits.remove(&name) { Ok(()) } else { Err(missing()) })
        .await
}

async fn change(
    request: &Request,
    ident: &str,
    edit: impl Fn(&mut BTreeSet<String>) -> Result<(), ApiError>,
) -> Result<StatusCode> {
    request
        .change(ident, |before| {
            let mut after: Node = before.clone();
            edit(&mut after.traits)?;
            if after.traits.len() > MOST {
                return Err(
                    ApiError::bad_field("traits", format!("a node has {MOST} at most")).into()
                );
            }
            check_change(before, &after)?;
            Ok((after, None))
        })
        .await?;
    Ok(StatusCode::NO_CONTENT)
}
