//! A node group's own bootstrap data: an Ignition config that replaces the config that clusterd makes for its members.

use axum::response::Response;
use cluster_core::check_not_deleting;
use http::StatusCode;
use openstack_api::{JsonShape, PathParam, Route, Routes, StrictJson, json};
use serde::Serialize;
use serde_json::Value;

use crate::app::App;
use crate::error::Result;
use crate::request::Request;

pub(super) fn routes() -> Routes<App> {
    let given = JsonShape::object([
        ("nodegroup", JsonShape::text()),
        ("ignition_version", JsonShape::text()),
    ]);
    Routes::new("bedplate").at(
        "/bedplate/v1/clusters/{cluster}/nodegroups/{nodegroup}/ignition",
        [
            Route::put("Set a node group's own Ignition config", put)
                .reads(JsonShape::any_object())
                .returns(given),
            Route::delete("Remove a node group's own Ignition config", delete)
                .answers(StatusCode::NO_CONTENT),
        ],
    )
}

/// `PUT …/ignition`: sets the config for members that are created from now on.
async fn put(
    request: Request,
    PathParam((ident, group)): PathParam<(String, String)>,
    StrictJson(body): StrictJson<Value>,
) -> Result<Response> {
    let app = &request.app;
    #[derive(Serialize)]
    struct Body {
        nodegroup: String,
        ignition_version: String,
    }
    let cluster = request.cluster(&ident).await?;
    let group = request.group(&cluster, &group).await?;
    check_not_deleting(&cluster)?;
    let version = app.conductor.set_own_config(&cluster, &group, &body.to_string()).await?;
    let said = format!("new members of {} get the node group's own Ignition config", group.name);
    let said = app.request_event(&cluster, "OwnConfigGiven", said);
    app.store.append_events(cluster.id, &[said]).await?;
    let body = Body { nodegroup: group.name.to_string(), ignition_version: version };
    Ok(json(StatusCode::OK, &body))
}

/// `DELETE …/ignition`: new members get clusterd's config again.
async fn delete(
    request: Request,
    PathParam((ident, group)): PathParam<(String, String)>,
) -> Result<StatusCode> {
    let app = &request.app;
    let cluster = request.cluster(&ident).await?;
    let group = request.group(&cluster, &group).await?;
    app.conductor.remove_own_config(&cluster, &group).await?;
    let said = format!("new members of {} get clusterd's Ignition config", group.name);
    let said = app.request_event(&cluster, "OwnConfigTaken", said);
    app.store.append_events(cluster.id, &[said]).await?;
    Ok(StatusCode::NO_CONTENT)
}
