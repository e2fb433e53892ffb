//! `/discoveries`: machines and BMCs that were seen and are not enrolled, and their acceptance into nodes.

use api_client::WithJson;
use api_client::baremetald::{AcceptedDiscovery, Discovery};
use axum::Router;
use axum::extract::Path;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use http::Method;
use serde_json::{Map, Value, json};

use crate::api::segment;
use crate::form::{Fields, UserForm};
use crate::page_request::AuthorizedUser;
use crate::problem::{Problem, Result};
use crate::state::Console;

const DISCOVERIES: &str = "/bedplate/v1/discoveries";

pub(super) fn routes() -> Router<Console> {
    Router::new()
        .route("/discoveries", get(list))
        .route("/discoveries/{discovery}/accept", get(ask).post(accept))
        .route("/discoveries/{discovery}/forget", post(forget))
}

/// `GET /discoveries`: lists discovered machines and BMCs.
async fn list(person: AuthorizedUser) -> Result<Response> {
    let api = person.baremetald()?;
    let found: Vec<WithJson<Discovery>> = api.all(DISCOVERIES).await?;
    let machines: Vec<&str> = found.iter().filter_map(|it| it.mac.as_deref()).collect();
    let page = person.page("discoveries.html", "Discoveries").under("discoveries").live();
    let page = page.put("machines", machines);
    person.show(page.put("discoveries", found))
}

/// `GET /discoveries/{discovery}/accept`: asks for the fields of the node that the discovery does not tell. The page is the confirmation.
async fn ask(person: AuthorizedUser, Path(id): Path<String>) -> Result<Response> {
    let found = find(&person, &id).await?;
    let page = person.page("discovery_accept.html", "Accept a discovery").under("discoveries");
    person.show(page.put("found", found).put("given", Map::new()))
}

/// `POST /discoveries/{discovery}/accept`: accepts a discovery into a node.
async fn accept(Path(id): Path<String>, UserForm { person, fields }: UserForm) -> Result<Response> {
    let path = format!("{DISCOVERIES}/{}/accept", segment(&id)?);
    match person.baremetald()?.post(&path, &body(&fields)).await {
        Ok(AcceptedDiscovery { uuid, .. }) => {
            Ok(Redirect::to(&format!("/nodes/{}", segment(&uuid)?)).into_response())
        }
        Err(Problem::LoggedOut) => Err(Problem::LoggedOut),
        Err(why) => {
            let found = find(&person, &id).await?;
            let title = "Accept a discovery";
            let page = person.page("discovery_accept.html", title).under("discoveries");
            person.show_again(page.put("found", found).put("given", fields.shown()), &why)
        }
    }
}

async fn find(person: &AuthorizedUser, id: &str) -> Result<WithJson<Discovery>> {
    let found: Vec<WithJson<Discovery>> = person.baremetald()?.all(DISCOVERIES).await?;
    found.into_iter().find(|it| it.id == id).ok_or_else(Problem::nothing_here)
}

/// The request that the form describes.
fn body(fields: &Fields) -> Value {
    let mut body = Map::new();
    for name in ["name", "resource_class"] {
        if let Some(text) = fields.find(name) {
            body.insert(name.to_owned(), text.trim().into());
        }
    }
    let mut info = Map::new();
    if let Some(driver) = fields.find("driver") {
        body.insert("driver".to_owned(), driver.into());
        for (field, key) in [("address", "address"), ("user", "username"), ("password", "password")]
        {
            if let Some(text) = fields.find(field) {
                info.insert(format!("{driver}_{key}"), text.into());
            }
        }
    }
    body.insert("driver_info".to_owned(), json!(info));
    Value::Object(body)
}

/// `POST /discoveries/{discovery}/forget`: removes a discovery from the list.
async fn forget(Path(id): Path<String>, UserForm { person, .. }: UserForm) -> Result<Response> {
    let path = format!("{DISCOVERIES}/{}", segment(&id)?);
    person.baremetald()?.send(Method::DELETE, &path, None).await?;
    Ok(Redirect::to("/discoveries").into_response())
}
