//! Authenticates callers by Keystone tokens (Identity API v3).

mod memory;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use http::{HeaderMap, StatusCode};
use jiff::Timestamp;
use openstack::identity::{projects, tokens};
use openstack::{CloudError, Session};
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest as _, Sha256};
use tracing::{debug, error, warn};
use url::Url;
use uuid::Uuid;

use self::memory::{Digest, KeystoneUnavailable, NextStep, TokenCache, TokenIdentity};
use crate::limits::CredentialSource;
use crate::{ApiError, Caller};

/// The longest token that is passed on to Keystone. Keystone's tokens have some hundred bytes, signed ones a few thousand.
const LONGEST_TOKEN: usize = 8192;

/// Validates tokens with Keystone, and caches the results.
pub struct Keystone {
    session: Session,
    url: String,
    salt: [u8; 16],
    memory: Mutex<TokenCache>,
}

impl Keystone {
    /// `session` is used to validate tokens; its user must be allowed to validate tokens of others. `url` is the address at which clients
    /// get tokens. A validated token is cached for `cache_for`, or until the token expires.
    pub fn new(session: Session, url: &Url, cache_for: Duration) -> Self {
        Keystone {
            session,
            url: url.as_str().trim_end_matches('/').to_owned(),
            salt: Uuid::new_v4().into_bytes(),
            memory: Mutex::new(TokenCache::new(cache_for)),
        }
    }

    /// The URL at which clients get tokens.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Authenticates the sender of these headers.
    pub(crate) async fn caller(
        self: &Arc<Self>,
        headers: &HeaderMap,
        door: &CredentialSource,
    ) -> Result<Caller, ApiError> {
        let shown = token(headers, "x-auth-token")?;
        let shown = shown.ok_or_else(|| no("a Keystone token is required (X-Auth-Token)"))?;
        let through = token(headers, "x-service-token")?;
        let identity = self.identify(shown, door).await?;
        let identity = identity.ok_or_else(|| no("the token is invalid or has expired"))?;
        let service = match through {
            Some(through) => {
                let service = self.identify(through, door).await?;
                let why = "the service token (X-Service-Token) is invalid or has expired";
                Some(service.ok_or_else(|| no(why))?)
            }
            None => None,
        };
        Ok(Caller::known(identity, service))
    }

    /// Refuses a project that does not exist.
    pub(crate) async fn check_project(&self, field: &str, id: &str) -> Result<(), ApiError> {
        match projects::exists(&self.session, id).await {
            Ok(true) => Ok(()),
            Ok(false) => {
                let id: String = id.chars().take(64).collect();
                Err(ApiError::bad_field(
                    field,
                    format!("Keystone has no project with the id {id:?}"),
                ))
            }
            Err(CloudError::Forbidden(_)) => {
                debug!("Keystone does not permit this service to look up the project of {field}");
                Ok(())
            }
            Err(why) => {
                tell(&why);
                let said = format!(
                    "{field}: Keystone is unavailable, so the project cannot be checked: retry later"
                );
                Err(ApiError::new(StatusCode::SERVICE_UNAVAILABLE, said))
            }
        }
    }

    /// Validates a token. If several requests present the same token at once, Keystone is asked once.
    async fn identify(
        self: &Arc<Self>,
        token: SecretString,
        door: &CredentialSource,
    ) -> Result<TokenIdentity, ApiError> {
        let digest = self.digest(&token);
        let next = self.with(|memory| memory.next(&digest, Instant::now()));
        let mut answer = match next {
            NextStep::Take(verdict) => return Ok(verdict),
            NextStep::Refuse => return Err(away(KeystoneUnavailable)),
            NextStep::Wait(answer) => answer,
            NextStep::Ask(sender, answer) => {
                let ticket = door.queue(None)?;
                // Runs as a task of its own, because the first client may disconnect while others wait for the same result.
                let keystone = self.clone();
                tokio::spawn(async move {
                    let guess = ticket.turn().await;
                    let said = keystone.ask(&digest, &token).await;
                    if !matches!(said, Ok(None)) {
                        guess.forgive();
                    }
                    sender.send_replace(Some(said));
                });
                answer
            }
        };
        let said = answer.wait_for(Option::is_some).await.map_err(|_| away(KeystoneUnavailable))?;
        said.clone().unwrap_or(Err(KeystoneUnavailable)).map_err(away)
    }

    async fn ask(
        &self,
        digest: &Digest,
        token: &SecretString,
    ) -> Result<TokenIdentity, KeystoneUnavailable> {
        let said = match tokens::validate(&self.session, token).await {
            Ok(found) => Ok(found.map(Arc::new)),
            Err(why) => {
                tell(&why);
                Err(KeystoneUnavailable)
            }
        };
        let end = said.as_ref().ok().and_then(|said| said.as_ref()?.expires_at);
        let left = end.map_or(Duration::MAX, |end| {
            Duration::try_from(end.duration_since(Timestamp::now())).unwrap_or_default()
        });
        self.with(|memory| memory.answered(digest, &said, left, Instant::now()));
        said
    }

    fn digest(&self, token: &SecretString) -> Digest {
        Sha256::new().chain_update(self.salt).chain_update(token.expose_secret()).finalize().into()
    }

    fn with<T>(&self, look: impl FnOnce(&mut TokenCache) -> T) -> T {
        look(&mut self.memory.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl fmt::Debug for Keystone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Keystone({})", self.url)
    }
}

/// The Keystone token that a caller sent, for calls that only the caller's own rights permit. The caller has to be authenticated before.
pub fn callers_token(headers: &HeaderMap) -> Option<SecretString> {
    token(headers, "x-auth-token").ok().flatten()
}

/// The token in this header; `None` without the header.
fn token(headers: &HeaderMap, name: &str) -> Result<Option<SecretString>, ApiError> {
    let Some(value) = headers.get(name) else { return Ok(None) };
    let text = value.to_str().ok().filter(|text| (1..=LONGEST_TOKEN).contains(&text.len()));
    let text = text.ok_or_else(|| no(&format!("{name}: is not a Keystone token")))?;
    Ok(Some(text.into()))
}

fn no(why: &str) -> ApiError {
    ApiError::protocol(StatusCode::UNAUTHORIZED, why)
}

fn away(_: KeystoneUnavailable) -> ApiError {
    let why = "Keystone is unavailable, so the token cannot be validated: retry later";
    ApiError::protocol(StatusCode::SERVICE_UNAVAILABLE, why)
}

/// Logs an error of Keystone for the operator.
fn tell(why: &CloudError) {
    if why.is_transient() {
        warn!("cannot ask Keystone: {why}");
    } else {
        error!("Keystone refuses to validate tokens for this service (check api.keystone): {why}");
    }
}
