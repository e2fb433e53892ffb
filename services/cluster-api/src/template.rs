//! `/v1/clustertemplates`: creates, lists, shows, changes and deletes cluster templates.

mod field;

use std::sync::Arc;

use axum::response::Response;
use cluster_core::{
    ClusterParameters, Owner, Template, TemplateUuid, check_template, default_name,
};
use cluster_store::StoreError;
use http::StatusCode;
use newtype_uuid::GenericUuid;
use openstack_api::{
    ApiError, Caller, JsonPatch, JsonShape, ListPart, ListRequest, PathParam, Route, Routes,
    StrictJson,
};

use crate::app::App;
use crate::body::{self, Body, write_patch};
use crate::change::retry_stale;
use crate::error::Result;
use crate::field::DetailLevel;
use crate::listing::{SORTED, list_of, page_of};
use crate::openapi;
use crate::request::Request;
use crate::shown::Context;
use crate::view::{View, answer};

/// Returns the routes of cluster templates.
pub(crate) fn routes() -> Routes<App> {
    let shape = || body::shape::<Template>(DetailLevel::Detail);
    let list_route = |summary| {
        Route::get(summary, list)
            .query_parameters(SORTED)
            .returns(JsonShape::page("clustertemplates", shape()))
    };
    let all = [
        list_route("List cluster templates"),
        Route::post("Create a cluster template", create)
            .reads(body::schema::<Template>())
            .answers(StatusCode::CREATED)
            .returns(shape())
            .refuses([StatusCode::NOT_FOUND]),
    ];
    let one = [
        Route::get("Show a cluster template", show).returns(shape()),
        Route::patch("Change a cluster template", patch)
            .reads(openapi::patch_body())
            .returns(shape()),
        Route::delete("Delete a cluster template", delete).answers(StatusCode::NO_CONTENT),
    ];
    Routes::new("clustertemplates")
        .at("/v1/clustertemplates", all)
        .at("/v1/clustertemplates/detail", [list_route("List cluster templates")])
        .at("/v1/clustertemplates/{template}", one)
}

/// `POST /v1/clustertemplates`: creates a template.
async fn create(
    request: Request,
    look: Context,
    StrictJson(body): StrictJson<Body<Template>>,
) -> Result<Response> {
    let mut template = blank(&request, &look)?;
    body.write(&mut template)?;
    check_template(&template.blueprint)?;
    check_publish(&request.caller, template.public || template.hidden)?;
    template.blueprint = request.borrowed(None, template.blueprint).await?;
    request.app.store.insert_template(&template).await?;
    Ok(answer::<Template>(StatusCode::CREATED, &template, &look))
}

/// A template without an image, with Magnum's defaults.
fn blank(request: &Request, look: &Context) -> Result<Template> {
    let id = TemplateUuid::from_untyped_uuid((request.app.ids)());
    let owner = Owner::new(request.project()?, request.user());
    let name = default_name("template", &id.to_string());
    Ok(Template::new(id, owner, name, ClusterParameters::new(String::new()), look.now))
}

/// `GET /v1/clustertemplates` and `/detail`: a page of templates. Both answer the same.
async fn list(request: Request, look: Context, paging: ListRequest) -> Result<Response> {
    let page = page_of::<Template>(&paging.query, "created_at")?;
    let reader = Arc::new((request.app.store.clone(), request.scope(), look));
    list_of("clustertemplates", &page, paging.of(&request.app), move |part, page| {
        let reader = reader.clone();
        Box::pin(async move {
            let (store, scope, context) = &*reader;
            let listed = store.list_templates_part(scope, &page, part).await?;
            let view = |it| View::<Template> { it, level: DetailLevel::Detail, context };
            let id = |template: &Template| template.id.into_untyped_uuid();
            Ok(ListPart::of(&listed.found, id, view, listed.more)?)
        })
    })
    .await
}

/// `GET /v1/clustertemplates/{template}`: one template.
async fn show(
    request: Request,
    look: Context,
    PathParam(ident): PathParam<String>,
) -> Result<Response> {
    let template = request.template(&ident).await?;
    Ok(answer::<Template>(StatusCode::OK, &template, &look))
}

/// `PATCH /v1/clustertemplates/{template}`: changes a template. Existing clusters of the template stay as they are.
async fn patch(
    request: Request,
    look: Context,
    PathParam(ident): PathParam<String>,
    JsonPatch(patch): JsonPatch,
) -> Result<Response> {
    let template = retry_stale(|| async {
        let before = own(&request, &ident).await?;
        let mut after = before.clone();
        write_patch::<Template>(patch.clone(), &before, &look, &mut after)?;
        check_template(&after.blueprint)?;
        check_publish(&request.caller, publishes(&before, &after))?;
        let known = Some(&before.blueprint);
        after.blueprint = request.borrowed(known, after.blueprint).await?;
        after.updated_at = Some((request.app.clock)());
        Ok(request.app.store.update_template(&after).await?)
    });
    Ok(answer::<Template>(StatusCode::OK, &template.await?, &look))
}

/// `DELETE /v1/clustertemplates/{template}`: deletes a template without clusters.
async fn delete(request: Request, PathParam(ident): PathParam<String>) -> Result<StatusCode> {
    retry_stale(|| async {
        let template = own(&request, &ident).await?;
        match request.app.store.delete_template(&template).await {
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

/// Whether a change is one for everybody: of the template's visibility, or of what other projects use.
fn publishes(before: &Template, after: &Template) -> bool {
    let is_seen_otherwise = (before.public, before.hidden) != (after.public, after.hidden);
    is_seen_otherwise || (after.public && after.blueprint != before.blueprint)
}

/// As in Magnum, only administrators may make a template public or hidden, or undo it.
fn check_publish(caller: &Caller, publishes: bool) -> Result<(), ApiError> {
    if publishes && !caller.is_admin() {
        let why = "public, hidden: only administrators may make a template public or hidden";
        return Err(ApiError::new(StatusCode::FORBIDDEN, why));
    }
    Ok(())
}

/// Finds a template that the caller may change: a template of the caller's project, or any template for an administrator with Keystone.
async fn own(request: &Request, ident: &str) -> Result<Template> {
    let template = request.template(ident).await?;
    let of_keystones = request.caller.identity().is_some();
    if !(of_keystones && request.caller.is_admin()) && template.project != request.project()? {
        let message =
            "the template belongs to another project, and only that project may change it";
        return Err(ApiError::new(StatusCode::FORBIDDEN, message).into());
    }
    Ok(template)
}
