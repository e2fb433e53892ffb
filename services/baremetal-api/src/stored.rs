//! The routes of resources that the store keeps as one document. A resource declares its fields, its rules and its checks; list, creation,
//! view, change and deletion are the same for all of them.

use std::future::Future;
use std::sync::Arc;

use axum::response::Response;
use baremetal_core::{
    Node, NodeIdent, NodeUuid, Notified, Stored, StoredFilter, StoredSort, check_idle,
};
use http::StatusCode;
use newtype_uuid::GenericUuid;
use openstack_api::{
    ApiError, Caller, Hidden, JsonPatch, JsonShape, ListPart, ListRequest, Microversion, Operation,
    Origin, PathParam, Query, Route, Routes, Rule, StrictJson, json, with_location,
};
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::app::App;
use crate::error::Result;
use crate::field::{Access, DetailLevel, Field, FieldSet, Kind, Resource, in_body};
use crate::filter::Filter;
use crate::listing::list_of;
use crate::request::{Request, retry_if_stale, visible_project};
use crate::value::{malformed, time, uuid};
use crate::view::View;
use crate::write::{create as set_fields, patched, put};
use crate::{list_query, microversion as since, openapi};

pub(crate) struct Paths {
    /// The collection.
    pub(crate) all: &'static str,
    /// The collection with all fields.
    pub(crate) detail: Option<&'static str>,
    /// One resource.
    pub(crate) one: &'static str,
    /// The resources of one node, and the microversion that introduced this path.
    pub(crate) of_node: Option<(&'static str, Microversion)>,
    /// The same resources with all fields.
    pub(crate) detail_of_node: Option<(&'static str, Microversion)>,
}

/// The summaries of the routes of a resource, given one of them, with its article, and all of them.
macro_rules! summaries {
    ($one:literal, $all:literal) => {
        [
            concat!("List ", $all),
            concat!("Create ", $one),
            concat!("Show ", $one),
            concat!("Change ", $one),
            concat!("Delete ", $one),
        ]
    };
}

pub(crate) use summaries;

/// A resource that is stored as one document, as the API serves it.
pub(crate) trait Served: Notified + Default {
    /// The name of the resource with its article: `a chassis`.
    const NAME: &'static str;
    /// The name of the collection, as in `/v1/chassis`.
    const COLLECTION: &'static str;
    const FIELDS: &'static [Field<Stored<Self>>];
    const FILTERS: &'static [Filter<StoredList>];
    const PATHS: Paths;
    /// The microversion that introduced the resource.
    const SINCE: Microversion;
    /// The answer to clients that request an earlier version.
    const HIDDEN: Hidden = Hidden::Resource;
    /// The rules of reading, creating, changing and deleting resources.
    const RULES: [Rule; 4];
    /// Made by `summaries!`.
    const SUMMARIES: [&'static str; 5];

    /// The answer to such clients that change something.
    const CHANGES_HIDDEN: Hidden = Self::HIDDEN;
    /// As for [`Resource`].
    const HIDES_LATER_FIELDS: bool = false;

    /// As for [`Resource`].
    const DETAIL_SHOWS_LATER_FIELDS: bool = false;

    /// As for [`Resource`].
    const DETAIL_QUERY: Microversion = since::DETAIL_QUERY;

    /// Whether a request can name a resource by its name instead of its UUID.
    const IS_NAMED: bool = false;
    /// Whether Ironic refuses a malformed name when it looks for the handler, in another form than a handler's.
    const IS_NAME_ROUTED: bool = Self::IS_NAMED;
    /// The resources that keep one from being deleted, such as `nodes`.
    const USERS: &'static str = "";

    /// The name of the collection in links, if it differs from the name in lists.
    const LINKS: &'static str = Self::COLLECTION;

    /// Checks a new resource, and completes it.
    fn check_new(
        _request: &Request,
        _new: &mut Stored<Self>,
    ) -> impl Future<Output = Result<()>> + Send {
        async { Ok(()) }
    }

    /// Checks the resource `after` that `patch` makes, besides the checks of its fields.
    fn check_patch(
        _request: &Request,
        _after: &Stored<Self>,
        _patch: &[Operation],
    ) -> impl Future<Output = Result<()>> + Send {
        async { Ok(()) }
    }

    /// Checks whether the resource can be changed or deleted in the present state of its node.
    fn check_change(_node: &Node, _is_deletion: bool) -> Result<()> {
        Ok(())
    }

    /// Checks the changed resource `after`, and writes it.
    fn update(
        app: &App,
        after: &Stored<Self>,
    ) -> impl Future<Output = Result<Stored<Self>>> + Send {
        async { Ok(app.store.update_resource(after).await?) }
    }
}

impl<C: Served> Resource for Stored<C> {
    const NAME: &'static str = C::NAME;
    const COLLECTION: &'static str = C::COLLECTION;
    const FIELDS: &'static [Field<Stored<C>>] = C::FIELDS;
    const FILTERS: &'static [Filter<StoredList>] = C::FILTERS;
    const HIDES_LATER_FIELDS: bool = C::HIDES_LATER_FIELDS;
    const DETAIL_SHOWS_LATER_FIELDS: bool = C::DETAIL_SHOWS_LATER_FIELDS;
    const DETAIL_QUERY: Microversion = C::DETAIL_QUERY;
    type List = StoredList;
    type Sort = StoredSort;
}

/// A requested list of resources.
#[derive(Default)]
pub(crate) struct StoredList {
    pub(crate) filter: StoredFilter,
    /// Only resources of the node with this UUID or name.
    pub(crate) node: Option<String>,
    /// Whether the list shows only what the caller's project sees, although the caller may see more.
    pub(crate) is_of_project: bool,
}

/// The purpose for which a request finds a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// To show the resource. Every caller sees a public one.
    See,
    /// To change, delete or use the resource.
    Change,
}

impl StoredList {
    /// The filter of the list, without the resources that the caller does not see.
    async fn filter(self, request: &Request, of: Option<NodeUuid>) -> Result<StoredFilter> {
        let StoredList { mut filter, node, is_of_project } = self;
        if let Some(ident) = node {
            filter.node = Some(request.node_of_query("node", &ident).await?.id);
        }
        filter.node = of.or(filter.node);
        let StoredFilter { node, key, shards, conductor_groups, .. } = &filter;
        let set = [node.is_some(), key.is_some(), !shards.is_empty(), !conductor_groups.is_empty()];
        if set.into_iter().filter(|is_set| *is_set).count() > 1 {
            let why = "only one of node, address, shard and conductor_groups can filter the list";
            return Err(ApiError::bad_request(why).into());
        }
        filter.seen_by = visible_project(&request.caller);
        if is_of_project && filter.seen_by.is_none() {
            filter.seen_by = Some(request.caller.project().unwrap_or_default().to_owned());
        }
        Ok(filter)
    }
}

pub(crate) const fn uuid_field<C: Served>(minor: u16) -> Field<Stored<C>> {
    Field::<Stored<C>>::new("uuid", minor, Kind::Text, |it, _| it.id.into())
        .create(|it, name, new| {
            it.id = uuid(name, new)?.unwrap_or(it.id);
            Ok(())
        })
        .brief()
        .sort(StoredSort::Id)
}

pub(crate) const fn created_field<C: Served>(minor: u16) -> Field<Stored<C>> {
    Field::<Stored<C>>::new("created_at", minor, Kind::Text, |it, _| it.created_at.into())
        .imported(|it, name, new| {
            it.created_at = time(name, new)?.unwrap_or(it.created_at);
            Ok(())
        })
        .sort(StoredSort::CreatedAt)
}

pub(crate) const fn updated_field<C: Served>(minor: u16) -> Field<Stored<C>> {
    Field::<Stored<C>>::new("updated_at", minor, Kind::Text, |it, _| it.updated_at.into())
        .imported(|it, name, new| put(&mut it.updated_at, time(name, new)))
        .sort(StoredSort::UpdatedAt)
}

pub(crate) const fn links_field<C: Served>(minor: u16) -> Field<Stored<C>> {
    Field::<Stored<C>>::new("links", minor, Kind::Links, |it, look| look.links(C::LINKS, it.id, ""))
        .brief()
}

/// The routes of the collection and of one resource.
pub(crate) fn routes<C: Served>() -> Routes<App> {
    let shape = openapi::shape::<Stored<C>>;
    let [may_read, may_create, may_change, may_delete] = C::RULES;
    let [to_list, to_create, to_show, to_change, to_delete] = C::SUMMARIES;
    let detailed = |route: Route<App>| {
        route
            .with_rule(may_read)
            .query_parameters(list_query::PAGING)
            .query_parameters(list_query::names::<Stored<C>>())
            .refuses([StatusCode::NOT_FOUND])
            .returns(JsonShape::page(C::COLLECTION, shape()))
    };
    let a_list = |route: Route<App>| detailed(route).query_parameters(["detail"]);
    let all = [
        a_list(Route::get(to_list, list::<C>)),
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
    let (seen, changed) = (C::HIDDEN, C::CHANGES_HIDDEN);
    let later = |(route, answer): (Route<App>, Hidden)| route.hidden_before(C::SINCE, answer);
    let [list, create] = all;
    let [show, patch, delete] = one;
    let mut routes = Routes::new(C::COLLECTION)
        .at(C::PATHS.all, [(list, seen), (create, changed)].map(later))
        .at(C::PATHS.one, [(show, seen), (patch, changed), (delete, changed)].map(later));
    if let Some(path) = C::PATHS.detail {
        routes = routes.at(
            path,
            [detailed(Route::get(to_list, list_detail::<C>)).hidden_before(C::SINCE, C::HIDDEN)],
        );
    }
    if let Some((path, came)) = C::PATHS.of_node {
        let list = a_list(Route::get(to_list, list_of_node::<C>));
        routes = routes.at(path, [list.hidden_before(came, Hidden::Path)]);
    }
    if let Some((path, came)) = C::PATHS.detail_of_node {
        let list = detailed(Route::get(to_list, list_detail_of_node::<C>));
        routes = routes.at(path, [list.hidden_before(came, Hidden::Path)]);
    }
    routes
}

/// The name of the resource without its article, at the beginning of a sentence.
fn noun<C: Served>() -> String {
    let (_, name) = C::NAME.split_once(' ').unwrap_or_default();
    let mut letters = name.chars();
    letters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(letters).collect()
}

/// Finds a resource by its id or name, if the caller may access it or its node under the rule of the route.
pub(crate) async fn find<C: Served>(
    request: &Request,
    ident: &str,
    purpose: Purpose,
) -> Result<Stored<C>> {
    let found = lookup::<C>(request, ident).await?;
    let missing = || missing::<C>(ident);
    if let Some(node) = found.content.node() {
        request.check_access_to_part(node, missing).await?;
    }
    check_owner(&request.caller, request.caller.rule(), ident, &found, purpose)?;
    Ok(found)
}

fn missing<C: Served>(ident: &str) -> ApiError {
    let shown: String = ident.chars().take(64).collect();
    ApiError::not_found(format!("{} {shown} could not be found.", noun::<C>()))
}

/// Checks the caller's access to a resource that may belong to a project.
pub(crate) fn check_owner<C: Served>(
    caller: &Caller,
    rule: Rule,
    ident: &str,
    it: &Stored<C>,
    purpose: Purpose,
) -> Result<(), ApiError> {
    if !C::HAS_OWNER {
        return Ok(());
    }
    match caller.relation_to(it.content.owner(), None) {
        Some(relation) => rule.check(caller, relation),
        None if it.content.is_public() => match purpose {
            Purpose::See => Ok(()),
            Purpose::Change => {
                let why = format!("{} is public: only operators change or use it", C::NAME);
                Err(ApiError::new(StatusCode::FORBIDDEN, why))
            }
        },
        None => Err(missing::<C>(ident)),
    }
}

/// Finds a resource by its id or name, without a check of access.
pub(crate) async fn lookup<C: Served>(request: &Request, ident: &str) -> Result<Stored<C>> {
    let store = &request.app.store;
    let found = match ident.parse::<NodeIdent>() {
        Ok(NodeIdent::Id(id)) => store.find_resource::<C>(id.into_untyped_uuid()).await?,
        Ok(NodeIdent::Name(name)) if C::IS_NAMED => {
            store.find_resource_by_name(name.as_str()).await?
        }
        Ok(NodeIdent::Name(_)) | Err(_) => {
            let expected = if C::IS_NAMED { "a UUID or a name" } else { "a UUID" };
            let why = malformed(ident, expected);
            let refused = match C::IS_NAME_ROUTED {
                true => ApiError::protocol(StatusCode::BAD_REQUEST, why),
                false => ApiError::bad_request(why),
            };
            return Err(refused.into());
        }
    };
    Ok(found.ok_or_else(|| missing::<C>(ident))?)
}

/// Refuses a patch of fields that the caller may not write.
fn check_fields<C: Served>(
    caller: &Caller,
    it: &Stored<C>,
    patch: &[Operation],
) -> Result<(), ApiError> {
    let Some(relation) = caller.relation_to(it.content.owner(), None).filter(|_| C::HAS_OWNER)
    else {
        return Ok(());
    };
    for operation in patch {
        let field = Field::<Stored<C>>::known(operation.field()?)?;
        if let Access::Change(rule, _) = &field.access {
            rule.check(caller, relation).map_err(|why| {
                ApiError::new(why.status, format!("{}: {}", field.name, why.message))
            })?;
        }
    }
    Ok(())
}

/// The node of a resource. Refuses the request while work on the node is in progress, or if the node does not exist.
async fn idle_node<C: Served>(request: &Request, it: &Stored<C>) -> Result<Option<Node>> {
    let Some(node) = it.content.node() else { return Ok(None) };
    let node = request.node(&node.to_string()).await.map_err(in_body("node_uuid"))?;
    check_idle(&node)?;
    Ok(Some(node))
}

/// Refuses a change or a deletion that the state of the resource's node does not allow.
async fn check_node<C: Served>(request: &Request, it: &Stored<C>, is_deletion: bool) -> Result<()> {
    match idle_node(request, it).await? {
        Some(node) => C::check_change(&node, is_deletion),
        None => Ok(()),
    }
}

/// `GET` of the collection: lists resources with a few fields each.
async fn list<C: Served>(request: Request, paging: ListRequest) -> Result<Response> {
    page::<C>(request, paging, DetailLevel::Brief, None).await
}

/// `GET` of the path `detail` of the collection: lists resources with all fields.
async fn list_detail<C: Served>(request: Request, paging: ListRequest) -> Result<Response> {
    page::<C>(request, paging, DetailLevel::Detail, None).await
}

/// `GET` of the collection of one node: lists the resources that belong to the node.
async fn list_of_node<C: Served>(
    request: Request,
    PathParam(ident): PathParam<String>,
    paging: ListRequest,
) -> Result<Response> {
    let node = request.node(&ident).await?.id;
    page::<C>(request, paging, DetailLevel::Brief, Some(node)).await
}

/// `GET` of the path `detail` of the collection of one node: lists the resources that belong to the node, with all fields.
async fn list_detail_of_node<C: Served>(
    request: Request,
    PathParam(ident): PathParam<String>,
    paging: ListRequest,
) -> Result<Response> {
    let node = request.node(&ident).await?.id;
    page::<C>(request, paging, DetailLevel::Detail, Some(node)).await
}

/// Answers with one page of a list of resources; of one node's resources, if it is given.
pub(crate) async fn page<C: Served>(
    request: Request,
    paging: ListRequest,
    level: DetailLevel,
    of: Option<NodeUuid>,
) -> Result<Response> {
    let mut rest = paging.query.clone();
    let shown = FieldSet::listed(&mut rest, level, request.asked)?;
    let (list, page) = list_query::parse::<Stored<C>>(rest, request.asked)?;
    let filter = list.filter(&request, of).await?;
    let paging = list_query::linked::<Stored<C>>(paging, level);
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

pub(crate) async fn create<C: Served>(
    request: Request,
    origin: Origin,
    body: Option<StrictJson<Map<String, Value>>>,
) -> Result<Response> {
    // As in Ironic, a chassis needs no body, because all its fields are optional.
    let body = body.map(|StrictJson(body)| body).unwrap_or_default();
    let mut it = Stored::new(Uuid::new_v4(), C::default(), (request.app.clock)());
    set_fields(&mut it, body, request.asked)?;
    idle_node(&request, &it).await?;
    C::check_new(&request, &mut it).await?;
    request.app.store.insert_resource(&it).await?;
    let view = view_of(&request, &it, FieldSet::all(request.asked), &origin);
    let url = format!("{origin}{}/{}", C::PATHS.all, it.id);
    Ok(with_location(json(StatusCode::CREATED, &view), &url))
}

pub(crate) async fn show<C: Served>(
    request: Request,
    origin: Origin,
    PathParam(ident): PathParam<String>,
    mut query: Query,
) -> Result<Response> {
    let shown = FieldSet::requested(&mut query, request.asked)?;
    query.finish()?;
    let it = find::<C>(&request, &ident, Purpose::See).await?;
    Ok(json(StatusCode::OK, &view_of(&request, &it, shown, &origin)))
}

async fn patch<C: Served>(
    request: Request,
    origin: Origin,
    PathParam(ident): PathParam<String>,
    JsonPatch(patch): JsonPatch,
) -> Result<Response> {
    let app = &request.app;
    let written = retry_if_stale(|| async {
        let before = find::<C>(&request, &ident, Purpose::Change).await?;
        check_fields(&request.caller, &before, &patch)?;
        let mut after = patched(&before, patch.clone(), request.asked)?;
        C::check_patch(&request, &after, &patch).await?;
        after.updated_at = Some((app.clock)());
        check_node(&request, &before, false).await?;
        C::update(app, &after).await
    });
    let it = written.await?;
    let view = view_of(&request, &it, FieldSet::all(request.asked), &origin);
    Ok(json(StatusCode::OK, &view))
}

pub(crate) async fn delete<C: Served>(
    request: Request,
    PathParam(ident): PathParam<String>,
) -> Result<StatusCode> {
    retry_if_stale(|| async {
        let it = find::<C>(&request, &ident, Purpose::Change).await?;
        check_node(&request, &it, true).await?;
        if request.app.store.delete_resource(&it).await? {
            return Ok(());
        }
        let (noun, id, users) = (noun::<C>(), it.id, C::USERS);
        let why = format!("{noun} {id} has {users}: move or delete them first");
        Err(ApiError::bad_request(why).into())
    })
    .await?;
    Ok(StatusCode::NO_CONTENT)
}

/// A resource in the form that clients see.
pub(crate) fn view_of<'a, C: Served>(
    request: &'a Request,
    it: &'a Stored<C>,
    shown: FieldSet<Stored<C>>,
    origin: &'a Origin,
) -> View<'a, Stored<C>> {
    View { it, shown, context: request.context(origin) }
}
