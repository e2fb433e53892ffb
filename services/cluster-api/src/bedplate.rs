//! `/bedplate/v1`: the routes that Magnum does not have.

mod backups;
mod conductors;
mod drain_view;
mod drains;
mod event_stream;
mod events;
mod hosts;
mod ignition;
mod import;
mod lease;
mod ledger;
mod machines;
mod plan;
mod quotas;
mod upgrade;

use ::lease::LeaseSchedule;
use axum::response::Response;
use cluster_core::{ClusterSpec, Condition, health, status, status_reason};
use http::StatusCode;
use jiff::Timestamp;
use openstack_api::{
    ApiError, JsonShape, PathParam, RequiredAccess, Route, Routes, Shaped, Time, json, shaped,
};
use serde::Serialize;

use crate::app::App;
use crate::error::Result;
use crate::request::Request;

/// Returns all routes below `/bedplate/v1`, except those of VMs.
pub(crate) fn routes() -> Routes<App> {
    Routes::new("bedplate")
        .at(
            "/bedplate/v1/clusters/{cluster}",
            [Route::get("Explain a cluster", explain).returns(Explained::shape())],
        )
        .at(
            "/bedplate/v1/clusters/{cluster}/kubeconfig",
            // The kubeconfig contains a key with all permissions in the cluster.
            [Route::get("Get an administrator's kubeconfig", kubeconfig)
                .needs(RequiredAccess::Change)
                .tells_text("application/yaml")
                .refuses([StatusCode::CONFLICT])],
        )
        .merge(backups::routes())
        .merge(events::routes())
        .merge(plan::routes())
        .merge(quotas::routes())
        .merge(ignition::routes())
        .merge(import::routes())
        .merge(lease::routes())
        .merge(upgrade::routes())
        .merge(ledger::routes())
        .merge(machines::routes())
        .merge(openstack_api::key_routes())
        .merge(openstack_api::health_routes())
        .merge(openstack_api::webhook_routes())
        .merge(hosts::routes())
        .merge(drains::routes())
        .merge(conductors::routes())
}

/// The response schema of a condition.
fn condition() -> JsonShape {
    JsonShape::object([
        ("type", JsonShape::text()),
        ("status", JsonShape::enumeration(["True", "False", "Unknown"])),
        ("reason", JsonShape::text()),
        ("message", JsonShape::text()),
        ("next_action", JsonShape::text()),
        ("last_transition_time", JsonShape::text()),
    ])
}

#[derive(Serialize)]
struct ShownCondition<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    status: String,
    reason: &'a str,
    message: &'a str,
    next_action: &'a str,
    last_transition_time: Time,
}

fn shown_condition(condition: &Condition) -> ShownCondition<'_> {
    ShownCondition {
        kind: condition.kind.as_str(),
        status: format!("{:?}", condition.status),
        reason: &condition.reason,
        message: &condition.message,
        next_action: &condition.next_action,
        last_transition_time: Time(condition.since),
    }
}

shaped! {
    #[derive(Serialize)]
    struct Explained<'a> {
        uuid: String,
        name: &'a str,
        status: &'static str,
        status_reason: Option<String>,
        health_status: &'static str,
        kubernetes: String,
        /// The id of the last request that changed the cluster. The conductor's calls to the cloud carry this id, so the cloud's logs show
        /// it.
        asked_by: Option<&'a str>,
        lease: Option<lease::Shown<'a>>,
        upgrade: Option<upgrade::ShownRoll>,
        conditions: Vec<ShownCondition<'a>> = JsonShape::list(condition()),
    }
}

impl<'a> Explained<'a> {
    fn new(spec: &ClusterSpec<'a>, schedule: &LeaseSchedule, now: Timestamp) -> Self {
        let cluster = spec.cluster;
        Explained {
            uuid: cluster.id.to_string(),
            name: cluster.name.as_str(),
            status: status(cluster, now).as_str(),
            status_reason: status_reason(cluster),
            health_status: health(cluster).as_str(),
            kubernetes: cluster.kubernetes.to_string(),
            asked_by: cluster.asked_by.as_deref(),
            lease: lease::Shown::of(cluster, schedule, now),
            upgrade: upgrade::ShownRoll::of(spec),
            conditions: cluster.conditions.iter().map(shown_condition).collect(),
        }
    }
}

/// `GET /bedplate/v1/clusters/{cluster}`: the cluster's status, and the conditions that the status is computed from.
async fn explain(request: Request, PathParam(ident): PathParam<String>) -> Result<Response> {
    let cluster = request.cluster(&ident).await?;
    let groups = match cluster.roll {
        Some(_) => request.app.store.groups_of(cluster.id).await?,
        None => Vec::new(),
    };
    let spec = ClusterSpec { cluster: &cluster, groups: &groups };
    let explained = Explained::new(&spec, &request.app.settings.schedule, (request.app.clock)());
    Ok(json(StatusCode::OK, &explained))
}

/// `GET /bedplate/v1/clusters/{cluster}/kubeconfig`: 409 until the address of the cluster's API is known.
async fn kubeconfig(request: Request, PathParam(ident): PathParam<String>) -> Result<Response> {
    let cluster = request.cluster(&ident).await?;
    let Some(config) = request.app.conductor.kubeconfig(&cluster, &request.user()).await? else {
        let why = "the cluster's API has no address yet; the conditions in GET /bedplate/v1/clusters/ID tell why";
        return Err(ApiError::conflict(why).into());
    };
    let said = format!("{} got an administrator's kubeconfig", request.user());
    let said = request.app.request_event(&cluster, "KubeconfigGiven", said);
    request.app.store.append_events(cluster.id, &[said]).await?;
    let kind = [(http::header::CONTENT_TYPE, "application/yaml")];
    Ok(axum::response::IntoResponse::into_response((kind, config)))
}
