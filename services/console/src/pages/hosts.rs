//! `/hosts`: compute hosts of the cloud with their servers, and drains.

use api_client::WithJson;
use api_client::clusterd::{Drains, Host, HostSummary};
use axum::Router;
use axum::extract::Path;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use http::{Method, StatusCode};
use serde_json::json;

use super::location::node_of_host;
use crate::api::segment;
use crate::form::UserForm;
use crate::page_request::AuthorizedUser;
use crate::problem::{Problem, Result};
use crate::state::Console;
use crate::view::Page;

pub(super) fn routes() -> Router<Console> {
    Router::new()
        .route("/hosts", get(list))
        .route("/hosts/{host}", get(show))
        .route("/hosts/{host}/drain", post(drain))
        .route("/hosts/{host}/undrain", post(undrain))
}

/// `GET /hosts`: every compute host with its drain, or only the hosts with a drain if clusterd cannot list the cloud's hosts.
async fn list(person: AuthorizedUser) -> Result<Response> {
    let api = person.clusterd()?;
    let (hosts, unknown) = match api.all::<WithJson<HostSummary>>("/bedplate/v1/hosts").await {
        Ok(found) => (json!(found), None),
        Err(
            why @ Problem::Refused {
                status: StatusCode::CONFLICT | StatusCode::SERVICE_UNAVAILABLE,
                ..
            },
        ) => {
            let Drains { drains } = api.get("/bedplate/v1/drains").await?;
            let hosts = drains
                .iter()
                .map(|drain| json!({"host": drain.host, "service": null, "drain": drain}));
            (hosts.collect(), Some(why.to_string()))
        }
        Err(why) => return Err(why),
    };
    let page = person.page("hosts.html", "Hosts").under("hosts").live();
    person.show(page.put("hosts", hosts).put("unknown", unknown))
}

/// `GET /hosts/{host}`: shows a host.
async fn show(person: AuthorizedUser, Path(host): Path<String>) -> Result<Response> {
    let page = one(&person, &host).await?;
    person.show(page)
}

async fn one(person: &AuthorizedUser, host: &str) -> Result<Page> {
    let (clusters, address) = (person.clusterd()?, segment(host)?);
    let path = format!("/bedplate/v1/hosts/{address}");
    let (carried, node) =
        tokio::join!(clusters.get::<WithJson<Host>>(&path), node_of_host(person, host));
    let page = person.page("host.html", host).under("hosts").live();
    let page = page.put("host", carried?).put("node", node?).put("address", address);
    Ok(page.put("label", host).put("force", ""))
}

/// `POST /hosts/{host}/drain`: drains a host. If a cluster would lose its quorum, the page shows the service's refusal, and the form can
/// name the cluster to permit the loss.
async fn drain(
    Path(host): Path<String>,
    UserForm { person, fields }: UserForm,
) -> Result<Response> {
    let name = segment(&host)?;
    let body = json!({"force": fields.forced()});
    let path = format!("/bedplate/v1/drains/{name}");
    match person.clusterd()?.send(Method::PUT, &path, Some(&body)).await {
        Ok(_) => Ok(Redirect::to(&format!("/hosts/{name}")).into_response()),
        Err(why @ Problem::Refused { .. }) => {
            let page =
                one(&person, &host).await?.put("force", fields.find("force").unwrap_or_default());
            person.show_again(page, &why)
        }
        Err(why) => Err(why),
    }
}

/// `POST /hosts/{host}/undrain`: ends a drain.
async fn undrain(Path(host): Path<String>, UserForm { person, .. }: UserForm) -> Result<Response> {
    let name = segment(&host)?;
    person.clusterd()?.send(Method::DELETE, &format!("/bedplate/v1/drains/{name}"), None).await?;
    Ok(Redirect::to(&format!("/hosts/{name}")).into_response())
}
