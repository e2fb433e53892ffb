//! `/bedplate/v1/plan`: what would be made, before anything is.

use axum::extract::State;
use axum::response::Response;
use cluster_conductor::Preview;
use cluster_core::{Need, Shortage};
use http::StatusCode;
use openstack_api::{ApiError, Caller, Handle, Microversion, Routes, Segment, Shape, Strict, json};
use serde::Serialize;
use utoipa::PartialSchema;

use crate::app::App;
use crate::cluster::{NewCluster, Order};
use crate::error::Error;
use crate::measure::refusal;
use crate::microversion as since;

/// What is answered here.
pub(crate) fn routes() -> Routes<App> {
    Routes::new("bedplate")
        .at(
            "/bedplate/v1/plan",
            [Handle::post("Say what a cluster would take, and make none", dry_run)
                .needs(openstack_api::Need::Read)
                .reads(NewCluster::schema())
                .tells(shape())
                .refuses([StatusCode::NOT_FOUND])],
        )
        .at(
            "/bedplate/v1/clusters/{cluster}/plan",
            [Handle::get("Say what a cluster consists of and takes", plan).tells(shape())],
        )
}

/// What a plan is like.
fn shape() -> Shape {
    let texts = || Shape::list(Shape::text());
    let object = Shape::object([("object", Shape::text()), ("name", Shape::text())]);
    let shortage = Shape::object([
        ("resource", Shape::text()),
        ("needed", Shape::whole()),
        ("free", Shape::whole()),
    ]);
    Shape::object([
        ("first", texts()),
        ("objects", Shape::list(object)),
        ("need", Shape::map(Shape::whole())),
        ("shortages", Shape::list(shortage).or_null()),
        ("fits", Shape::flag().or_null()),
        ("fits_reason", Shape::text().or_null()),
        ("warnings", texts()),
    ])
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
    need: Need,
    /// Of what there is too little for what is not there yet; null where nobody knows.
    shortages: Option<Vec<Shortage>>,
    /// Whether it fits into what the project and the caller may have here, and into what the project may have in the cloud; null
    /// where nobody knows.
    fits: Option<bool>,
    /// Why it does not fit, or why nobody knows.
    fits_reason: Option<String>,
    /// What is to be said against it, though it may be made.
    warnings: Vec<String>,
}

/// What the cloud says counts where our own limits let the cluster be.
fn answer(preview: Preview, denial: Option<ApiError>) -> Response {
    let objects = preview.objects.into_iter().map(|(object, name)| Object { object, name });
    let (shortages, fits_reason) = match preview.shortages {
        Ok(short) if short.is_empty() => (Some(short), None),
        Ok(short) => {
            let all: Vec<String> = short.iter().map(Shortage::to_string).collect();
            let why = format!("the project may not have that much: needed are {}", all.join(", "));
            (Some(short), Some(why))
        }
        Err(why) => (None, Some(why)),
    };
    let fits = shortages.as_ref().map(Vec::is_empty);
    let (fits, fits_reason) = match denial {
        Some(denial) => (Some(false), Some(denial.message)),
        None => (fits, fits_reason),
    };
    let body = Body {
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

/// `POST /bedplate/v1/plan`: the body is that of `POST /v1/clusters`.
async fn dry_run(
    caller: Caller,
    State(app): State<App>,
    Strict(body): Strict<NewCluster>,
) -> Result<Response, Error> {
    let newest: Microversion = since::MAXIMUM;
    let Order { cluster, mut groups } = body.into_order(&app, &caller, newest).await?;
    let unmeasured = app.measure(&cluster, &mut groups).await;
    let allowed = app.store.may_have(&cluster, &groups, &app.settings.quotas).await?;
    let denial = allowed.err().map(|denial| refusal(&denial, unmeasured.as_ref()));
    Ok(answer(app.conductor.preview(&cluster, &groups).await?, denial))
}

/// `GET /bedplate/v1/clusters/{cluster}/plan`.
async fn plan(
    caller: Caller,
    State(app): State<App>,
    Segment(ident): Segment<String>,
) -> Result<Response, Error> {
    let cluster = app.cluster(&caller, &ident).await?;
    let groups = app.store.groups_of(cluster.id).await?;
    Ok(answer(app.conductor.preview(&cluster, &groups).await?, None))
}
