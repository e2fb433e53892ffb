//! The routes of resources that the store keeps as one document. A resource declares its fields, its rules and its checks; list, creation,
//! view, change and deletion are the same for all of them.

use std::future::{Future, ready};
use std::sync::Arc;

use axum::response::Response;
use baremetal_core::{Content, Stored, StoredFilter, StoredSort};
use http::StatusCode;
use openstack_api::{
    ApiError, JsonShape, ListPart, ListRequest, Microversion, Operation, Origin, PathParam, Query,
    Route, Routes, Rule, StrictJson, json, with_location,
};
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::app::App;
use crate::error::Error;
use crate::field::{DetailLevel, Field, FieldSet, Kind, Resource};
use crate::filter::Filter;
use crate::listing::list_of;
use crate::request::{Request, retry_if_stale};
use crate::value::uuid;
use crate::view::View;
use crate::write::{create as set_fields, patched};
use crate::{list_query, openapi};

/// A resource that is stored as one document, as the API serves it.
pub(crate) trait Served: Content + Default {
    /// The name of the resource with its article: `a chassis`.
    const NAME: &'static str;
    /// The name of the collection, as in `/v1/chassis`.
    const COLLECTION: &'static str;
    const FIELDS: &'static [Field<Stored<Self>>];
    const FILTERS: &'static [Filter<StoredFilter>];
    /// The paths of the collection and of one resource.
    const PATHS: [&'static str; 2];
    /// The microversion that introduced the resource.
    const SINCE: Microversion;
    /// Who may read, create, change and delete the resources.
    const RULES: [Rule; 4];
    /// What the routes do: list, create, show, change, delete.
    const SUMMARIES: [&'static str; 5];

    /// Deletes the resource, or refuses to.
    fn delete(app: &App, it: &Stored<Self>) -> impl Future<Output = Result<(), Error>> + Send {
        async { Ok(app.store.delete_resource(it).await?) }
    }

    /// Checks a new or changed resource.
    fn check(_app: &App, _it: &Stored<Self>) -> impl Future<Output = Result<(), Error>> + Send {
        ready(Ok(()))
    }
}

impl<C: Served> Resource for Stored<C> {
    const NAME: &'static str = C::NAME;
    const COLLECTION: &'static str = C::COLLECTION;
    const FIELDS: &'static [Field<Stored<C>>] = C::FIELDS;
    const FILTERS: &'static [Filter<StoredFilter>] = C::FILTERS;
    type List = StoredFilter;
    type Sort = StoredSort;
}

/// The field `uuid`.
pub(crate) const fn uuid_field<C: Served>(minor: u16) -> Field<Stored<C>> {
    Field::<Stored<C>>::new("uuid", minor, Kind::Text, |it, _| it.id.into())
        .create(|it, name, new| {
            it.id = uuid(name, new)?.unwrap_or(it.id);
            Ok(())
        })
        .brief()
        .sort(StoredSort::Id)
}

/// The field `created_at`.
pub(crate) const fn created_field<C: Served>(minor: u16) -> Field<Stored<C>> {
    Field::<Stored<C>>::new("created_at", minor, Kind::Text, |it, _| it.created_at.into())
        .sort(StoredSort::CreatedAt)
}

/// The field `updated_at`.
pub(crate) const fn updated_field<C: Served>(minor: u16) -> Field<Stored<C>> {
    Field::<Stored<C>>::new("updated_at", minor, Kind::Text, |it, _| it.updated_at.into())
        .sort(StoredSort::UpdatedAt)
}

/// The field `links`.
pub(crate) const fn links_field<C: Served>(minor: u16) -> Field<Stored<C>> {
    Field::<Stored<C>>::new("links", minor, Kind::Links, |it, look| {
        look.links(C::COLLECTION, it.id, "")
    })
    .brief()
}

/// The routes of the collection and of one resource.
pub(crate) fn routes<C: Served>() -> Routes<App> {
    let shape = openapi::shape::<Stored<C>>;
    let [may_read, may_create, may_change, may_delete] = C::RULES;
    let [to_list, to_create, to_show, to_change, to_delete] = C::SUMMARIES;
    let all = [
        Route::get(to_list, list::<C>)
            .with_rule(may_read)
            .query_parameters(list_query::PAGING)
            .query_parameters(["detail"])
            .query_parameters(list_query::names::<Stored<C>>())
            .refuses([StatusCode::NOT_FOUND])
            .returns(JsonShape::page(C::COLLECTION, shape())),
        Route::post(to_create, create::<C>)
            .with_rule(may_create)
            .reads(openapi::body::<Stored<C>>([]))
            .answers(StatusCode::CREATED)
            .returns(shape()),
    ];
    let one = [
        Route::get(to_show, show::<C>)
            .with_rule(may_read)
            .query_parameters(["fields"])
            .returns(shape()),
        Route::patch(to_change, patch::<C>)
            .with_rule(may_change)
            .reads(openapi::patch_body())
            .returns(shape()),
        Route::delete(to_delete, delete::<C>).with_rule(may_delete).answers(StatusCode::NO_CONTENT),
    ];
    let [collection, resource] = C::PATHS;
    Routes::new(C::COLLECTION)
        .at(collection, all.map(|route| route.since(C::SINCE)))
        .at(resource, one.map(|route| route.since(C::SINCE)))
}

/// Finds a resource by its id.
pub(crate) async fn find<C: Served>(request: &Request, ident: &str) -> Result<Stored<C>, Error> {
    let shown: String = ident.chars().take(64).collect();
    let id = Uuid::parse_str(ident)
        .map_err(|_| ApiError::bad_request(format!("expected a UUID, and received {shown:?}")))?;
    let found = request.app.store.find_resource(id).await?;
    Ok(found
        .ok_or_else(|| ApiError::not_found(format!("{} {shown} could not be found.", C::NAME)))?)
}

async fn list<C: Served>(request: Request, paging: ListRequest) -> Result<Response, Error> {
    page::<C>(request, paging, DetailLevel::Brief).await
}

/// Answers with one page of a list of resources.
pub(crate) async fn page<C: Served>(
    request: Request,
    paging: ListRequest,
    level: DetailLevel,
) -> Result<Response, Error> {
    let mut rest = paging.query.clone();
    let shown = FieldSet::listed(&mut rest, level, request.asked)?;
    let (filter, page) = list_query::parse::<Stored<C>>(rest, request.asked)?;
    let reader = Arc::new((request, paging, filter));
    let (request, paging, _) = &*reader.clone();
    list_of(C::COLLECTION, &page, paging.of(&request.app), move |part, page| {
        let reader = reader.clone();
        Box::pin(async move {
            let (request, paging, filter) = &*reader;
            let listed = request.app.store.list_resources_part::<C>(filter, &page, part).await?;
            let view = |it| view_of(request, it, shown, &paging.origin);
            Ok(ListPart::of(&listed.found, |it: &Stored<C>| it.id, view, listed.more)?)
        })
    })
    .await
}

async fn create<C: Served>(
    request: Request,
    origin: Origin,
    StrictJson(body): StrictJson<Map<String, Value>>,
) -> Result<Response, Error> {
    let mut it = Stored::new(Uuid::new_v4(), C::default(), (request.app.clock)());
    set_fields(&mut it, body, request.asked)?;
    C::check(&request.app, &it).await?;
    request.app.store.insert_resource(&it).await?;
    let view = view_of(&request, &it, FieldSet::all(request.asked), &origin);
    let url = format!("{origin}{}/{}", C::PATHS[0], it.id);
    Ok(with_location(json(StatusCode::CREATED, &view), &url))
}

async fn show<C: Served>(
    request: Request,
    origin: Origin,
    PathParam(ident): PathParam<String>,
    mut query: Query,
) -> Result<Response, Error> {
    let shown = FieldSet::requested(&mut query, request.asked)?;
    query.finish()?;
    let it = find::<C>(&request, &ident).await?;
    Ok(json(StatusCode::OK, &view_of(&request, &it, shown, &origin)))
}

async fn patch<C: Served>(
    request: Request,
    origin: Origin,
    PathParam(ident): PathParam<String>,
    StrictJson(patch): StrictJson<Vec<Operation>>,
) -> Result<Response, Error> {
    let app = &request.app;
    let written = retry_if_stale(|| async {
        let before = find::<C>(&request, &ident).await?;
        let mut after = patched(&before, patch.clone(), request.asked)?;
        after.updated_at = Some((app.clock)());
        C::check(app, &after).await?;
        Ok(app.store.update_resource(&after).await?)
    });
    let it = written.await?;
    let view = view_of(&request, &it, FieldSet::all(request.asked), &origin);
    Ok(json(StatusCode::OK, &view))
}

async fn delete<C: Served>(
    request: Request,
    PathParam(ident): PathParam<String>,
) -> Result<StatusCode, Error> {
    retry_if_stale(|| async {
        let it = find::<C>(&request, &ident).await?;
        C::delete(&request.app, &it).await
    })
    .await?;
    Ok(StatusCode::NO_CONTENT)
}

/// A resource in the form that clients see.
fn view_of<'a, C: Served>(
    request: &'a Request,
    it: &'a Stored<C>,
    shown: FieldSet<Stored<C>>,
    origin: &'a Origin,
) -> View<'a, Stored<C>> {
    View { it, shown, context: request.context(origin) }
}
