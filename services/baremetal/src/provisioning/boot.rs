//! Boot scripts and boot media. Each is for one machine and one boot.

use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use baremetal_api::agents::ErrorAnswer;
use baremetal_conductor::firmware_of_script;
use baremetal_core::{NodeUuid, WorkUuid};
use hardware::{CpuArchitecture, MacAddress};

use super::state::Provisioning;

/// The variable parts of the URL of a boot script.
type ScriptPath = (NodeUuid, WorkUuid, MacAddress, String, String);

/// `GET /boot/{node}/{work}/{mac}/{capability}/{script}`: the boot script of a node's machine.
pub(super) async fn script(
    State(provisioning): State<Provisioning>,
    Path((node, work, mac, capability, script)): Path<ScriptPath>,
) -> Result<Response, ErrorAnswer> {
    let firmware = firmware(&script)?;
    let script = provisioning.conductor.boot_script(node, work, mac, &capability, firmware).await?;
    Ok(plain(script))
}

/// `GET /own-image/{node}/{mac}/{capability}/boot.ipxe`: the boot script of a machine that boots the image of its user.
pub(super) async fn own_image_script(
    State(provisioning): State<Provisioning>,
    Path((node, mac, capability)): Path<(NodeUuid, MacAddress, String)>,
) -> Result<Response, ErrorAnswer> {
    Ok(plain(provisioning.conductor.own_image_script(node, mac, &capability).await?))
}

/// `GET /discover/{mac}/{capability}/{script}`: the boot script of a machine that nobody has enrolled.
pub(super) async fn discovery_script(
    State(provisioning): State<Provisioning>,
    Path((mac, capability, script)): Path<(MacAddress, String, String)>,
) -> Result<Response, ErrorAnswer> {
    let firmware = firmware(&script)?;
    Ok(plain(provisioning.conductor.discovery_script(mac, &capability, firmware).await?))
}

/// `GET /media/{node}/{work}/{capability}/boot.iso`: the virtual CD of a node's machine.
pub(super) async fn medium(
    State(provisioning): State<Provisioning>,
    Path((node, work, capability)): Path<(NodeUuid, WorkUuid, String)>,
    headers: HeaderMap,
) -> Result<Response, ErrorAnswer> {
    let medium = provisioning.conductor.medium(node, work, &capability).await?;
    let Some(iso) = provisioning.files.iso_for(medium.architecture) else {
        return Err(ErrorAnswer::not_found("a boot medium"));
    };
    iso.serve(&medium.parameters, &headers)
        .await
        .map_err(|error| ErrorAnswer::bad_request(error.to_string()))
}

/// Returns the firmware that the name of a script stands for.
fn firmware(script: &str) -> Result<CpuArchitecture, ErrorAnswer> {
    firmware_of_script(script).ok_or_else(|| ErrorAnswer::not_found("the script"))
}

fn plain(script: String) -> Response {
    ([(CONTENT_TYPE, "text/plain; charset=utf-8")], script).into_response()
}
