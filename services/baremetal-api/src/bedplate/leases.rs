//! `/bedplate/v1/nodes/{node}/lease`: lends a node, extends its lease, and undoes the end of a lease.

use axum::response::Response;
use baremetal_core::{
    HistoryEntry, LendError, LendRequest, Node, check_change, extend, lend, undo,
};
use http::StatusCode;
use jiff::Timestamp;
use lease::{Length, MailAddress};
use openstack_api::{ApiError, JsonShape, PathParam, Route, Routes, Shaped, StrictJson, json};
use serde::{Deserialize, Serialize};
use utoipa::{PartialSchema, ToSchema};

use super::lease_term::{self, LeaseChange, LeaseView};
use crate::app::App;
use crate::error::Result;
use crate::request::{Request, relation};
use crate::{microversion, rule};

pub(crate) fn routes() -> Routes<App> {
    let lent = || {
        let lease = lease_term::LeaseView::shape().or_null();
        JsonShape::object([("lessee", JsonShape::text().or_null()), ("lease", lease)])
    };
    let lease = [
        Route::get("Show a node's lease", show).with_rule(rule::READ).returns(lent()),
        Route::post("Lend a node", begin)
            .with_rule(rule::OPERATE)
            .reads(LeaseRequest::schema())
            .returns(lent()),
        Route::put("Extend a node's lease", extend_lease)
            .with_rule(rule::USE)
            .reads(LeaseChange::schema())
            .returns(lent()),
    ];
    let undo = Route::post("Undo the end of a node's lease", undo_end);
    let undo = undo.with_rule(rule::USE).returns(lent());
    Routes::new("bedplate")
        .at("/bedplate/v1/nodes/{node}/lease", lease)
        .at("/bedplate/v1/nodes/{node}/lease/undo", [undo])
}

/// The lessee of a node, and the length of the lease.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct LeaseRequest {
    /// The project that becomes the lessee.
    lessee: String,
    /// The length of the lease from now, such as `14d`; the configured default if omitted.
    #[serde(default, rename = "for")]
    #[schema(value_type = Option<String>)]
    length: Option<Length>,
    /// A mail address that is notified before the lease ends.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    notify: Option<MailAddress>,
}

/// `GET /bedplate/v1/nodes/{node}/lease`: shows the lease of a node.
async fn show(request: Request, PathParam(ident): PathParam<String>) -> Result<Response> {
    let node = request.node_at(microversion::MAXIMUM, &ident).await?;
    Ok(shown(&request.app, &node))
}

/// `POST /bedplate/v1/nodes/{node}/lease`: lends a node.
async fn begin(
    request: Request,
    PathParam(ident): PathParam<String>,
    StrictJson(wish): StrictJson<LeaseRequest>,
) -> Result<Response> {
    let terms = request.app.settings.reservations.lease;
    let now = (request.app.clock)();
    let granted = terms.grant(wish.length, now);
    let granted = granted.map_err(|why| ApiError::bad_field("for", why))?;
    let missing = || ApiError::bad_field("for", "is required: no default is configured");
    let seconds = granted.ok_or_else(missing)?.until.duration_since(now).unsigned_abs().as_secs();
    let length = Length::from_secs(seconds).map_err(|why| ApiError::bad_field("for", why))?;
    request.node_at(microversion::MAXIMUM, &ident).await?;
    request.app.auth.check_project(&request.caller, "lessee", &wish.lessee).await?;
    let by = request.caller.user().unwrap_or_default();
    change(&request, &ident, |node, now| {
        let loan = LendRequest { lessee: wish.lessee.clone(), length, notify: wish.notify.clone() };
        lend(node, loan, by, terms, now)
    })
    .await
}

/// `PUT /bedplate/v1/nodes/{node}/lease`: extends a lease.
async fn extend_lease(
    request: Request,
    PathParam(ident): PathParam<String>,
    StrictJson(wanted): StrictJson<LeaseChange>,
) -> Result<Response> {
    let terms = request.app.settings.reservations.lease;
    let now = (request.app.clock)();
    let until = wanted.end(terms, now)?;
    let by = request.caller.user().unwrap_or_default();
    may_extend(&request, &ident).await?;
    change(&request, &ident, |node, _| extend(node, until, by, terms, now)).await
}

/// `POST /bedplate/v1/nodes/{node}/lease/undo`: undoes the end of a lease, within the undo window.
async fn undo_end(request: Request, PathParam(ident): PathParam<String>) -> Result<Response> {
    let (by, terms) =
        (request.caller.user().unwrap_or_default(), request.app.settings.reservations.lease);
    let schedule = request.app.conductor.schedule();
    may_extend(&request, &ident).await?;
    change(&request, &ident, |node, now| undo(node, by, schedule, terms, now)).await
}

/// Checks who may extend a lease. A lease that the owner granted can only be extended by the owner; the lessee of a reservation may extend
/// it within the configured limits.
async fn may_extend(request: &Request, ident: &str) -> Result<()> {
    let node = request.node_at(microversion::MAXIMUM, ident).await?;
    match (&node.lending, relation(&request.caller, &node)) {
        (Some(lending), Some(relation)) if !lending.reserved => {
            Ok(rule::OPERATE.check(&request.caller, relation)?)
        }
        (Some(_) | None, _) => Ok(()),
    }
}

async fn change(
    request: &Request,
    ident: &str,
    decide: impl Fn(&Node, Timestamp) -> Result<(Node, HistoryEntry), LendError>,
) -> Result<Response> {
    let changed = request.change_at(microversion::MAXIMUM, ident, |node| {
        let decided = decide(node, (request.app.clock)());
        let (after, entry) = decided.map_err(|why| ApiError::conflict(why.to_string()))?;
        if node.lending.is_none() {
            check_change(node, &after)?;
        }
        Ok((after, Some(entry)))
    });
    let node = changed.await?;
    request.app.conductor.wake(node.id);
    Ok(shown(&request.app, &node))
}

fn shown(app: &App, node: &Node) -> Response {
    #[derive(Serialize)]
    struct Body<'a> {
        lessee: Option<&'a str>,
        lease: Option<LeaseView>,
    }
    let (schedule, now) = (app.conductor.schedule(), (app.clock)());
    let lease = node.lending.as_ref().map(|lending| LeaseView::of(lending, schedule, now));
    json(StatusCode::OK, &Body { lessee: node.lessee.as_deref(), lease })
}
