//! `/v1/certificates`: a cluster's certificate authority, and signing with it.

use axum::response::Response;
use cluster_conductor::AuthorityKind;
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
use crate::error::{Error, Result};
use crate::lenient::text;
use crate::microversion as since;
use crate::request::Request;

/// Returns the routes of certificates and credentials.
pub(crate) fn routes() -> Routes<App> {
    let sign = Route::post("Sign a certificate request", sign)
        .reads(SigningRequest::schema())
        .returns(Shown::shape());
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
    /// The CA that signs: `kubernetes`, `etcd` or `front-proxy`.
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

/// Returns the certificate authority with this name of Magnum.
fn kind(raw: Option<&str>) -> Result<AuthorityKind, ApiError> {
    match raw {
        None | Some("kubernetes") => Ok(AuthorityKind::Kubernetes),
        Some("etcd") => Ok(AuthorityKind::Etcd),
        Some("front-proxy" | "front_proxy") => Ok(AuthorityKind::FrontProxy),
        Some(_) => {
            Err(ApiError::bad_field("ca_cert_type", "must be kubernetes, etcd or front-proxy"))
        }
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
    let kind = kind(query.take("ca_cert_type").as_deref())?;
    query.finish()?;
    let pem = request.app.conductor.authority_of(&cluster, kind).await?;
    Ok(json(StatusCode::OK, &shown(&cluster, None, pem, &origin)))
}

/// As in Magnum, a cluster that a body names and that does not exist is 400.
fn in_body(why: Error) -> ApiError {
    match ApiError::from(why) {
        why if why.status == StatusCode::NOT_FOUND => {
            ApiError::bad_field("cluster_uuid", why.message)
        }
        why => why,
    }
}

/// `POST /v1/certificates`: signs a certificate request.
async fn sign(
    request: Request,
    origin: Origin,
    StrictJson(body): StrictJson<SigningRequest>,
) -> Result<Response> {
    let kind = kind(body.ca_cert_type.as_deref())?;
    let cluster = request.cluster(&body.cluster_uuid).await.map_err(in_body)?;
    check_not_deleting(&cluster)?;
    let pem = request.app.conductor.sign(&cluster, kind, &body.csr, &request.user()).await?;
    let by = match kind {
        AuthorityKind::Kubernetes => "",
        AuthorityKind::Etcd => " by the CA of etcd",
        AuthorityKind::FrontProxy => " by the CA of the front proxy",
    };
    let said = format!("signed a certificate{by} for {}", request.user());
    let said = request.app.request_event(&cluster, "CertificateSigned", said);
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
