//! `/v1/nodes/{node}/history`: the events of a node.

use axum::response::Response;
use baremetal_core::{HistoryEntry, HistoryUuid};
use baremetal_store::{PagePart, PageRows};
use http::StatusCode;
use newtype_uuid::GenericUuid;
use openstack_api::{
    ApiError, Hidden, JsonShape, ListPart, ListRequest, Origin, Paging, PathParam, Route, Routes,
    Time, flag, json,
};
use serde::Serialize;

use crate::app::App;
use crate::error::Result;
use crate::listing::parts_of;
use crate::request::Request;
use crate::{microversion, rule};

pub(crate) fn routes() -> Routes<App> {
    let list = Route::get("List a node's history", list).with_rule(rule::READ_DETAILS);
    let show = Route::get("Show one event of a node's history", show).with_rule(rule::READ_DETAILS);
    let list = list
        .query_parameters(["limit", "marker", "sort_key", "sort_dir", "detail"])
        .returns(JsonShape::page("history", shape()));
    let show = show.returns(shape());
    Routes::new("history")
        .at("/v1/nodes/{node}/history", [list.hidden_before(microversion::HISTORY, Hidden::Path)])
        .at(
            "/v1/nodes/{node}/history/{event}",
            [show.hidden_before(microversion::HISTORY, Hidden::Path)],
        )
}

fn shape() -> JsonShape {
    let shape = JsonShape::object([
        ("uuid", JsonShape::text().or_null()),
        ("created_at", JsonShape::text()),
        ("severity", JsonShape::text()),
        ("event", JsonShape::text()),
        ("links", JsonShape::links()),
    ]);
    shape.maybe([
        ("event_type", JsonShape::text()),
        ("conductor", JsonShape::text()),
        ("user", JsonShape::text().or_null()),
        ("project", JsonShape::text().or_null()),
        ("state", JsonShape::text().or_null()),
        ("target_provision_state", JsonShape::text().or_null()),
        ("duration_seconds", JsonShape::integer().or_null()),
    ])
}

#[derive(Serialize)]
struct Link {
    href: String,
    rel: &'static str,
}

#[derive(Serialize)]
struct Shown<'a> {
    uuid: Option<HistoryUuid>,
    created_at: Time,
    severity: &'static str,
    event: &'a str,
    #[serde(flatten)]
    more: Option<DetailFields<'a>>,
    links: [Link; 1],
}

/// The fields that only a detailed view shows.
#[derive(Serialize)]
struct DetailFields<'a> {
    event_type: &'a str,
    conductor: &'a str,
    user: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    project: Option<Option<&'a str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<Option<&'a str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    target_provision_state: Option<Option<&'a str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration_seconds: Option<Option<i64>>,
}

/// How many fields of each event are shown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum DetailLevel {
    Brief,
    Detail,
}

fn view<'a>(
    request: &'a Request,
    entry: &'a HistoryEntry,
    origin: &Origin,
    extent: DetailLevel,
) -> Shown<'a> {
    let asked = request.asked;
    let id = entry.id.unwrap_or(HistoryUuid::nil());
    let href = format!("{origin}/v1/nodes/{}/history/{id}", entry.node);
    Shown {
        uuid: entry.id,
        created_at: Time(entry.at),
        severity: entry.severity.as_str(),
        event: &entry.event,
        more: (extent == DetailLevel::Detail).then(|| DetailFields {
            event_type: entry.activity(),
            conductor: request.app.conductor.hostname(),
            user: entry.user.as_deref(),
            project: asked.since(microversion::HISTORY_PROJECT, entry.project.as_deref()),
            state: asked.since(
                microversion::HISTORY_STATES,
                Some(entry.from.as_str()).filter(|state| !state.is_empty()),
            ),
            target_provision_state: asked
                .since(microversion::HISTORY_STATES, entry.target.as_deref()),
            duration_seconds: asked.since(microversion::HISTORY_STATES, entry.seconds),
        }),
        links: [Link { href, rel: "self" }],
    }
}

/// `GET /v1/nodes/{node}/history`: lists the events of a node.
async fn list(
    request: Request,
    PathParam(ident): PathParam<String>,
    paging: ListRequest,
) -> Result<Response> {
    let mut rest = paging.query.clone();
    let page = Paging::take(&mut rest)?;
    let detail = rest.take("detail").map_or(Ok(false), |raw| flag("detail", &raw))?;
    rest.finish()?;
    if let Some(key) = &page.sort_key
        && !["id", "uuid", "created_at"].contains(&key.as_str())
    {
        return Err(
            ApiError::bad_field("sort_key", "history is always in chronological order").into()
        );
    }
    let node = request.node(&ident).await?;
    let marker = page.marker.map(HistoryUuid::from_untyped_uuid);
    let extent = if detail { DetailLevel::Detail } else { DetailLevel::Brief };
    let reader = (request.clone(), paging.origin.clone());
    let at = paging.of(&request.app);
    parts_of("history", page.limit, at, move |asked| {
        let (request, origin) = reader.clone();
        Box::pin(async move {
            let part = PagePart { after: asked.after, bytes: asked.bytes };
            let read = request.app.store.history_part(node.id, asked.elements, marker, part);
            let PageRows { found, more } = read.await?;
            let id = |entry: &HistoryEntry| entry.id.unwrap_or(HistoryUuid::nil());
            let view = |entry| view(&request, entry, &origin, extent);
            Ok(ListPart::of(&found, id, view, more)?)
        })
    })
    .await
}

/// `GET /v1/nodes/{node}/history/{event}`: shows an event.
async fn show(
    request: Request,
    origin: Origin,
    PathParam((ident, event)): PathParam<(String, String)>,
) -> Result<Response> {
    let node = request.node(&ident).await?;
    let missing = || ApiError::not_found("the event was not found in this node's history");
    let id: HistoryUuid = event.parse().map_err(|_| missing())?;
    let entry = request.app.store.find_history(node.id, id).await?.ok_or_else(missing)?;
    Ok(json(StatusCode::OK, &view(&request, &entry, &origin, DetailLevel::Detail)))
}
