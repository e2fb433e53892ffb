//! Boot scripts and boot media. Each is for one machine and one boot.

use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use baremetal_api::agents::ErrorAnswer;
use baremetal_core::{NodeUuid, WorkUuid};
use hardware::MacAddress;

use super::state::Provisioning;

/// `GET /boot/{node}/{work}/{mac}/{capability}/boot.ipxe`: the boot script of a node's machine.
pub(super) async fn script(
    State(provisioning): State<Provisioning>,
    Path((node, work, mac, capability)): Path<(NodeUuid, WorkUuid, MacAddress, String)>,
) -> Result<Response, ErrorAnswer> {
    Ok(plain(provisioning.conductor.boot_script(node, work, mac, &capability).await?))
}

/// `GET /own-image/{node}/{mac}/{capability}/boot.ipxe`: the boot script of a machine that boots the image of its user.
pub(super) async fn own_image_script(
    State(provisioning): State<Provisioning>,
    Path((node, mac, capability)): Path<(NodeUuid, MacAddress, String)>,
) -> Result<Response, ErrorAnswer> {
    Ok(plain(provisioning.conductor.own_image_script(node, mac, &capability).await?))
}

/// `GET /discover/{mac}/{capability}/boot.ipxe`: the boot script of a machine that nobody has enrolled.
pub(super) async fn discovery_script(
    State(provisioning): State<Provisioning>,
    Path((mac, capability)): Path<(MacAddress, String)>,
) -> Result<Response, ErrorAnswer> {
    Ok(plain(provisioning.conductor.discovery_script(mac, &capability).await?))
}

/// `GET /media/{node}/{work}/{capability}/boot.iso`: the virtual CD of a node's machine.
pub(super) async fn medium(
    State(provisioning): State<Provisioning>,
    Path((node, work, capability)): Path<(NodeUuid, WorkUuid, String)>,
    headers: HeaderMap,
) -> Result<Response, ErrorAnswer> {
    let Some(iso) = &provisioning.files.iso else {
        return Err(ErrorAnswer::not_found("a boot medium"));
    };
    let parameters = provisioning.conductor.medium_parameters(node, work, &capability).await?;
    iso.serve(&parameters, &headers)
        .await
        .map_err(|error| ErrorAnswer::bad_request(error.to_string()))
}

fn plain(script: String) -> Response {
    ([(CONTENT_TYPE, "text/plain; charset=utf-8")], script).into_response()
}
