//! `/v1/nodes`: creates, lists, shows, changes and deletes nodes.

mod field;
mod owner_and_lessee;
mod password;
mod query;
mod view;
mod write;

use std::sync::Arc;

use axum::extract::{OriginalUri, State};
use axum::response::Response;
use baremetal_core::{
    Driver, Node, NodeIdent, NodeUuid, Page, State as Stage, check_change, check_compute_host,
    check_delete, ended_allocation,
};
use baremetal_store::{PagePart, PageRows};
use http::header::LOCATION;
use http::{HeaderValue, StatusCode};
use newtype_uuid::GenericUuid;
use openstack_api::{
    ApiError, Caller, JsonShape, ListPart, Microversion, Operation, Origin, PathParam, Query,
    Relation, Route, Routes, StrictJson, flag, json, json_of,
};
use serde::Serialize;
use serde_json::{Map, Value};
use tracing::info;

use crate::app::{App, forced, relation, retry_if_stale, visible_project};
use crate::error::Error;
use crate::field::{FieldSet, Fields};
use crate::listing::list_of;
use crate::{microversion, openapi, rule};
use query::{DetailLevel, List};
use view::{View, ViewOptions};

pub(crate) use field::Field;
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
            .query_parameters(query::KNOWN)
            .refuses([StatusCode::NOT_FOUND])
            .returns(JsonShape::page("nodes", openapi::node())),
        Route::post("Enroll a node", create)
            .with_rule(rule::ENROLL)
            .reads(openapi::node_body())
            .answers(StatusCode::CREATED)
            .returns(openapi::node()),
    ];
    let node = [
        Route::get("Show a node", show)
            .with_rule(rule::READ)
            .query_parameters(["fields"])
            .returns(openapi::node()),
        // `rule::writing` may require more, depending on the changed field.
        Route::patch("Change a node", patch)
            .with_rule(rule::USE)
            .reads(openapi::patch_body())
            .query_parameters(["reset_interfaces", "force"])
            .refuses([StatusCode::CONFLICT])
            .returns(openapi::node()),
        Route::delete("Delete a node", forget)
            .with_rule(rule::ADMINISTER)
            .query_parameters(["force"])
            .refuses([StatusCode::CONFLICT])
            .answers(StatusCode::NO_CONTENT),
    ];
    let detail = Route::get("List nodes with all their fields", list_detail)
        .with_rule(rule::READ)
        .query_parameters(query::KNOWN)
        .refuses([StatusCode::NOT_FOUND])
        .returns(JsonShape::page("nodes", openapi::node()));
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
    write::create(&mut node, body, asked)?;
    app.conductor.check_hosts(None, &node)?;
    check_compute_host(None, &node.instance_info)?;
    owner_and_lessee::check(&app.auth, &caller, None, &node).await?;
    check_parent(&app, &node).await?;
    app.store.insert_node(&node).await?;
    info!(node.id = %node.id, "node {} was enrolled", node.label());

    let location = HeaderValue::try_from(format!("{origin}/v1/nodes/{}", node.id));
    let look = view_options(&app, &caller, asked, FieldSet::all(asked), &origin);
    let mut answer = one(&node, look, StatusCode::CREATED);
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
    let wanted = query::list(query.clone(), DetailLevel::Brief, asked)?;
    let look = view_options(&app, &caller, asked, wanted.shown, &origin);
    page(&app, wanted, look, uri.path(), &query).await
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
    let wanted = query::list(query.clone(), DetailLevel::Detail, asked)?;
    let look = view_options(&app, &caller, asked, wanted.shown, &origin);
    page(&app, wanted, look, uri.path(), &query).await
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
    let shown = match query.take("fields") {
        None => FieldSet::all(asked),
        Some(raw) => {
            asked.need(microversion::FIELDS, "fields")?;
            FieldSet::named(&raw, asked)?
        }
    };
    query.finish()?;
    let node = app.node(&caller, asked, &ident).await?;
    Ok(one(&node, view_options(&app, &caller, asked, shown, &origin), StatusCode::OK))
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
        let after = write::patched(&before, patch.clone(), reset_interfaces, asked)?;
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
    Ok(one(
        &node,
        view_options(&app, &caller, asked, FieldSet::all(asked), &origin),
        StatusCode::OK,
    ))
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
    let mut wanted = query::list(Query::default(), DetailLevel::Brief, asked)?;
    wanted.filter.parent_node = Some(node.id);
    wanted.filter.seen_by = visible_project(&caller);
    // Only the ids are kept in memory.
    let (mut found, mut more) = (Vec::new(), None);
    loop {
        let limit = wanted.page.limit.saturating_sub(found.len() as u32).min(CHILDREN_AT_ONCE);
        let page = Page { limit, ..wanted.page.clone() };
        let part = PagePart { after: more, bytes: CHILDREN_BYTES };
        let listed = app.store.list_nodes_part(&wanted.filter, &page, part).await?;
        found.extend(listed.found.iter().map(|child| child.id));
        more = listed.more;
        if more.is_none() || found.len() >= wanted.page.limit as usize {
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
        let row = Field::known(operation.field()?)?;
        // An ordinary member may not change the owner of a node that is in use.
        let in_use = node.provision_state == Stage::Active;
        let rule = match row.field == Field::Owner && in_use {
            true => rule::ADMINISTER,
            false => rule::writing(row.field),
        };
        rule.check(caller, bond)
            .map_err(|why| ApiError::new(why.status, format!("{}: {}", row.name, why.message)))?;
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
    mut wanted: List,
    look: ViewOptions<'_>,
    path: &str,
    query: &Query,
) -> Result<Response, Error> {
    if let Some(parent) = wanted.parent {
        let parent = app.store.find_node(&parent).await?;
        let parent = parent.filter(|parent| relation(look.caller, parent).is_some());
        let missing = || ApiError::bad_field("parent_node", "node not found");
        wanted.filter.parent_node = Some(parent.ok_or_else(missing)?.id);
    }
    wanted.filter.seen_by = visible_project(look.caller);
    let elsewhere = wanted.conductor.is_some_and(|name| name != app.conductor.hostname());
    let is_empty = wanted.faulty || elsewhere;
    let (filter, page) = (wanted.filter, wanted.page);
    let reader = Arc::new((app.clone(), look.caller.clone(), look.origin.clone()));
    let (asked, shown) = (look.asked, look.shown);
    list_of("nodes", &page, (app, look.origin, path, query), move |part, page| {
        let (reader, filter) = (reader.clone(), filter.clone());
        Box::pin(async move {
            let (app, caller, origin) = &*reader;
            let listed = match is_empty {
                true => PageRows { found: Vec::new(), more: None },
                false => app.store.list_nodes_part(&filter, &page, part).await?,
            };
            let look = view_options(app, caller, asked, shown, origin);
            let view = |node| View { node, look };
            let id = |node: &Node| node.id.into_untyped_uuid();
            Ok(ListPart::of(&listed.found, id, view, listed.more)?)
        })
    })
    .await
}

/// How nodes are shown to the caller.
fn view_options<'a>(
    app: &'a App,
    caller: &'a Caller,
    asked: Microversion,
    shown: FieldSet<Field>,
    origin: &'a Origin,
) -> ViewOptions<'a> {
    ViewOptions { caller, asked, shown, origin, conductor: app.conductor.hostname() }
}

/// Answers with one node.
fn one(node: &Node, look: ViewOptions<'_>, status: StatusCode) -> Response {
    json_of(status, &View { node, look }, look.shown.rows().count() * BYTES_A_FIELD)
}
