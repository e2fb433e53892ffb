//! Who asked, asked again: for what goes on long after the request was answered.

use std::sync::Arc;

use axum::extract::{FromRef, FromRequestParts};
use http::request::Parts;
use http::{HeaderMap, HeaderName};

use crate::limits::{Door, Limiter, SeatOf};
use crate::manners::PROOFS;
use crate::routes::Gate;
use crate::{ApiError, Auth, Caller, Rule};

/// What somebody proved who they are with, kept while what they asked for goes on.
pub struct Standing {
    auth: Auth,
    /// Nothing but proofs.
    proofs: HeaderMap,
    door: Door,
    rule: Rule,
}

impl Standing {
    /// Who it is by the same proofs now, let in by the same rule.
    ///
    /// # Errors
    ///
    /// 401 or 403: it ends here. Else, nobody can tell for the time being.
    pub async fn caller(&self) -> Result<Caller, ApiError> {
        let caller = self.auth.identify(&self.proofs, &self.door).await?.under(self.rule);
        self.rule.admit(&caller)?;
        Ok(caller)
    }
}

impl<S> FromRequestParts<S> for Standing
where
    S: Send + Sync,
    Auth: FromRef<S>,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let limiter = parts.extensions.get::<(Arc<Limiter>, SeatOf)>().cloned();
        let (limiter, _) = limiter.ok_or_else(|| ApiError::broken("this route has no manners"))?;
        let gate = parts.extensions.get::<Gate>().copied();
        let gate = gate.ok_or_else(|| ApiError::broken("this route has no rule"))?;
        let proof = |name: HeaderName| {
            let value = parts.headers.get(&name)?.clone();
            Some((name, value))
        };
        let proofs = PROOFS.into_iter().filter_map(proof).collect();
        Ok(Standing {
            auth: Auth::from_ref(state),
            proofs,
            door: limiter.door(parts),
            rule: gate.rule,
        })
    }
}
