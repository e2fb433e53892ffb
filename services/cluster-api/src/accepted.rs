//! The response to a request that the conductor carries out.

use axum::response::Response;
use cluster_core::Cluster;
use http::StatusCode;
use openstack_api::{JsonShape, json};
use serde::Serialize;

/// `{"uuid": "…"}`: the response to a request that the conductor carries out.
#[derive(Serialize)]
struct RequestAccepted {
    uuid: String,
}

/// The response schema of `RequestAccepted`.
pub(crate) fn accepted_schema() -> JsonShape {
    JsonShape::object([("uuid", JsonShape::text())])
}

/// The response to a request that the conductor carries out.
pub(crate) fn accepted(cluster: &Cluster) -> Response {
    json(StatusCode::ACCEPTED, &RequestAccepted { uuid: cluster.id.to_string() })
}
