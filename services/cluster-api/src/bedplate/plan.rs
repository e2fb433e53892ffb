//! `/bedplate/v1/plan`: what would be made, before anything is.

use axum::extract::State;
use axum::response::Response;
use cluster_conductor::Preview;
use http::StatusCode;
use openstack_api::{Caller, Handle, Microversion, Routes, Segment, Strict, json};
use serde::Serialize;
use utoipa::PartialSchema;

use crate::app::App;
use crate::cluster::{NewCluster, Order};
use crate::error::Error;
use crate::microversion as since;

/// What is answered here.
pub(crate) fn routes() -> Routes<App> {
    Routes::new("bedplate")
        .at(
            "/bedplate/v1/plan",
            [Handle::post("Say what a cluster would take, and make none", dry_run)
                .reads(NewCluster::schema())],
        )
        .at(
            "/bedplate/v1/clusters/{cluster}/plan",
            [Handle::get("Say what a cluster consists of and takes", plan)],
        )
}

#[derive(Serialize)]
struct Object {
    object: String,
    name: String,
}

#[derive(Serialize)]
struct Body {
    /// What is asked of the cloud first, all at once.
    first: Vec<String>,
    objects: Vec<Object>,
    need: cluster_core::Need,
    /// Whether it fits into quotas and capacity; null where nobody has looked.
    fits: Option<bool>,
    fits_reason: &'static str,
}

fn answer(preview: Preview) -> Response {
    let objects = preview.objects.into_iter().map(|(object, name)| Object { object, name });
    let body = Body {
        first: preview.first.iter().map(ToString::to_string).collect(),
        objects: objects.collect(),
        need: preview.need,
        fits: None,
        fits_reason: "this clusterd does not ask the cloud for quotas and capacity yet",
    };
    json(StatusCode::OK, &body)
}

/// `POST /bedplate/v1/plan`: the body is that of `POST /v1/clusters`.
async fn dry_run(
    caller: Caller,
    State(app): State<App>,
    Strict(body): Strict<NewCluster>,
) -> Result<Response, Error> {
    let newest: Microversion = since::MAXIMUM;
    let Order { cluster, groups } = body.into_order(&app, &caller, newest).await?;
    Ok(answer(app.conductor.preview(&cluster, &groups)))
}

/// `GET /bedplate/v1/clusters/{cluster}/plan`.
async fn plan(
    caller: Caller,
    State(app): State<App>,
    Segment(ident): Segment<String>,
) -> Result<Response, Error> {
    let cluster = app.cluster(&caller, &ident).await?;
    let groups = app.store.groups_of(cluster.id).await?;
    Ok(answer(app.conductor.preview(&cluster, &groups)))
}
