//! `/v1/nodes`: creates, lists, shows, changes and deletes nodes.

mod field;
mod list;
mod owner_and_lessee;
mod password;
mod view;
mod write;

use std::sync::Arc;

use axum::extract::{OriginalUri, State};
use axum::response::Response;
use baremetal_core::{
    Driver, Node, NodeFilter, NodeIdent, NodeSort, NodeUuid, Page, State as Stage, check_change,
    check_compute_host, check_delete, ended_allocation,
};
use baremetal_store::{PagePart, PageRows};
use http::header::LOCATION;
use http::{HeaderValue, StatusCode};
use newtype_uuid::GenericUuid;
use openstack_api::{
    ApiError, Caller, JsonShape, ListPart, MAX_LIMIT, Microversion, Operation, Origin, PathParam,
    Query, Relation, Route, Routes, StrictJson, flag, json, json_of,
};
use serde::Serialize;
use serde_json::{Map, Value};
use tracing::info;

use crate::app::{App, forced, relation, retry_if_stale, visible_project};
use crate::error::Error;
use crate::field::{Access, DetailLevel, Field, FieldSet};
use crate::listing::list_of;
use crate::shown::{Context, View};
use crate::write::{create as set_fields, patched};
use crate::{filter, microversion, openapi, rule};
use list::NodeList;

pub(crate) use view::{last_error, state_word};

/// The average size of a field in bytes, measured on nodes whose objects contain little.
const BYTES_A_FIELD: usize = 40;

/// The most children of a node that are read at once, and how many bytes of them.
const CHILDREN_AT_ONCE: u32 = 16;
const CHILDREN_BYTES: usize = 128 << 10;

/// The routes of nodes.
pub(crate) fn routes() -> Routes<App> {
    let nodes = [
        Route::get("List nodes", list)
            .with_rule(rule::READ)
            .query_parameters(filter::PAGING)
            .query_parameters(["detail"])
            .query_parameters(filter::names::<Node>())
            .refuses([StatusCode::NOT_FOUND])
            .returns(JsonShape::page("nodes", openapi::shape::<Node>())),
        Route::post("Enroll a node", create)
            .with_rule(rule::ENROLL)
            .reads(openapi::body::<Node>([]))
            .answers(StatusCode::CREATED)
            .returns(openapi::shape::<Node>()),
    ];
    let node = [
        Route::get("Show a node", show)
            .with_rule(rule::READ)
            .query_parameters(["fields"])
            .returns(openapi::shape::<Node>()),
        // `rule::writing` may require more, depending on the changed field.
        Route::patch("Change a node", patch)
            .with_rule(rule::USE)
            .reads(openapi::patch_body())
            .query_parameters(["reset_interfaces", "force"])
            .refuses([StatusCode::CONFLICT])
            .returns(openapi::shape::<Node>()),
        Route::delete("Delete a node", forget)
            .with_rule(rule::ADMINISTER)
            .query_parameters(["force"])
            .refuses([StatusCode::CONFLICT])
            .answers(StatusCode::NO_CONTENT),
    ];
    let detail = Route::get("List nodes with all their fields", list_detail)
        .with_rule(rule::READ)
        .query_parameters(filter::PAGING)
        .query_parameters(["detail"])
        .query_parameters(filter::names::<Node>())
        .refuses([StatusCode::NOT_FOUND])
        .returns(JsonShape::page("nodes", openapi::shape::<Node>()));
    let link = JsonShape::object([("href", JsonShape::text()), ("rel", JsonShape::text())]);
    let children =
        Route::get("List the child nodes of a node", children).with_rule(rule::READ).returns(
            JsonShape::object([("children", JsonShape::list(JsonShape::text())), ("links", link)]),
        );
    Routes::new("nodes")
        .at("/v1/nodes", nodes)
        .at("/v1/nodes/detail", [detail])
        .at("/v1/nodes/{node}", node)
        .at("/v1/nodes/{node}/children", [children.since(microversion::PARENT_NODE)])
}

/// `POST /v1/nodes`: enrolls a node.
async fn create(
    caller: Caller,
    State(app): State<App>,
    asked: Microversion,
    origin: Origin,
    StrictJson(body): StrictJson<Map<String, Value>>,
) -> Result<Response, Error> {
    let mut node = Node::new(NodeUuid::new_v4(), Driver::FakeHardware, (app.clock)());
    if !asked.has(microversion::ENROLL) {
        // Before the state `enroll` existed, a new node could be deployed at once.
        node.provision_state = Stage::Available;
    }
    set_fields(&mut node, body, asked)?;
    node.interfaces.check(node.driver)?;
    app.conductor.check_hosts(None, &node)?;
    check_compute_host(None, &node.instance_info)?;
    owner_and_lessee::check(&app.auth, &caller, None, &node).await?;
    check_parent(&app, &node).await?;
    app.store.insert_node(&node).await?;
    info!(node.id = %node.id, "node {} was enrolled", node.label());

    let location = HeaderValue::try_from(format!("{origin}/v1/nodes/{}", node.id));
    let look = context(&app, asked, &origin);
    let mut answer = one(StatusCode::CREATED, &caller, &node, FieldSet::all(asked), look);
    if let Ok(location) = location {
        answer.headers_mut().insert(LOCATION, location);
    }
    Ok(answer)
}

/// `GET /v1/nodes`: lists nodes with a few fields each.
async fn list(
    caller: Caller,
    State(app): State<App>,
    asked: Microversion,
    origin: Origin,
    OriginalUri(uri): OriginalUri,
    query: Query,
) -> Result<Response, Error> {
    page(&app, &caller, DetailLevel::Brief, context(&app, asked, &origin), uri.path(), &query).await
}

/// `GET /v1/nodes/detail`: lists nodes with all fields.
async fn list_detail(
    caller: Caller,
    State(app): State<App>,
    asked: Microversion,
    origin: Origin,
    OriginalUri(uri): OriginalUri,
    query: Query,
) -> Result<Response, Error> {
    page(&app, &caller, DetailLevel::Detail, context(&app, asked, &origin), uri.path(), &query)
        .await
}

/// `GET /v1/nodes/{node}`: shows a node.
async fn show(
    caller: Caller,
    State(app): State<App>,
    asked: Microversion,
    origin: Origin,
    PathParam(ident): PathParam<String>,
    mut query: Query,
) -> Result<Response, Error> {
    let shown = FieldSet::requested(&mut query, asked)?;
    query.finish()?;
    let node = app.node(&caller, asked, &ident).await?;
    Ok(one(StatusCode::OK, &caller, &node, shown, context(&app, asked, &origin)))
}

/// `PATCH /v1/nodes/{node}`: changes a node.
async fn patch(
    caller: Caller,
    State(app): State<App>,
    asked: Microversion,
    origin: Origin,
    PathParam(ident): PathParam<String>,
    mut query: Query,
    StrictJson(patch): StrictJson<Vec<Operation>>,
) -> Result<Response, Error> {
    let reset_interfaces = match query.take("reset_interfaces") {
        None => false,
        Some(raw) => {
            asked.need(microversion::RESET_INTERFACES, "reset_interfaces")?;
            flag("reset_interfaces", &raw)?
        }
    };
    let forced = forced(&mut query);
    query.finish()?;
    let patched = retry_if_stale(|| async {
        let before = app.node(&caller, asked, &ident).await?;
        check_writes(&caller, &before, &patch)?;
        let base = match reset_interfaces {
            true => write::without_interfaces(&before, &patch)?,
            false => before.clone(),
        };
        let after = patched(&base, patch.clone(), asked)?;
        after.interfaces.check(after.driver)?;
        if relation(&caller, &before) != Some(Relation::Cloud) {
            password::check(&before.driver_info, &after.driver_info, &patch)?;
        }
        check_change(&before, &after)?;
        app.conductor.check_hosts(Some(&before), &after)?;
        check_compute_host(Some(&before.instance_info), &after.instance_info)?;
        owner_and_lessee::check(&app.auth, &caller, Some(&before), &after).await?;
        if before.parent_node != after.parent_node {
            check_parent(&app, &after).await?;
        }
        if before.maintenance.is_none() && after.maintenance.is_some() {
            app.check_maintenance(&caller, &before, &forced).await?;
        }
        let mut after = app.with_maintenance_effects(&caller, &before, after, &forced);
        after.updated_at = Some((app.clock)());
        match ended_allocation(&before, &after) {
            Some(ended) => Ok(app.store.update_node_and_end(&after, &[], ended).await?),
            None => Ok(app.store.update_node(&after, &[]).await?),
        }
    });
    let node = patched.await?;
    if node.leaving.is_some() {
        app.conductor.wake(node.id);
    }
    let look = context(&app, asked, &origin);
    Ok(one(StatusCode::OK, &caller, &node, FieldSet::all(asked), look))
}

/// `DELETE /v1/nodes/{node}`: deletes a node.
async fn forget(
    caller: Caller,
    State(app): State<App>,
    asked: Microversion,
    PathParam(ident): PathParam<String>,
    mut query: Query,
) -> Result<StatusCode, Error> {
    let forced = forced(&mut query);
    retry_if_stale(|| async {
        let node = app.node(&caller, asked, &ident).await?;
        check_delete(&node)?;
        app.check_drained(&caller, &node, &forced).await?;
        app.store.delete_node(&node).await?;
        app.conductor.forget(node.id);
        info!(node.id = %node.id, "node {} was forgotten", node.label());
        Ok(())
    })
    .await?;
    Ok(StatusCode::NO_CONTENT)
}

/// `GET /v1/nodes/{node}/children`: lists the nodes whose parent is this node.
async fn children(
    caller: Caller,
    State(app): State<App>,
    asked: Microversion,
    origin: Origin,
    PathParam(ident): PathParam<String>,
) -> Result<Response, Error> {
    #[derive(Serialize)]
    struct Link {
        href: String,
        rel: &'static str,
    }
    #[derive(Serialize)]
    struct Body {
        children: Vec<NodeUuid>,
        links: Link,
    }
    let node = app.node(&caller, asked, &ident).await?;
    let filter = NodeFilter {
        parent_node: Some(node.id),
        seen_by: visible_project(&caller),
        ..NodeFilter::default()
    };
    // Only the ids are kept in memory.
    let (mut found, mut more) = (Vec::new(), None);
    loop {
        let limit = MAX_LIMIT.saturating_sub(found.len() as u32).min(CHILDREN_AT_ONCE);
        let page = Page { limit, marker: None, sort: NodeSort::default(), descending: false };
        let part = PagePart { after: more, bytes: CHILDREN_BYTES };
        let listed = app.store.list_nodes_part(&filter, &page, part).await?;
        found.extend(listed.found.iter().map(|child| child.id));
        more = listed.more;
        if more.is_none() || found.len() >= MAX_LIMIT as usize {
            break;
        }
    }
    let href = format!("{origin}/v1/nodes?parent_node={}", node.id);
    let links = Link { href, rel: "children" };
    Ok(json(StatusCode::OK, &Body { children: found, links }))
}

/// Refuses a patch of fields that the caller may not write.
fn check_writes(caller: &Caller, node: &Node, patch: &[Operation]) -> Result<(), Error> {
    let bond = relation(caller, node).unwrap_or(Relation::Lessee);
    for operation in patch {
        let field = Field::<Node>::known(operation.field()?)?;
        let rule = match field.access {
            // An ordinary member may not change the owner of a node that is in use.
            Access::Change(..)
                if field.name == "owner" && node.provision_state == Stage::Active =>
            {
                rule::ADMINISTER
            }
            Access::Change(rule, _) => rule,
            // The service alone writes these fields.
            Access::Read | Access::Create(_) => rule::ADMINISTER,
        };
        rule.check(caller, bond)
            .map_err(|why| ApiError::new(why.status, format!("{}: {}", field.name, why.message)))?;
    }
    Ok(())
}

/// Refuses a parent that does not exist, or that is the node itself.
async fn check_parent(app: &App, node: &Node) -> Result<(), Error> {
    let Some(parent) = node.parent_node else { return Ok(()) };
    let found = app.store.find_node(&NodeIdent::Id(parent)).await?;
    if parent == node.id || found.is_none() {
        return Err(ApiError::bad_field("parent_node", "must be the UUID of another node").into());
    }
    Ok(())
}

/// Answers with one page of a list of nodes.
async fn page(
    app: &App,
    caller: &Caller,
    level: DetailLevel,
    look: Context<'_>,
    path: &str,
    query: &Query,
) -> Result<Response, Error> {
    let mut rest = query.clone();
    let shown = FieldSet::listed(&mut rest, level, look.asked)?;
    let (list, page) = filter::parse::<Node>(rest, look.asked)?;
    let NodeList { mut filter, parent, conductor, is_faulty } = list;
    if let Some(parent) = parent {
        let parent = app.store.find_node(&parent).await?;
        let parent = parent.filter(|parent| relation(caller, parent).is_some());
        let missing = || ApiError::bad_field("parent_node", "node not found");
        filter.parent_node = Some(parent.ok_or_else(missing)?.id);
    }
    filter.seen_by = visible_project(caller);
    let elsewhere = conductor.is_some_and(|name| name != app.conductor.hostname());
    let is_empty = is_faulty || elsewhere;
    let reader = Arc::new((app.clone(), caller.clone(), look.origin.clone()));
    let asked = look.asked;
    list_of("nodes", &page, (app, look.origin, path, query), move |part, page| {
        let (reader, filter) = (reader.clone(), filter.clone());
        Box::pin(async move {
            let (app, caller, origin) = &*reader;
            let listed = match is_empty {
                true => PageRows { found: Vec::new(), more: None },
                false => app.store.list_nodes_part(&filter, &page, part).await?,
            };
            let look = context(app, asked, origin);
            let view = |node| view_of(caller, node, shown, look);
            let id = |node: &Node| node.id.into_untyped_uuid();
            Ok(ListPart::of(&listed.found, id, view, listed.more)?)
        })
    })
    .await
}

/// How nodes are shown.
fn context<'a>(app: &'a App, asked: Microversion, origin: &'a Origin) -> Context<'a> {
    Context { asked, origin, conductor: app.conductor.hostname() }
}

/// A node in the form that this caller sees.
fn view_of<'a>(
    caller: &Caller,
    node: &'a Node,
    shown: FieldSet<Node>,
    context: Context<'a>,
) -> View<'a, Node> {
    let is_lent = relation(caller, node) == Some(Relation::Lessee);
    let shown = if is_lent { shown.for_lessees() } else { shown };
    View { it: node, shown, context }
}

/// Answers with one node.
fn one(
    status: StatusCode,
    caller: &Caller,
    node: &Node,
    shown: FieldSet<Node>,
    context: Context<'_>,
) -> Response {
    json_of(status, &view_of(caller, node, shown, context), shown.len() * BYTES_A_FIELD)
}
