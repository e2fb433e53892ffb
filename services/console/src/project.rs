//! `/project`: switches to another project with the token of the session, without asking for the password again.

use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;
use http::StatusCode;
use openstack::{Auth, Project, Scope};
use secrecy::SecretString;

use crate::config::{Access, KeystoneConfig};
use crate::form::UserForm;
use crate::keystone;
use crate::page_request::{AuthorizedUser, append_cookie};
use crate::problem::{Problem, Result};
use crate::session::{Credential, Session};
use crate::state::Console;

pub(crate) fn routes() -> Router<Console> {
    Router::new().route("/project", get(list).post(switch))
}

/// Keystone's configuration, the session and its token. Fails without Keystone, because there is only one project then.
fn session_token<'a>(
    console: &'a Console,
    person: &'a AuthorizedUser,
) -> Result<(&'a KeystoneConfig, &'a Session, &'a SecretString)> {
    match (console.access(), person.page_request.session.as_deref()) {
        (Access::Keystone(config), Some(session)) => match &session.credential {
            Credential::Token(token) => Ok((config, session, token)),
            Credential::Password(..) => Err(Problem::nothing_here()),
        },
        (Access::None | Access::HttpBasic | Access::Keystone(_), _) => Err(Problem::nothing_here()),
    }
}

/// `GET /project`: lists the user's projects.
async fn list(State(console): State<Console>, person: AuthorizedUser) -> Result<Response> {
    let (config, _, token) = session_token(&console, &person)?;
    let mut found = keystone::projects(console.client(), config, token).await?;
    let page = person.page("project.html", "Switch project");
    person.show(page.put("projects", found["projects"].take()))
}

/// `POST /project`: switches to a project.
async fn switch(
    State(console): State<Console>,
    UserForm { person, fields }: UserForm,
) -> Result<Response> {
    let (config, before, token) = session_token(&console, &person)?;
    let scope = Scope::Project(Project::Id(fields.get("project")?.trim().to_owned()));
    let auth = Auth::Token { token: token.clone(), scope };
    let session = match keystone::session_of(config, console.authorities(), auth).await {
        Ok(session) => session,
        Err(Problem::Refused { status: StatusCode::UNAUTHORIZED, .. }) => {
            let sentence = "project: you have no role in this project".to_owned();
            return Err(Problem::Refused { status: StatusCode::FORBIDDEN, sentence });
        }
        Err(other) => return Err(other),
    };
    // The former token stays valid until it expires, so it is kept and revoked at log-out too.
    let former_tokens = before.former_tokens.iter().chain([token]).cloned().collect();
    let session = Session { former_tokens, ..session };
    let cookie = console.guard().cookie().map_err(|why| Problem::Internal(why.to_string()))?;
    console.sessions().remove(&person.page_request.cookie).await?;
    console.sessions().insert(&cookie, session).await?;
    let mut answer = Redirect::to("/").into_response();
    append_cookie(answer.headers_mut(), &console.set_cookie(&cookie));
    Ok(answer)
}
