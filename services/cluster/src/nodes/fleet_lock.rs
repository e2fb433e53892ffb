//! The FleetLock protocol, version 1, by which Zincati asks before a member reboots.
//!
//! The protocol is described in Zincati's documentation ("FleetLock protocol"): a POST with a header and a JSON body, any 2xx status for
//! permission, and otherwise JSON with `kind` and `value`. The claim and the credential in the URL say which member asks.

use axum::extract::State;
use axum::extract::rejection::StringRejection;
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use cluster_conductor::{Conductor, RebootReport};
use cluster_core::RebootAnswer;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderMap, StatusCode};
use serde::Deserialize;
use serde_json::json;

use super::credential::not_found;

/// The header that a client of the protocol sends.
const PROTOCOL: &str = "fleet-lock-protocol";

/// The body of each request. Zincati's own id and group of a machine decide nothing here.
#[derive(Deserialize)]
struct FleetLockBody {
    client_params: ClientParams,
}

#[derive(Deserialize)]
struct ClientParams {
    id: String,
    group: String,
}

/// `POST /v1/fleet-lock/v1/pre-reboot`: the member asks whether it may reboot.
pub(super) async fn pre_reboot(
    State(conductor): State<Conductor>,
    headers: HeaderMap,
    body: Result<String, StringRejection>,
) -> Response {
    answer(&conductor, &headers, body, RebootReport::WantsTo).await
}

/// `POST /v1/fleet-lock/v1/steady-state`: the member has booted and runs as intended.
pub(super) async fn steady_state(
    State(conductor): State<Conductor>,
    headers: HeaderMap,
    body: Result<String, StringRejection>,
) -> Response {
    answer(&conductor, &headers, body, RebootReport::IsSteady).await
}

async fn answer(
    conductor: &Conductor,
    headers: &HeaderMap,
    body: Result<String, StringRejection>,
    report: RebootReport,
) -> Response {
    let Some((claim, token)) = credential(headers) else { return not_found() };
    if headers.get(PROTOCOL).is_none_or(|value| value != "true") {
        let why = format!("the header {PROTOCOL} is missing");
        return refusal(StatusCode::BAD_REQUEST, "invalid_protocol", &why);
    }
    let read = body.ok().and_then(|text| serde_json::from_str::<FleetLockBody>(&text).ok());
    let params = read.map(|body| body.client_params);
    if params.is_none_or(|params| params.id.is_empty() || params.group.is_empty()) {
        let why = "client_params.id and client_params.group must be texts";
        return refusal(StatusCode::BAD_REQUEST, "invalid_body", why);
    }
    match conductor.take_reboot_report(&claim, &token, report).await {
        None => not_found(),
        Some(RebootAnswer::Permitted) => StatusCode::OK.into_response(),
        Some(RebootAnswer::Wait(why)) => refusal(StatusCode::CONFLICT, "failed_lock", &why),
    }
}

/// Returns the claim and the token of HTTP Basic authentication (RFC 7617).
fn credential(headers: &HeaderMap) -> Option<(String, String)> {
    let encoded = headers.get(AUTHORIZATION)?.to_str().ok()?.strip_prefix("Basic ")?;
    let decoded = String::from_utf8(STANDARD.decode(encoded).ok()?).ok()?;
    let (claim, token) = decoded.split_once(':')?;
    Some((claim.to_owned(), token.to_owned()))
}

fn refusal(status: StatusCode, kind: &str, value: &str) -> Response {
    let body = json!({"kind": kind, "value": value}).to_string();
    (status, [(CONTENT_TYPE, "application/json")], body).into_response()
}
