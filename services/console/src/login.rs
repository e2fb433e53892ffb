//! Log-in and log-out. A password is sent once to Keystone or a service; the session keeps the credential that the services accept.

use std::net::SocketAddr;

use axum::Router;
use axum::extract::{ConnectInfo, Query, State};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use http::StatusCode;
use openstack::{Auth, Domain, Project, Scope, User};
use openstack_api::{ApiError, CredentialSource};
use secrecy::SecretString;
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::api::BackendService;
use crate::config::{Access, KeystoneConfig};
use crate::form::Fields;
use crate::keystone;
use crate::own_path;
use crate::page_request::{PageRequest, append_cookie};
use crate::problem::{Problem, Result};
use crate::session::{Credential, Session};
use crate::state::Console;

/// Keystone's maximum length of a user, project or domain name.
const LONGEST_NAME: usize = 255;
/// Keystone's maximum length of a password, `max_password_length`.
const LONGEST_PASSWORD: usize = 4096;

pub(crate) fn routes() -> Router<Console> {
    Router::new().route("/login", get(show_form).post(log_in)).route("/logout", post(log_out))
}

#[derive(Deserialize)]
struct Next {
    #[serde(default)]
    next: String,
}

/// `GET /login`: shows the form.
async fn show_form(
    State(console): State<Console>,
    page_request: PageRequest,
    Query(Next { next }): Query<Next>,
) -> Result<Response> {
    if *console.access() == Access::None || page_request.session.is_some() {
        return Ok(Redirect::to(own_path::or_front(&next)).into_response());
    }
    form(&console, &page_request, &next, "", None)
}

fn form(
    console: &Console,
    page_request: &PageRequest,
    next: &str,
    user: &str,
    why: Option<&Problem>,
) -> Result<Response> {
    let keystone =
        if let Access::Keystone(keystone) = console.access() { Some(keystone) } else { None };
    let page = page_request.page("login.html", "Log in");
    let page = page
        .put("next", own_path::or_front(next))
        .put("user", user)
        .put("refused", why.map(ToString::to_string));
    let page = page.put("domain", keystone.map(|keystone| keystone.domain.as_str()));
    let status = why.map_or(StatusCode::OK, Problem::status);
    let retry_after = why.and_then(Problem::retry_after);
    Ok((status, retry_after, page_request.show(console, page)?).into_response())
}

/// `POST /login`: logs a user in.
async fn log_in(
    State(console): State<Console>,
    ConnectInfo(from): ConnectInfo<SocketAddr>,
    page_request: PageRequest,
    fields: Fields,
) -> Result<Response> {
    let next = fields.find("next").unwrap_or("/").to_owned();
    if *console.access() == Access::None {
        return Ok(Redirect::to(own_path::or_front(&next)).into_response());
    }
    let known = match check_lengths(&fields) {
        Ok(()) => try_password(&console, &console.password_limiter(from.ip()), &fields).await,
        Err(why) => Err(why),
    };
    let session = match known {
        Ok(session) => session,
        Err(why) => {
            let user = fields.find("user").filter(|user| user.len() <= LONGEST_NAME);
            return form(
                &console,
                &page_request,
                &next,
                user.unwrap_or_default().trim(),
                Some(&why),
            );
        }
    };
    // The new session gets a new cookie, so that nobody can plant a known cookie before the log-in (session fixation).
    let cookie = console.guard().cookie().map_err(|why| Problem::Internal(why.to_string()))?;
    console.sessions().remove(&page_request.cookie).await?;
    console.sessions().insert(&cookie, session).await?;
    let mut answer = Redirect::to(own_path::or_front(&next)).into_response();
    append_cookie(answer.headers_mut(), &console.set_cookie(&cookie));
    Ok(answer)
}

/// `POST /logout`: ends the session and revokes its tokens.
async fn log_out(
    State(console): State<Console>,
    page_request: PageRequest,
    _: Fields,
) -> Result<Response> {
    let session = console.sessions().remove(&page_request.cookie).await?;
    if let (Access::Keystone(config), Some(session)) = (console.access(), session) {
        revoke_all(&console, config, &session).await;
    }
    let mut answer = Redirect::to("/login").into_response();
    let cookie = console.guard().cookie().map_err(|why| Problem::Internal(why.to_string()))?;
    append_cookie(answer.headers_mut(), &console.set_cookie(&cookie));
    Ok(answer)
}

/// Refuses names and passwords that are longer than Keystone permits, before they are sent on.
fn check_lengths(fields: &Fields) -> Result<()> {
    let limits = [
        ("user", LONGEST_NAME),
        ("project", LONGEST_NAME),
        ("domain", LONGEST_NAME),
        ("password", LONGEST_PASSWORD),
    ];
    for (name, longest) in limits {
        if fields.find(name).is_some_and(|text| text.len() > longest) {
            return Err(Problem::Unreadable(format!(
                "{name}: must not be longer than {longest} bytes"
            )));
        }
    }
    Ok(())
}

/// Tries a password once the earlier wrong guesses for the same name and address have been waited for. Keystone and the services see only
/// the console's address, and cannot tell guessers apart.
async fn try_password(
    console: &Console,
    limiter: &CredentialSource,
    fields: &Fields,
) -> Result<Session> {
    let user = fields.find("user").unwrap_or_default().trim();
    let password = SecretString::from(fields.find("password").unwrap_or_default());
    // Keystone compares names without regard to case.
    let name = user.to_lowercase();
    let guess = limiter.queue_password(&name).map_err(too_many)?.turn().await;
    let shared = match console.shared_turn(&name, limiter.network()).await {
        Ok(shared) => shared,
        Err(why) => {
            guess.forgive();
            return Err(why);
        }
    };
    let known = match console.access() {
        Access::None => return Err(Problem::nothing_here()),
        Access::HttpBasic => by_services(console, user, password).await,
        Access::Keystone(config) => by_keystone(console, config, user, password, fields).await,
    };
    match &known {
        Err(Problem::Refused { .. }) => drop(guess),
        Ok(_) | Err(_) => {
            guess.forgive();
            if let Some(shared) = shared {
                shared.forgive().await;
            }
        }
    }
    known
}

fn too_many(why: ApiError) -> Problem {
    Problem::TooMany { again_in: why.retry_after.unwrap_or(2), sentence: why.message }
}

/// Asks a service whether it accepts this password.
async fn by_services(console: &Console, user: &str, password: SecretString) -> Result<Session> {
    if user.is_empty() || user.contains(':') {
        return Err(Problem::wrong_password());
    }
    let session = Session {
        name: user.to_owned(),
        account: user.to_owned(),
        project: None,
        credential: Credential::Password(user.to_owned(), password),
        baremetal: None,
        clusters: None,
        former_tokens: Vec::new(),
        lifetime: None,
    };
    let program = if console.configured().0.is_some() {
        BackendService::Baremetald
    } else {
        BackendService::Clusterd
    };
    let api = console.api(program, Some(session.clone().into()))?;
    let path = match program {
        BackendService::Baremetald => "/v1/nodes?limit=1&fields=uuid",
        BackendService::Clusterd => "/v1/clusters?limit=1",
    };
    match api.get::<IgnoredAny>(path).await {
        Ok(_) => Ok(session),
        Err(Problem::LoggedOut) => Err(Problem::wrong_password()),
        Err(other) => Err(other),
    }
}

/// Asks Keystone for a token. The console does not keep the password: the session ends with the token.
async fn by_keystone(
    console: &Console,
    config: &KeystoneConfig,
    user: &str,
    password: SecretString,
    fields: &Fields,
) -> Result<Session> {
    let domain = || Domain::Name(fields.find("domain").unwrap_or(&config.domain).trim().to_owned());
    let scope = match fields.find("project").map(str::trim) {
        Some(name) => Scope::Project(Project::Named { name: name.to_owned(), domain: domain() }),
        None => Scope::Default,
    };
    let user = User::Named { name: user.to_owned(), domain: domain() };
    let auth = Auth::Password { user, password, scope };
    keystone::session_of(config, console.authorities(), auth).await
}

/// Revokes all tokens of the session. If Keystone does not answer, the user is still logged out of the console.
async fn revoke_all(console: &Console, config: &KeystoneConfig, session: &Session) {
    let Credential::Token(token) = &session.credential else { return };
    for token in session.former_tokens.iter().chain([token]) {
        if let Err(why) = keystone::revoke(console.client(), config, token).await {
            tracing::warn!("cannot revoke a token in Keystone: {why}");
        }
    }
}
