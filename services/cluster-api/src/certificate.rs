//! `/v1/certificates`: a cluster's certificate authority, and signing with it.

use axum::response::Response;
use cluster_core::{Cluster, check_not_deleting, start_rotation as rotated};
use cluster_store::ClusterChange;
use http::StatusCode;
use openstack_api::{
    ApiError, Hidden, JsonShape, Links, Origin, PathParam, Query, Route, Routes, Shaped,
    StrictJson, json, shaped,
};
use serde::{Deserialize, Serialize};
use utoipa::{PartialSchema, ToSchema};

use crate::accepted::{accepted, accepted_schema};
use crate::app::App;
use crate::error::Result;
use crate::lenient::text;
use crate::microversion as since;
use crate::request::Request;

/// Returns the routes of certificates and credentials.
pub(crate) fn routes() -> Routes<App> {
    let sign = Route::post("Sign a certificate request", sign)
        .reads(SigningRequest::schema())
        .returns(Shown::shape())
        .refuses([StatusCode::NOT_FOUND]);
    let one = [
        Route::get("Show a cluster's CA certificate", show)
            .query_parameters(["ca_cert_type"])
            .returns(Shown::shape()),
        Route::patch("Rotate a cluster's CA", rotate)
            .answers(StatusCode::ACCEPTED)
            .returns(accepted_schema()),
    ];
    let credentials = Route::patch("Rotate a cluster's credential", credentials);
    Routes::new("certificates")
        .at("/v1/certificates", [sign.answers(StatusCode::CREATED)])
        .at("/v1/certificates/{cluster}", one)
        .at(
            "/v1/credentials/{cluster}",
            [credentials
                .hidden_before(since::CREDENTIALS, Hidden::Version)
                .answers(StatusCode::ACCEPTED)
                .returns(accepted_schema())],
        )
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct SigningRequest {
    /// The cluster's id or name.
    cluster_uuid: String,
    /// The certificate request, PEM.
    csr: String,
    /// Only `kubernetes` is supported.
    #[serde(default, deserialize_with = "text")]
    ca_cert_type: Option<String>,
}

shaped! {
    #[derive(Serialize)]
    struct Shown<'a> {
        cluster_uuid: String,
        csr: Option<&'a str>,
        pem: String,
        links: Links<'a, String> = JsonShape::links(),
    }
}

fn shown<'a>(
    cluster: &Cluster,
    csr: Option<&'a str>,
    pem: String,
    origin: &'a Origin,
) -> Shown<'a> {
    let id = cluster.id.to_string();
    let links = Links { origin, collection: "certificates", id: id.clone(), part: "" };
    Shown { cluster_uuid: id, csr, pem, links }
}

/// Refuses every certificate authority but the one that users need.
fn check_kind(kind: Option<&str>) -> Result<(), ApiError> {
    match kind {
        None | Some("kubernetes") => Ok(()),
        Some(_) => Err(ApiError::bad_field("ca_cert_type", "only kubernetes is supported")),
    }
}

/// `GET /v1/certificates/{cluster}`: the certificate of the cluster's certificate authority.
async fn show(
    request: Request,
    origin: Origin,
    PathParam(ident): PathParam<String>,
    mut query: Query,
) -> Result<Response> {
    let cluster = request.cluster(&ident).await?;
    check_kind(query.take("ca_cert_type").as_deref())?;
    query.finish()?;
    let pem = request.app.conductor.authority(&cluster).await?;
    Ok(json(StatusCode::OK, &shown(&cluster, None, pem, &origin)))
}

/// `POST /v1/certificates`: signs a certificate request.
async fn sign(
    request: Request,
    origin: Origin,
    StrictJson(body): StrictJson<SigningRequest>,
) -> Result<Response> {
    check_kind(body.ca_cert_type.as_deref())?;
    let cluster = request.cluster(&body.cluster_uuid).await?;
    check_not_deleting(&cluster)?;
    let pem = request.app.conductor.sign(&cluster, &body.csr, &request.user()).await?;
    let said = request.app.request_event(
        &cluster,
        "CertificateSigned",
        format!("signed a certificate for {}", request.user()),
    );
    request.app.store.append_events(cluster.id, &[said]).await?;
    Ok(json(StatusCode::CREATED, &shown(&cluster, Some(&body.csr), pem, &origin)))
}

/// `PATCH /v1/certificates/{cluster}`: starts a CA rotation. A cluster without members gets new certificate authorities at once.
async fn rotate(request: Request, PathParam(ident): PathParam<String>) -> Result<Response> {
    let app = &request.app;
    let cluster = request.cluster(&ident).await?;
    let machines = app.store.machines_of(cluster.id).await?;
    let held = machines.into_iter().filter_map(|it| Some((it.machine, it.authorities?))).collect();
    let drained = app.store.drained_of(cluster.id).await?;
    let has_machines = !app.store.ledger_of(cluster.id).await?.is_empty();
    let cluster = request
        .change(&cluster.id.to_string(), |cluster, groups| {
            let authorities = rotated(&cluster, &groups, &held, &drained, has_machines)?;
            let said = match authorities.is_settled() {
                true => "replaced the cluster's CA",
                false => "CA rotation requested",
            };
            let events = vec![app.request_event(&cluster, "AuthorityRotated", said.to_owned())];
            let asked_at = (app.clock)();
            let cluster = Cluster { authorities, asked_at, ..cluster };
            Ok(ClusterChange { events, ..ClusterChange::of(cluster) })
        })
        .await?;
    Ok(accepted(&cluster))
}

/// `PATCH /v1/credentials/{cluster}`: asks for the next generation of the cluster's credential for the cloud. The conductor deletes the
/// former credential once nothing uses it any more.
async fn credentials(request: Request, PathParam(ident): PathParam<String>) -> Result<Response> {
    let cluster = request
        .change(&ident, |cluster, _| {
            check_not_deleting(&cluster)?;
            let generation = cluster.credential + 1;
            let said = format!("credential {generation} in the cloud requested");
            let events = vec![request.app.request_event(&cluster, "CredentialRequested", said)];
            let asked_at = (request.app.clock)();
            let cluster = Cluster { credential: generation, asked_at, ..cluster };
            Ok(ClusterChange { events, ..ClusterChange::of(cluster) })
        })
        .await?;
    Ok(accepted(&cluster))
}
