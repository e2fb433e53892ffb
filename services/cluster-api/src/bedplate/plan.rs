//! `/bedplate/v1/plan`: the cloud objects that a cluster would need, before any is created.

use axum::response::Response;
use cluster_conductor::Preview;
use cluster_core::{Cluster, QuotaNeed, QuotaShortage};
use http::StatusCode;
use openstack_api::{
    ApiError, JsonShape, PathParam, Route, Routes, Shaped, StrictJson, json, shaped,
};
use serde::Serialize;

use crate::app::App;
use crate::body::{self, Body};
use crate::cluster::requested;
use crate::error::{Error, Result};
use crate::microversion as since;
use crate::request::Request;

pub(crate) fn routes() -> Routes<App> {
    Routes::new("bedplate")
        .at(
            "/bedplate/v1/plan",
            [Route::post("Plan a cluster without creating it", dry_run)
                .needs(openstack_api::RequiredAccess::Read)
                .reads(body::schema::<Cluster>())
                .returns(ShownPlan::shape())
                .refuses([StatusCode::NOT_FOUND])],
        )
        .at(
            "/bedplate/v1/clusters/{cluster}/plan",
            [Route::get("Show the plan of a cluster", plan).returns(ShownPlan::shape())],
        )
}

/// The response schema of a shortage.
fn shortage() -> JsonShape {
    JsonShape::object([
        ("resource", JsonShape::text()),
        ("needed", JsonShape::integer()),
        ("free", JsonShape::integer()),
    ])
}

shaped! {
    #[derive(Serialize)]
    struct Object {
        object: String,
        name: String,
    }
}

shaped! {
    #[derive(Serialize)]
    struct ShownPlan {
        /// The objects that are created first, all at the same time.
        first: Vec<String>,
        objects: Vec<Object>,
        need: QuotaNeed = JsonShape::map(JsonShape::integer()),
        /// The resources that the project's quota in the cloud lacks for the missing objects; null if the quota is unknown.
        shortages: Option<Vec<QuotaShortage>> = JsonShape::list(shortage()).or_null(),
        /// Whether the cluster fits into Bedplate's limits and the project's quota in the cloud; null if the quota is unknown.
        fits: Option<bool>,
        /// Why the cluster does not fit, or why `fits` is unknown.
        fits_reason: Option<String>,
        /// Problems that do not prevent the creation.
        warnings: Vec<String>,
    }
}

/// Makes the response. A refusal by Bedplate's own limits takes precedence over shortages in the cloud.
fn answer(preview: Preview, denial: Option<ApiError>) -> Response {
    let objects = preview.objects.into_iter().map(|(object, name)| Object { object, name });
    let (shortages, fits_reason) = match preview.shortages {
        Ok(short) if short.is_empty() => (Some(short), None),
        Ok(short) => {
            let all: Vec<String> = short.iter().map(QuotaShortage::to_string).collect();
            let why = format!(
                "the project's quota in the cloud is too small; needed: {}",
                all.join(", ")
            );
            (Some(short), Some(why))
        }
        Err(why) => (None, Some(why)),
    };
    let fits = shortages.as_ref().map(Vec::is_empty);
    let (fits, fits_reason) = match denial {
        Some(denial) => (Some(false), Some(denial.message)),
        None => (fits, fits_reason),
    };
    let body = ShownPlan {
        first: preview.first.iter().map(ToString::to_string).collect(),
        objects: objects.collect(),
        need: preview.need,
        fits,
        shortages,
        fits_reason,
        warnings: preview.warnings,
    };
    json(StatusCode::OK, &body)
}

/// `POST /bedplate/v1/plan`: reads the body of `POST /v1/clusters` and creates nothing.
async fn dry_run(
    request: Request,
    StrictJson(body): StrictJson<Body<Cluster>>,
) -> Result<Response> {
    let app = &request.app;
    let newest = Request { asked: since::MAXIMUM, ..request.clone() };
    let (cluster, mut groups) = requested(&newest, body).await?;
    let unmeasured = app.measure(&cluster, &mut groups).await;
    let denial = app.store.quota_refusal(&cluster, &groups, &app.settings.quotas).await?;
    let denial = denial.map(|denial| ApiError::from(Error::Denied(denial, unmeasured)));
    Ok(answer(app.conductor.preview(&cluster, &groups).await?, denial))
}

/// `GET /bedplate/v1/clusters/{cluster}/plan`: the plan of an existing cluster.
async fn plan(request: Request, PathParam(ident): PathParam<String>) -> Result<Response> {
    let cluster = request.cluster(&ident).await?;
    let groups = request.app.store.groups_of(cluster.id).await?;
    Ok(answer(request.app.conductor.preview(&cluster, &groups).await?, None))
}
