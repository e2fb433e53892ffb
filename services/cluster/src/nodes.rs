//! The listener for members: hands out configs for claims, takes progress reports, and moves backups of etcd. No route of the users' API
//! answers here.

mod backups;
mod certificate;
mod credential;
mod fleet_lock;

use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::extract::rejection::{FormRejection, QueryRejection, StringRejection};
use axum::extract::{ConnectInfo, DefaultBodyLimit, Form, Path, Query, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use cluster_conductor::{Answer, CaHandout, CertificateAnswer, Conductor, StepReport};
use http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, StatusCode};
use serde::Deserialize;
use tower_http::timeout::TimeoutLayer;

use credential::{bearer, not_found};

pub use certificate::{Certificate, CertificateError, certificate, read_certificate};

/// The media type of Ignition configs.
const IGNITION: &str = "application/vnd.coreos.ignition+json";
/// The maximum size of a report in bytes.
const LONGEST_REPORT: usize = 4096;
/// The maximum size of a report about certificates in bytes. A member has 13 certificates of 2 KiB at most.
const LONGEST_CERTIFICATES: usize = 64 * 1024;
/// The timeout of a request.
const PATIENCE: Duration = Duration::from_secs(30);

/// Returns all routes of the listener.
pub fn router(conductor: Conductor) -> Router {
    let certificates = post(certificates).layer(DefaultBodyLimit::max(LONGEST_CERTIFICATES));
    Router::new()
        .route("/v1/claims/{claim}", get(redeem))
        .route("/v1/reports", post(report))
        .route("/v1/authorities/{claim}", get(authorities))
        .route("/v1/certificates/{claim}", certificates)
        .route("/v1/fleet-lock/v1/pre-reboot", post(fleet_lock::pre_reboot))
        .route("/v1/fleet-lock/v1/steady-state", post(fleet_lock::steady_state))
        .merge(backups::routes())
        .layer(DefaultBodyLimit::max(LONGEST_REPORT))
        .layer(TimeoutLayer::with_status_code(StatusCode::SERVICE_UNAVAILABLE, PATIENCE))
        // A transfer has no size limit here and may take long: the conductor limits both.
        .merge(backups::transfers())
        .with_state(conductor)
}

/// `GET /v1/claims/{claim}`: hands out the member's config once. A refusal never tells the reason, so that nobody can probe for claims.
async fn redeem(
    State(conductor): State<Conductor>,
    ConnectInfo(from): ConnectInfo<SocketAddr>,
    Path(claim): Path<String>,
    headers: HeaderMap,
) -> Response {
    let Some(token) = bearer(&headers) else { return not_found() };
    match conductor.redeem(&claim, token, from.ip()).await {
        Answer::Config(config) => {
            let headers = [(CONTENT_TYPE, IGNITION), (CACHE_CONTROL, "no-store")];
            (headers, config).into_response()
        }
        Answer::Nothing => not_found(),
        // Ignition repeats the request after any 5xx.
        Answer::Later => (StatusCode::SERVICE_UNAVAILABLE, [(RETRY_AFTER, "2")]).into_response(),
    }
}

/// The form that a unit of a member sends after a step.
#[derive(Deserialize)]
struct Report {
    claim: String,
    step: String,
    result: String,
    #[serde(default)]
    status: String,
}

/// `POST /v1/reports`: a form with `claim`, `step`, `result` and `status`.
async fn report(
    State(conductor): State<Conductor>,
    headers: HeaderMap,
    body: Result<Form<Report>, FormRejection>,
) -> Response {
    let Some(token) = bearer(&headers) else { return not_found() };
    let Ok(Form(report)) = body else { return not_found() };
    let Report { claim, step, result, status } = report;
    let said = StepReport { step, result, status: status.parse().ok() };
    match conductor.note_report(&claim, token, &said).await {
        true => StatusCode::NO_CONTENT.into_response(),
        false => not_found(),
    }
}

/// The query of a member that asks for certificate authorities.
#[derive(Deserialize)]
struct CaRevisionQuery {
    holds: u32,
}

/// `GET /v1/authorities/{claim}?holds=REVISION`: the next step of a CA rotation.
///
/// Answers 204 if the member has the revision that it should have, 202 if the member's next step comes soon, and otherwise a tar archive to
/// apply.
async fn authorities(
    State(conductor): State<Conductor>,
    Path(claim): Path<String>,
    headers: HeaderMap,
    query: Result<Query<CaRevisionQuery>, QueryRejection>,
) -> Response {
    let Some(token) = bearer(&headers) else { return not_found() };
    let Ok(Query(CaRevisionQuery { holds })) = query else { return not_found() };
    match conductor.authorities_for(&claim, token, holds).await {
        CaHandout::Nothing => not_found(),
        CaHandout::Held => StatusCode::NO_CONTENT.into_response(),
        CaHandout::Soon => StatusCode::ACCEPTED.into_response(),
        CaHandout::Take(archive) => {
            let headers = [(CONTENT_TYPE, "application/x-tar"), (CACHE_CONTROL, "no-store")];
            (headers, archive).into_response()
        }
    }
}

/// `POST /v1/certificates/{claim}`: the certificates that a member holds.
///
/// Answers 200 if the member has to renew them now, and otherwise 202 with the number of seconds after which the member has to report again.
async fn certificates(
    State(conductor): State<Conductor>,
    Path(claim): Path<String>,
    headers: HeaderMap,
    body: Result<String, StringRejection>,
) -> Response {
    let Some(token) = bearer(&headers) else { return not_found() };
    let Ok(report) = body else { return not_found() };
    match conductor.take_certificate_report(&claim, token, &report).await {
        CertificateAnswer::Nothing => not_found(),
        CertificateAnswer::Renew => (StatusCode::OK, "renew\n").into_response(),
        CertificateAnswer::ReportAgain(seconds) => {
            (StatusCode::ACCEPTED, format!("{seconds}\n")).into_response()
        }
    }
}
