//! Logging in and out: a password is shown to who knows it, and what is kept is what the services take.

use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::{Query, State};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use http::StatusCode;
use jiff::Timestamp;
use openstack::{
    Auth, CloudConfig, CloudError, Domain, Interface, Patience, Project, Scope, Service, Tls, User,
};
use secrecy::SecretString;
use serde::Deserialize;

use crate::api::Program;
use crate::config::{Access, KeystoneConfig};
use crate::form::Fields;
use crate::problem::Problem;
use crate::service::Console;
use crate::session::{Credential, Session};
use crate::visit::{Visit, give};

pub(crate) fn routes() -> Router<Console> {
    Router::new().route("/login", get(ask).post(enter)).route("/logout", post(leave))
}

#[derive(Deserialize)]
struct Next {
    #[serde(default)]
    next: String,
}

/// `GET /login`.
async fn ask(
    State(console): State<Console>,
    visit: Visit,
    Query(Next { next }): Query<Next>,
) -> Result<Response, Problem> {
    if *console.access() == Access::None || visit.session.is_some() {
        return Ok(Redirect::to(own_path(&next)).into_response());
    }
    form(&console, &visit, &next, "", None)
}

fn form(
    console: &Console,
    visit: &Visit,
    next: &str,
    user: &str,
    why: Option<&Problem>,
) -> Result<Response, Problem> {
    let keystone =
        if let Access::Keystone(keystone) = console.access() { Some(keystone) } else { None };
    let page = visit.page("login.html", "Log in");
    let page =
        page.put("next", next).put("user", user).put("refused", why.map(ToString::to_string));
    let page = page.put("domain", keystone.map(|keystone| keystone.domain.as_str()));
    let status = why.map_or(StatusCode::OK, Problem::status);
    Ok((status, visit.show(console, page)?).into_response())
}

/// `POST /login`.
async fn enter(
    State(console): State<Console>,
    visit: Visit,
    fields: Fields,
) -> Result<Response, Problem> {
    let next = fields.find("next").unwrap_or("/").to_owned();
    let user = fields.find("user").unwrap_or_default().trim().to_owned();
    let password = SecretString::from(fields.find("password").unwrap_or_default());
    let known = match console.access() {
        Access::None => return Ok(Redirect::to(own_path(&next)).into_response()),
        Access::HttpBasic => by_services(&console, &user, password).await,
        Access::Keystone(keystone) => {
            by_keystone(&console, keystone, &user, password, &fields).await
        }
    };
    let session = match known {
        Ok(session) => session,
        Err(why) => return form(&console, &visit, &next, &user, Some(&why)),
    };
    // Another cookie than before: nobody can have given us one that he knows.
    let cookie = console.guard().cookie().map_err(|why| Problem::Broken(why.to_string()))?;
    console.sessions().remove(&visit.cookie);
    console.sessions().insert(&cookie, session, Instant::now());
    let mut answer = Redirect::to(own_path(&next)).into_response();
    give(answer.headers_mut(), &console.set_cookie(&cookie));
    Ok(answer)
}

/// `POST /logout`.
async fn leave(
    State(console): State<Console>,
    visit: Visit,
    _: Fields,
) -> Result<Response, Problem> {
    let session = console.sessions().remove(&visit.cookie);
    if let (Access::Keystone(keystone), Some(session)) = (console.access(), session) {
        revoke(&console, keystone, &session).await;
    }
    let mut answer = Redirect::to("/login").into_response();
    let cookie = console.guard().cookie().map_err(|why| Problem::Broken(why.to_string()))?;
    give(answer.headers_mut(), &console.set_cookie(&cookie));
    Ok(answer)
}

/// Where to after logging in: a path of ours, whatever the address said.
fn own_path(next: &str) -> &str {
    let is_own =
        next.starts_with('/') && !next.starts_with("//") && !next.contains(['\\', '\r', '\n']);
    if is_own && !next.starts_with("/log") { next } else { "/" }
}

fn wrong() -> Problem {
    Problem::Refused {
        status: StatusCode::UNAUTHORIZED,
        sentence: "name or password is wrong".to_owned(),
    }
}

/// Asks a service whether it takes this password.
async fn by_services(
    console: &Console,
    user: &str,
    password: SecretString,
) -> Result<Session, Problem> {
    if user.is_empty() || user.contains(':') {
        return Err(wrong());
    }
    let session = Session {
        name: user.to_owned(),
        project: None,
        credential: Credential::Password(user.to_owned(), password),
        baremetal: None,
        clusters: None,
        spent: Vec::new(),
        lasts: None,
    };
    let program =
        if console.configured().0.is_some() { Program::Machines } else { Program::Clusters };
    let api = console.api(program, Some(session.clone().into()))?;
    let path = match program {
        Program::Machines => "/v1/nodes?limit=1&fields=uuid",
        Program::Clusters => "/v1/clusters?limit=1",
    };
    match api.get(path).await {
        Ok(_) => Ok(session),
        Err(Problem::LoggedOut) => Err(wrong()),
        Err(other) => Err(other),
    }
}

/// Asks Keystone for a token. The password is not kept: the session ends with the token.
async fn by_keystone(
    console: &Console,
    keystone: &KeystoneConfig,
    user: &str,
    password: SecretString,
    fields: &Fields,
) -> Result<Session, Problem> {
    let domain =
        || Domain::Name(fields.find("domain").unwrap_or(&keystone.domain).trim().to_owned());
    let scope = match fields.find("project").map(str::trim) {
        Some(name) => Scope::Project(Project::Named { name: name.to_owned(), domain: domain() }),
        None => Scope::Default,
    };
    let user = User::Named { name: user.to_owned(), domain: domain() };
    session_of(console, keystone, Auth::Password { user, password, scope }).await
}

/// Who Keystone says that this is, with the token that it gave.
pub(crate) async fn session_of(
    console: &Console,
    keystone: &KeystoneConfig,
    auth: Auth,
) -> Result<Session, Problem> {
    let config = CloudConfig {
        auth_url: keystone.url.clone(),
        auth,
        region: keystone.region.clone(),
        interface: Interface::Public,
        tls: Tls::Verified { authorities: console.authorities() },
        endpoints: Default::default(),
        patience: Patience { attempts: 1, ..Patience::default() },
        calls_at_once: std::num::NonZeroUsize::MIN,
    };
    let broken = |why: &dyn std::fmt::Display| Problem::Broken(why.to_string());
    let cloud = openstack::Session::new(config).map_err(|why| broken(&why))?;
    let identity = cloud.identity().await.map_err(|why| told(&why))?;
    let token = cloud.bearer().await.map_err(|why| told(&why))?;
    let lasts = identity
        .expires_at
        .map(|end| Duration::try_from(end.duration_since(Timestamp::now())).unwrap_or_default());
    Ok(Session {
        name: identity.user_name,
        project: identity.project_name,
        credential: Credential::Token(token),
        baremetal: cloud.endpoint(Service::BareMetal).await.ok(),
        clusters: cloud.endpoint(Service::ContainerInfra).await.ok(),
        spent: Vec::new(),
        lasts,
    })
}

/// What Keystone said, to who tries to log in.
fn told(why: &CloudError) -> Problem {
    if matches!(why, CloudError::Unauthorized(_)) {
        return wrong();
    }
    match why.refusal() {
        None => Problem::Unreachable { program: "Keystone", why: why.to_string() },
        Some(answer) => {
            Problem::Refused { status: answer.status, sentence: answer.message.clone() }
        }
    }
}

/// Gives the token back, as far as Keystone answers; who logged out is logged out here in any case.
async fn revoke(console: &Console, keystone: &KeystoneConfig, session: &Session) {
    let Credential::Token(token) = &session.credential else { return };
    for token in session.spent.iter().chain([token]) {
        if let Err(why) = console.revoke(keystone, token).await {
            tracing::warn!("a token could not be given back to Keystone: {why}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_logging_in_one_stays_here() {
        assert_eq!(own_path("/racks/r1?x=1"), "/racks/r1?x=1");
        for elsewhere in ["", "https://evil", "//evil", "/\\evil", "/login", "/logout"] {
            assert_eq!(own_path(elsewhere), "/", "{elsewhere}");
        }
    }
}
