//! Images of Glance, which the service passes on to machines.

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use baremetal_api::agents::ErrorAnswer;
use baremetal_core::{NodeUuid, WorkUuid};
use uuid::Uuid;

use super::state::Provisioning;

/// `GET /glance/{node}/{work}/{image}/{capability}`: the image that is written to the disk of a node's machine, as it arrives from Glance.
pub(super) async fn image(
    State(provisioning): State<Provisioning>,
    Path((node, work, image, capability)): Path<(NodeUuid, WorkUuid, Uuid, String)>,
) -> Result<Response, ErrorAnswer> {
    let opened = provisioning.conductor.glance_image(node, work, image, &capability).await?;
    let length = opened.length();
    let mut response = Body::from_stream(opened.into_stream()).into_response();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, "application/octet-stream".parse().expect("it is a legal value"));
    headers.extend(length.map(|length| (CONTENT_LENGTH, length.into())));
    Ok(response)
}
