//! Requests the token of a session, renews it and revokes it.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use jiff::Timestamp;
use reqwest::Method;
use secrecy::SecretString;
use tokio::time::Instant;
use url::Url;

use super::Session;
use super::call::{Body, Call};
use super::token::{Identity, Token, TokenBody, X_SUBJECT_TOKEN};
use crate::error::{CloudError, Result, ignore_not_found};
use crate::service::Service;

/// How long before its expiry a token is replaced, so that it does not expire while a chain of services handles a request.
const MARGIN: Duration = Duration::from_secs(120);
/// The assumed lifetime of a token whose answer does not tell it.
const UNTOLD_LIFETIME: Duration = Duration::from_secs(600);

impl Session {
    /// Returns our user and scope, as Keystone reports them.
    pub async fn identity(&self) -> Result<Identity> {
        Ok(self.token().await?.identity.clone())
    }

    /// Returns the base URL of `service`, including the API version that we use.
    pub async fn endpoint(&self, service: Service) -> Result<Url> {
        self.endpoint_by(&*self.token().await?, service)
    }

    /// Whether the catalogue has this service in our region and interface.
    pub async fn has(&self, service: Service) -> Result<bool> {
        match self.endpoint(service).await {
            Ok(_) => Ok(true),
            Err(CloudError::NoEndpoint { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Revokes the token at Keystone, so that nobody can use it any more. The next call requests a new one.
    pub async fn close(&self) -> Result<()> {
        let token = self.shared.token.lock().await.take();
        match token {
            Some(token) => match ignore_not_found(revoke(self, &token).await) {
                // The token has expired or was revoked already.
                Err(CloudError::Unauthorized(_)) => Ok(()),
                other => other,
            },
            None => Ok(()),
        }
    }

    /// Returns our token, valid for some time, for services without calls in this crate.
    pub async fn bearer(&self) -> Result<SecretString> {
        Ok(self.token().await?.secret.clone())
    }

    /// Returns a token that is valid for some time. If another task is requesting one, waits for that one.
    pub(super) async fn token(&self) -> Result<Arc<Token>> {
        let mut held = self.shared.token.lock().await;
        if let Some(token) = held.as_ref().filter(|token| token.is_fresh()) {
            return Ok(token.clone());
        }
        let token = Arc::new(request(self).await?);
        *held = Some(token.clone());
        Ok(token)
    }

    /// Drops `refused`, unless another task has replaced it already.
    pub(super) async fn forget(&self, refused: &Arc<Token>) {
        let mut held = self.shared.token.lock().await;
        if held.as_ref().is_some_and(|token| Arc::ptr_eq(token, refused)) {
            *held = None;
        }
    }

    pub(super) fn endpoint_by(&self, token: &Token, service: Service) -> Result<Url> {
        // Keystone is at the configured URL, whatever the catalogue says.
        if service == Service::Identity {
            return Ok(self.keystone());
        }
        token.endpoint(service, self.config())
    }
}

/// Requests a token: `POST /v3/auth/tokens`. A second token is harmless.
///
/// The future is boxed, because a call may need a token, and requesting one is a call.
fn request(session: &Session) -> BoxFuture<'_, Result<Token>> {
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
    let reported = issued_at.zip(expires_at).map(|(from, until)| until.duration_since(from));
    reported.map_or(UNTOLD_LIFETIME, |reported| Duration::try_from(reported).unwrap_or_default())
}

/// Revokes a token: `DELETE /v3/auth/tokens`.
async fn revoke(session: &Session, token: &Token) -> Result<()> {
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
