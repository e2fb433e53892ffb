//! `/v1/clustertemplates`: creates, lists, shows, changes and deletes cluster templates.

mod body;
mod view;

use std::sync::Arc;

use axum::extract::{OriginalUri, State};
use axum::response::Response;
use cluster_core::{Page, Template, TemplateSort};
use cluster_store::StoreError;
use http::StatusCode;
use newtype_uuid::GenericUuid;
use openstack_api::{
    ApiError, Caller, Direction, JsonShape, ListPart, Operation, Origin, Paging, PathParam, Query,
    Route, Routes, StrictJson, json,
};
use utoipa::PartialSchema;

use crate::app::App;
use crate::change::retry_stale;
use crate::error::Error;
use crate::listing::list_of;
use crate::openapi;
pub(crate) use body::{Template as Body, named};
use view::View;

/// The query parameters of a list.
pub(crate) const SORTED: [&str; 4] = ["limit", "marker", "sort_key", "sort_dir"];

/// Returns the routes of cluster templates.
pub(crate) fn routes() -> Routes<App> {
    let all = [
        Route::get("List cluster templates", list).query_parameters(SORTED).returns(page()),
        Route::post("Create a cluster template", create)
            .reads(Body::schema())
            .answers(StatusCode::CREATED)
            .returns(view::shape())
            .refuses([StatusCode::NOT_FOUND]),
    ];
    let one = [
        Route::get("Show a cluster template", show).returns(view::shape()),
        Route::patch("Change a cluster template", patch)
            .reads(openapi::patch_body())
            .returns(view::shape()),
        Route::delete("Delete a cluster template", delete).answers(StatusCode::NO_CONTENT),
    ];
    Routes::new("clustertemplates")
        .at("/v1/clustertemplates", all)
        .at(
            "/v1/clustertemplates/detail",
            [Route::get("List cluster templates", list).query_parameters(SORTED).returns(page())],
        )
        .at("/v1/clustertemplates/{template}", one)
}

fn page() -> JsonShape {
    JsonShape::page("clustertemplates", view::shape())
}

/// `POST /v1/clustertemplates`: creates a template.
async fn create(
    caller: Caller,
    State(app): State<App>,
    origin: Origin,
    StrictJson(body): StrictJson<Body>,
) -> Result<Response, Error> {
    let mut template = body.into_new(&app, &caller)?;
    check_public(&caller, template.public)?;
    template.blueprint = app.borrowed(&caller, None, template.blueprint).await?;
    app.store.insert_template(&template).await?;
    Ok(json(StatusCode::CREATED, &View { template: &template, origin: &origin }))
}

/// `GET /v1/clustertemplates` and `/detail`: a page of templates. Both answer the same.
async fn list(
    caller: Caller,
    State(app): State<App>,
    origin: Origin,
    OriginalUri(uri): OriginalUri,
    query: Query,
) -> Result<Response, Error> {
    let mut rest = query.clone();
    let paging = Paging::take(&mut rest)?;
    rest.finish()?;
    let sort = match paging.sort_key.as_deref() {
        None | Some("created_at") => TemplateSort::CreatedAt,
        Some("id" | "uuid") => TemplateSort::Id,
        Some("name") => TemplateSort::Name,
        Some(_) => return Err(unsorted().into()),
    };
    let descending = paging.direction == Direction::Descending;
    let page = Page { limit: paging.limit, marker: paging.marker, sort, descending };
    let reader = Arc::new((app.store.clone(), app.scope(&caller), origin.clone()));
    list_of("clustertemplates", &page, (&app, &origin, uri.path(), &query), move |part, page| {
        let reader = reader.clone();
        Box::pin(async move {
            let (store, scope, origin) = &*reader;
            let listed = store.list_templates_part(scope, &page, part).await?;
            let view = |template| View { template, origin };
            let id = |template: &Template| template.id.into_untyped_uuid();
            Ok(ListPart::of(&listed.found, id, view, listed.more)?)
        })
    })
    .await
}

/// The refusal of an unknown sort key.
pub(crate) fn unsorted() -> ApiError {
    ApiError::bad_field("sort_key", "must be created_at, uuid or name")
}

/// `GET /v1/clustertemplates/{template}`: one template.
async fn show(
    caller: Caller,
    State(app): State<App>,
    origin: Origin,
    PathParam(ident): PathParam<String>,
) -> Result<Response, Error> {
    let template = app.template(&caller, &ident).await?;
    Ok(json(StatusCode::OK, &View { template: &template, origin: &origin }))
}

/// `PATCH /v1/clustertemplates/{template}`: changes a template. Existing clusters of the template stay as they are.
async fn patch(
    caller: Caller,
    State(app): State<App>,
    origin: Origin,
    PathParam(ident): PathParam<String>,
    StrictJson(patch): StrictJson<Vec<Operation>>,
) -> Result<Response, Error> {
    let template = retry_stale(|| async {
        let before = own(&app, &caller, &ident).await?;
        let mut after = body::patched(&before, patch.clone())?;
        let is_another = !before.public || after.blueprint != before.blueprint;
        check_public(&caller, after.public && is_another)?;
        let said = Some(&before.blueprint);
        after.blueprint = app.borrowed(&caller, said, after.blueprint).await?;
        after.updated_at = Some((app.clock)());
        Ok(app.store.update_template(&after).await?)
    });
    let template = template.await?;
    Ok(json(StatusCode::OK, &View { template: &template, origin: &origin }))
}

/// `DELETE /v1/clustertemplates/{template}`: deletes a template without clusters.
async fn delete(
    caller: Caller,
    State(app): State<App>,
    PathParam(ident): PathParam<String>,
) -> Result<StatusCode, Error> {
    retry_stale(|| async {
        let template = own(&app, &caller, &ident).await?;
        match app.store.delete_template(&template).await {
            Err(StoreError::InUse { .. }) => Err(ApiError::bad_request(format!(
                "ClusterTemplate {} is referenced by one or multiple clusters.",
                template.id
            ))
            .into()),
            done => Ok(done?),
        }
    })
    .await?;
    Ok(StatusCode::NO_CONTENT)
}

/// As in Magnum, only administrators may make a template public.
fn check_public(caller: &Caller, offers: bool) -> Result<(), ApiError> {
    if offers && !caller.is_admin() {
        let why = "public: only administrators may make a template public";
        return Err(ApiError::new(StatusCode::FORBIDDEN, why));
    }
    Ok(())
}

/// Finds a template that the caller may change: a template of the caller's project, or any template for an administrator with Keystone.
async fn own(app: &App, caller: &Caller, ident: &str) -> Result<Template, Error> {
    let template = app.template(caller, ident).await?;
    let of_keystones = caller.identity().is_some();
    if !(of_keystones && caller.is_admin()) && template.project != app.project(caller)? {
        let message =
            "the template belongs to another project, and only that project may change it";
        return Err(ApiError::new(StatusCode::FORBIDDEN, message).into());
    }
    Ok(template)
}
