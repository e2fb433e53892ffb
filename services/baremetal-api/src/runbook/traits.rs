//! `/v1/runbooks/{runbook}/traits`: the traits of the nodes that a runbook may run on.

use std::collections::BTreeSet;

use axum::response::Response;
use baremetal_core::{Runbook, Stored, Trait};
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
use crate::microversion::RUNBOOK_TRAITS;
use crate::request::{Request, retry_if_stale};
use crate::rule::{SEE_RUNBOOK, USE_RUNBOOK};
use crate::stored::{Purpose, find};
use crate::traits::MOST;

/// The routes of the traits of runbooks.
pub(super) fn routes() -> Routes<App> {
    let all = [
        Route::get("List a runbook's traits", list)
            .with_rule(SEE_RUNBOOK)
            .returns(JsonShape::object([("traits", JsonShape::list(JsonShape::text()))])),
        Route::put("Replace a runbook's traits", replace)
            .with_rule(USE_RUNBOOK)
            .reads(Body::schema())
            .answers(StatusCode::NO_CONTENT),
        Route::delete("Remove all of a runbook's traits", clear)
            .with_rule(USE_RUNBOOK)
            .answers(StatusCode::NO_CONTENT),
    ];
    let one = [
        Route::put("Add a trait to a runbook", add)
            .with_rule(USE_RUNBOOK)
            .answers(StatusCode::NO_CONTENT),
        Route::delete("Remove a trait from a runbook", remove)
            .with_rule(USE_RUNBOOK)
            .answers(StatusCode::NO_CONTENT),
    ];
    let later = |route: Route<App>| route.hidden_before(RUNBOOK_TRAITS, Hidden::Path);
    Routes::new("runbooks")
        .at("/v1/runbooks/{runbook}/traits", all.map(later))
        .at("/v1/runbooks/{runbook}/traits/{trait}", one.map(later))
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Body {
    #[schema(value_type = Vec<String>, example = json!(["CUSTOM_GPU"]))]
    traits: BTreeSet<Trait>,
}

/// `GET /v1/runbooks/{runbook}/traits`: lists the traits of a runbook.
async fn list(request: Request, PathParam(ident): PathParam<String>) -> Result<Response> {
    let runbook: Stored<Runbook> = find(&request, &ident, Purpose::See).await?;
    Ok(json_field(StatusCode::OK, "traits", &runbook.content.traits))
}

/// `PUT /v1/runbooks/{runbook}/traits`: replaces the traits of a runbook.
async fn replace(
    request: Request,
    PathParam(ident): PathParam<String>,
    StrictJson(body): StrictJson<Body>,
) -> Result<StatusCode> {
    let wanted: BTreeSet<String> = body.traits.into_iter().map(String::from).collect();
    change(&request, &ident, |traits| traits.clone_from(&wanted)).await
}

/// `DELETE /v1/runbooks/{runbook}/traits`: removes all traits of a runbook.
async fn clear(request: Request, PathParam(ident): PathParam<String>) -> Result<StatusCode> {
    change(&request, &ident, BTreeSet::clear).await
}

/// `PUT /v1/runbooks/{runbook}/traits/{trait}`: adds a trait.
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
    });
    Ok(accepted_at(status.await?, &format!("{origin}/v1/runbooks/{ident}/traits/{name}")))
}

/// `DELETE /v1/runbooks/{runbook}/traits/{trait}`: removes a trait, if the runbook has it.
async fn remove(
    request: Request,
    PathParam((ident, name)): PathParam<(String, String)>,
) -> Result<StatusCode> {
    change(&request, &ident, |traits| {
        traits.remove(&name);
    })
    .await
}

/// Changes the traits. As in Ironic, `updated_at` does not change.
async fn change(
    request: &Request,
    ident: &str,
    edit: impl Fn(&mut BTreeSet<String>),
) -> Result<StatusCode> {
    retry_if_stale(|| async {
        let mut runbook: Stored<Runbook> = find(request, ident, Purpose::Change).await?;
        edit(&mut runbook.content.traits);
        if runbook.content.traits.len() > MOST {
            let why = format!("a runbook has {MOST} at most");
            return Err(ApiError::bad_field("traits", why).into());
        }
        request.app.store.update_resource(&runbook).await?;
        Ok(())
    })
    .await?;
    Ok(StatusCode::NO_CONTENT)
}
