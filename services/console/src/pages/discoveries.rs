//! `/discoveries`: machines that sent a boot request and are not enrolled.

use api_client::WithJson;
use api_client::baremetald::Discovery;
use axum::Router;
use axum::extract::Path;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use http::Method;

use crate::api::segment;
use crate::form::UserForm;
use crate::page_request::AuthorizedUser;
use crate::problem::Problem;
use crate::state::Console;

pub(super) fn routes() -> Router<Console> {
    Router::new().route("/discoveries", get(list)).route("/discoveries/{mac}/forget", post(forget))
}

/// `GET /discoveries`: lists discovered machines.
async fn list(person: AuthorizedUser) -> Result<Response, Problem> {
    let api = person.baremetald()?;
    let found: Vec<WithJson<Discovery>> = api.all("/bedplate/v1/discoveries").await?;
    let page = person.page("discoveries.html", "Discoveries").under("discoveries").live();
    person.show(page.put("discoveries", found))
}

/// `POST /discoveries/{mac}/forget`: removes a discovered machine from the list.
async fn forget(
    Path(mac): Path<String>,
    UserForm { person, .. }: UserForm,
) -> Result<Response, Problem> {
    let path = format!("/bedplate/v1/discoveries/{}", segment(&mac)?);
    person.baremetald()?.send(Method::DELETE, &path, None).await?;
    Ok(Redirect::to("/discoveries").into_response())
}
