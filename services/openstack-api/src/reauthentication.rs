//! Repeats the authentication of a caller, for connections that outlive the request.

use std::sync::Arc;

use axum::extract::{FromRef, FromRequestParts};
use http::HeaderMap;
use http::request::Parts;

use crate::admission::Gate;
use crate::limits::{CredentialSource, Limiter, PermitSlot};
use crate::socket_tickets::proofs;
use crate::{ApiError, Auth, Caller, Rule};

/// The credentials of a caller, kept while the connection that the caller opened goes on.
pub struct SessionCheck {
    auth: Auth,
    /// Contains only the headers with credentials.
    proofs: HeaderMap,
    door: CredentialSource,
    rule: Rule,
}

impl SessionCheck {
    /// Authenticates the caller again with the same credentials, and checks the same rule.
    ///
    /// # Errors
    ///
    /// 401 or 403 if the caller has lost access: then end the connection. Any other error means that access cannot be checked at present.
    pub async fn caller(&self) -> Result<Caller, ApiError> {
        let caller = self.auth.identify(&self.proofs, &self.door).await?.with_rule(self.rule);
        self.rule.admit(&caller)?;
        Ok(caller)
    }
}

impl<S> FromRequestParts<S> for SessionCheck
where
    S: Send + Sync,
    Auth: FromRef<S>,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let limiter = parts.extensions.get::<(Arc<Limiter>, PermitSlot)>().cloned();
        let (limiter, _) =
            limiter.ok_or_else(|| ApiError::broken("this route is not behind apply()"))?;
        let gate = parts.extensions.get::<Gate>().copied();
        let gate = gate.ok_or_else(|| ApiError::broken("this route has no rule"))?;
        Ok(SessionCheck {
            auth: Auth::from_ref(state),
            proofs: proofs(&parts.headers),
            door: limiter.door(parts),
            rule: gate.rule,
        })
    }
}
