//! Blobs of OCI registries, which the service passes on to machines.

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::header::{CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG, IF_RANGE, RANGE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use baremetal_api::agents::ErrorAnswer;
use baremetal_core::{NodeUuid, OciDigest, WorkUuid};

use super::state::Provisioning;

/// `GET /oci/{node}/{work}/{digest}/{capability}`: the blob that is written to the disk of a node's machine, as it arrives from the registry.
///
/// The digest is also the ETag. With it, an agent resumes an interrupted download, such as after a restart of the service (RFC 9110 §13.1.5).
pub(super) async fn blob(
    State(provisioning): State<Provisioning>,
    Path((node, work, digest, capability)): Path<(NodeUuid, WorkUuid, OciDigest, String)>,
    headers: HeaderMap,
) -> Result<Response, ErrorAnswer> {
    let tag = HeaderValue::try_from(format!("\"{digest}\"")).expect("digits are a legal value");
    let is_unchanged = headers.get(IF_RANGE).is_none_or(|known| *known == tag);
    let range = headers.get(RANGE).filter(|_| is_unchanged).cloned();
    let opened = provisioning.conductor.oci_blob((node, work), &digest, &capability, range).await?;
    let (length, range) = (opened.length(), opened.range());
    let mut response = Body::from_stream(opened.into_stream()).into_response();
    if range.is_some() {
        *response.status_mut() = StatusCode::PARTIAL_CONTENT;
    }
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    headers.insert(ETAG, tag);
    headers.extend(length.map(|length| (CONTENT_LENGTH, length.into())));
    headers.extend(range.map(|range| (CONTENT_RANGE, range)));
    Ok(response)
}
