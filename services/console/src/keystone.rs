//! The calls of Keystone: log-in, the projects of a user, and the end of a token.

use std::path::PathBuf;
use std::time::Duration;

use http::{HeaderValue, StatusCode};
use jiff::Timestamp;
use openstack::{Auth, CloudConfig, CloudError, Interface, RetryPolicy, Service, Tls};
use reqwest::Client;
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;

use crate::config::KeystoneConfig;
use crate::problem::{Problem, Result};
use crate::session::{Credential, Session};

/// The timeout of a request about projects or tokens.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// Makes a session from the identity and the token that Keystone returns.
pub(crate) async fn session_of(
    keystone: &KeystoneConfig,
    authorities: Option<PathBuf>,
    auth: Auth,
) -> Result<Session> {
    let config = CloudConfig {
        auth_url: keystone.url.clone(),
        auth,
        region: keystone.region.clone(),
        interface: Interface::Public,
        tls: Tls::Verified { authorities },
        endpoints: Default::default(),
        patience: RetryPolicy { attempts: 1, ..RetryPolicy::default() },
        calls_at_once: std::num::NonZeroUsize::MIN,
    };
    let broken = |why: &dyn std::fmt::Display| Problem::Internal(why.to_string());
    let cloud = openstack::Session::new(config).map_err(|why| broken(&why))?;
    let identity = cloud.identity().await.map_err(|why| refused(&why))?;
    let token = cloud.bearer().await.map_err(|why| refused(&why))?;
    let lifetime = identity
        .expires_at
        .map(|end| Duration::try_from(end.duration_since(Timestamp::now())).unwrap_or_default());
    Ok(Session {
        name: identity.user_name,
        account: identity.user_id,
        project: identity.project_name,
        credential: Credential::Token(token),
        baremetal: cloud.endpoint(Service::BareMetal).await.ok(),
        clusters: cloud.endpoint(Service::ContainerInfra).await.ok(),
        former_tokens: Vec::new(),
        lifetime,
    })
}

/// Turns an error of Keystone into a message for the user who logs in.
fn refused(why: &CloudError) -> Problem {
    if matches!(why, CloudError::Unauthorized(_)) {
        return Problem::wrong_password();
    }
    match why.refusal() {
        None => Problem::Unreachable { program: "Keystone", why: why.to_string() },
        Some(answer) => {
            Problem::Refused { status: answer.status, sentence: answer.message.clone() }
        }
    }
}

/// The projects in which the owner of the token has a role: `GET /v3/auth/projects`.
pub(crate) async fn projects(
    client: &Client,
    keystone: &KeystoneConfig,
    token: &SecretString,
) -> Result<Value> {
    let token = header(token).ok_or(Problem::LoggedOut)?;
    let request = client.get(url(keystone, "/v3/auth/projects"));
    let request = request.timeout(ANSWER_TIMEOUT).header("X-Auth-Token", token);
    let unreachable = |why: reqwest::Error| Problem::Unreachable {
        program: "Keystone",
        why: why.without_url().to_string(),
    };
    let answer = request.send().await.map_err(unreachable)?;
    if answer.status() == StatusCode::UNAUTHORIZED {
        return Err(Problem::LoggedOut);
    }
    let body = answer.error_for_status().map_err(unreachable)?.bytes().await;
    let body = body.map_err(unreachable)?;
    serde_json::from_slice(&body).map_err(|_| Problem::Unreachable {
        program: "Keystone",
        why: "cannot parse the response".to_owned(),
    })
}

/// Revokes a token: `DELETE /v3/auth/tokens`.
pub(crate) async fn revoke(
    client: &Client,
    keystone: &KeystoneConfig,
    token: &SecretString,
) -> reqwest::Result<()> {
    let Some(token) = header(token) else { return Ok(()) };
    let request = client.delete(url(keystone, "/v3/auth/tokens")).timeout(ANSWER_TIMEOUT);
    let request = request.header("X-Auth-Token", token.clone()).header("X-Subject-Token", token);
    request.send().await?.error_for_status().map(drop)
}

fn url(keystone: &KeystoneConfig, path: &str) -> String {
    let base = keystone.url.as_str().trim_end_matches('/').trim_end_matches("/v3");
    format!("{base}{path}")
}

/// A token as the value of a header; `None` if a header cannot contain the token.
fn header(token: &SecretString) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(token.expose_secret()).ok()?;
    value.set_sensitive(true);
    Some(value)
}
