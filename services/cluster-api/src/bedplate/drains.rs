//! `/bedplate/v1/drains`: drains of compute hosts, as long as no cluster loses etcd's quorum.

use std::collections::BTreeSet;

use axum::response::Response;
use cluster_conductor::DrainRequest;
use cluster_core::{ClusterUuid, DrainUuid};
use http::StatusCode;
use newtype_uuid::GenericUuid;
use openstack_api::{
    ApiError, JsonShape, PathParam, Query, Route, Routes, Shaped, StrictJson, json, json_field,
};
use serde::{Deserialize, Serialize};

use super::drain_view::{Shown, shown};
use super::hosts::{RULE, host_name};
use crate::app::App;
use crate::error::{Error, Result};
use crate::request::{Request, missing};

pub(crate) fn routes() -> Routes<App> {
    let list = Route::get("List drains", list);
    let ask = Route::put("Drain a host", ask)
        .reads_if_sent(JsonShape::object([]).maybe([("force", JsonShape::list(JsonShape::text()))]))
        .refuses([StatusCode::NOT_FOUND, StatusCode::CONFLICT])
        .answers(StatusCode::ACCEPTED);
    let show = Route::get("Show the progress of a drain", show).refuses([StatusCode::NOT_FOUND]);
    let end = Route::delete("Undrain a host", end)
        .refuses([StatusCode::NOT_FOUND])
        .answers(StatusCode::ACCEPTED);
    let check = Route::get("Check whether a host may be drained", check)
        .with_rule(RULE)
        .query_parameters(["force"])
        .refuses([StatusCode::NOT_FOUND, StatusCode::CONFLICT])
        .returns(JsonShape::object([
            ("host", JsonShape::text()),
            ("drain", JsonShape::either(Shown::shape(), JsonShape::null())),
        ]));
    let all = JsonShape::object([("drains", JsonShape::list(Shown::shape()))]);
    Routes::new("bedplate")
        .at("/bedplate/v1/drains", [list.with_rule(RULE).returns(all)])
        .at(
            "/bedplate/v1/drains/{host}",
            [ask, show, end].map(|handle| handle.with_rule(RULE).returns(Shown::shape())),
        )
        .at("/bedplate/v1/drains/{host}/check", [check])
}

/// `GET /bedplate/v1/drains`: all drains.
async fn list(Request { app, .. }: Request) -> Result<Response> {
    let drains = app.store.drains().await?;
    Ok(json_field(StatusCode::OK, "drains", &drains.iter().map(shown).collect::<Vec<_>>()))
}

/// The body of a request for a drain.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct DrainBody {
    /// Clusters, by id or name, that may lose their quorum.
    #[serde(default)]
    force: Vec<String>,
}

/// `PUT /bedplate/v1/drains/{host}`: decides before the response. 409 names the clusters that would lose their quorum.
async fn ask(
    request: Request,
    PathParam(host): PathParam<String>,
    body: Option<StrictJson<DrainBody>>,
) -> Result<Response> {
    let host = host_name(&host)?;
    let DrainBody { force } = body.map(|StrictJson(body)| body).unwrap_or_default();
    let ask = DrainRequest {
        id: DrainUuid::from_untyped_uuid((request.app.ids)()),
        by: request.user(),
        request: openstack_api::request_id(),
        forced: forced(&request, &force).await?,
    };
    let drain = request.app.conductor.drain(&host, &ask).await?;
    Ok(json(StatusCode::ACCEPTED, &shown(&drain)))
}

/// `GET /bedplate/v1/drains/{host}/check?force=`: answers like a request for the drain, 409 included, and changes nothing.
async fn check(
    request: Request,
    PathParam(host): PathParam<String>,
    mut query: Query,
) -> Result<Response> {
    #[derive(Serialize)]
    struct Body<'a> {
        host: &'a str,
        drain: Option<Shown<'a>>,
    }
    let host = host_name(&host)?;
    let named = query.take("force").unwrap_or_default();
    query.finish()?;
    let named: Vec<String> =
        named.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect();
    let ask = DrainRequest {
        id: DrainUuid::from_untyped_uuid((request.app.ids)()),
        by: request.user(),
        request: openstack_api::request_id(),
        forced: forced(&request, &named).await?,
    };
    let drain = request.app.conductor.check_drain(&host, &ask).await?;
    let body = Body { host: host.as_str(), drain: drain.as_ref().map(shown) };
    Ok(json(StatusCode::OK, &body))
}

/// Finds the clusters that `force` names.
async fn forced(request: &Request, force: &[String]) -> Result<BTreeSet<ClusterUuid>> {
    let mut forced = BTreeSet::new();
    for named in force {
        match request.cluster(named).await {
            Ok(cluster) => drop(forced.insert(cluster.id)),
            Err(Error::Api(refusal)) if refusal.status == StatusCode::NOT_FOUND => {
                return Err(ApiError::bad_field("force", refusal.message).into());
            }
            Err(error) => return Err(error),
        }
    }
    Ok(forced)
}

/// `GET /bedplate/v1/drains/{host}`: the drain of one host.
async fn show(
    Request { app, .. }: Request,
    PathParam(host): PathParam<String>,
) -> Result<Response> {
    let found = app.store.find_drain(&host_name(&host)?).await?;
    let drain = found.ok_or_else(|| missing("Drain", &host))?;
    Ok(json(StatusCode::OK, &shown(&drain)))
}

/// `DELETE /bedplate/v1/drains/{host}`: ends the drain. The drain disappears once the host accepts servers again.
async fn end(Request { app, .. }: Request, PathParam(host): PathParam<String>) -> Result<Response> {
    let ending = app.conductor.end_drain(&host_name(&host)?).await?;
    let drain = ending.ok_or_else(|| missing("Drain", &host))?;
    Ok(json(StatusCode::ACCEPTED, &shown(&drain)))
}
