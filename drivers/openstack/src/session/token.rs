//! The token of a session: request, lifetime and content.

use std::time::Duration;

use futures::future::BoxFuture;
use jiff::Timestamp;
use reqwest::Method;
use reqwest::header::HeaderName;
use secrecy::SecretString;
use serde::Deserialize;
use tokio::time::Instant;
use url::Url;

use super::{Body, Call, Session};
use crate::catalogue::Catalogue;
use crate::config::CloudConfig;
use crate::error::CloudError;
use crate::lenient;
use crate::service::Service;

/// How long before its expiry a token is replaced, so that it does not expire while a chain of services handles a request.
const MARGIN: Duration = Duration::from_secs(120);
/// The assumed lifetime of a token whose answer does not tell it.
const UNTOLD_LIFETIME: Duration = Duration::from_secs(600);

/// The header with the token that a request is about, or that Keystone issues.
pub(crate) const X_SUBJECT_TOKEN: HeaderName = HeaderName::from_static("x-subject-token");

/// A token with the data that came with it.
#[derive(Debug)]
pub(super) struct Token {
    pub(super) secret: SecretString,
    pub(super) identity: Identity,
    catalogue: Catalogue,
    renew_at: Instant,
}

/// User and scope of a token, as Keystone reports them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "TokenBody")]
pub struct Identity {
    pub user_id: String,
    pub user_name: String,
    pub user_domain_id: Option<String>,
    /// Set for a token with a project as scope.
    pub project_id: Option<String>,
    pub project_name: Option<String>,
    pub project_domain_id: Option<String>,
    /// Set for a token with a domain as scope.
    pub domain_id: Option<String>,
    /// Whether the scope is the whole cloud.
    pub system: bool,
    /// The names of the roles in the scope.
    pub roles: Vec<String>,
    pub expires_at: Option<Timestamp>,
}

#[derive(Deserialize)]
struct TokenBody {
    user: Named,
    #[serde(default)]
    project: Option<Named>,
    #[serde(default)]
    domain: Option<DomainId>,
    #[serde(default)]
    system: Option<System>,
    #[serde(default)]
    roles: Vec<Named>,
    #[serde(default)]
    catalog: Catalogue,
    #[serde(default, deserialize_with = "lenient::time")]
    issued_at: Option<Timestamp>,
    // Keystone 22 leaves the zone out if the expiry is an application credential's.
    #[serde(default, deserialize_with = "lenient::time")]
    expires_at: Option<Timestamp>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Named {
    id: String,
    name: String,
    domain: Option<DomainId>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct DomainId {
    id: Option<String>,
}

/// `{"all": true}`, the only value so far.
#[derive(Default, Deserialize)]
#[serde(default)]
struct System {
    all: bool,
}

impl From<TokenBody> for Identity {
    fn from(body: TokenBody) -> Identity {
        let project_domain = body.project.as_ref().and_then(|project| project.domain.as_ref());
        Identity {
            project_domain_id: project_domain.and_then(|domain| domain.id.clone()),
            domain_id: body.domain.and_then(|domain| domain.id),
            system: body.system.is_some_and(|system| system.all),
            user_id: body.user.id,
            user_name: body.user.name,
            user_domain_id: body.user.domain.and_then(|domain| domain.id),
            project_id: body.project.as_ref().map(|project| project.id.clone()),
            project_name: body.project.map(|project| project.name),
            roles: body.roles.into_iter().map(|role| role.name).collect(),
            expires_at: body.expires_at,
        }
    }
}

impl Token {
    pub(super) fn is_fresh(&self) -> bool {
        Instant::now() < self.renew_at
    }

    pub(super) fn endpoint(
        &self,
        service: Service,
        config: &CloudConfig,
    ) -> Result<Url, CloudError> {
        self.catalogue.endpoint(service, config, self.identity.project_id.as_deref())
    }
}

/// Requests a token: `POST /v3/auth/tokens`. A second token is harmless.
///
/// The future is boxed, because a call may need a token, and requesting one is a call.
pub(super) fn request(session: &Session) -> BoxFuture<'_, Result<Token, CloudError>> {
    Box::pin(async {
        let asked = Instant::now();
        let call = Call::new(session, Service::Identity, Method::POST, &["auth", "tokens"]);
        let body = Body::Json(session.config().auth.request());
        let answer = call.body(body).anonymous().repeatable().send().await?;
        let secret = answer.header(X_SUBJECT_TOKEN.as_str()).map(SecretString::from);
        let secret = secret.ok_or_else(|| answer.malformed("it has no X-Subject-Token"))?;
        let body: TokenBody = answer.under("token")?;
        let lifetime = lifetime(body.issued_at, body.expires_at);
        Ok(Token {
            secret,
            renew_at: asked + lifetime - MARGIN.min(lifetime / 2),
            catalogue: body.catalog.clone(),
            identity: body.into(),
        })
    })
}

/// Computes the lifetime by Keystone's clock, which may differ from ours.
fn lifetime(issued_at: Option<Timestamp>, expires_at: Option<Timestamp>) -> Duration {
    let told = issued_at.zip(expires_at).map(|(from, until)| until.duration_since(from));
    told.map_or(UNTOLD_LIFETIME, |told| Duration::try_from(told).unwrap_or_default())
}

/// Revokes a token: `DELETE /v3/auth/tokens`.
pub(super) async fn revoke(session: &Session, token: &Token) -> Result<(), CloudError> {
    let call = session.deleting(Service::Identity, &["auth", "tokens"]);
    let call = call.secret_header(X_SUBJECT_TOKEN, token.secret.clone());
    call.bearing(token.secret.clone()).done().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lifetime_is_measured_by_keystones_clock() {
        let at = |text: &str| Some(text.parse::<Timestamp>().unwrap());
        let hour = lifetime(at("2001-01-01T00:00:00.000000Z"), at("2001-01-01T01:00:00.000000Z"));
        assert_eq!(hour, Duration::from_secs(3600));
        assert_eq!(
            lifetime(at("2001-01-01T01:00:00Z"), at("2001-01-01T00:00:00Z")),
            Duration::ZERO
        );
        assert_eq!(lifetime(None, at("2001-01-01T00:00:00Z")), UNTOLD_LIFETIME);
    }
}
